//! The watching itself: what is heard is settled, and workspaces are visited: read again where something changed, and
//! looked at for what to watch next. Owns what is to be visited and in which order; refuses to visit one twice at a time.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::io::Errno;
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use super::{
    super::state::DaemonState,
    debounce::Debouncer,
    fs_state,
    inotify::{DirectoryWatcher, FsEvent, WatchResult},
    state::{RescanRequest, WatchCoverage},
    subscriptions::Subscriptions,
};
use crate::{
    config::{self, WatchPlan, WatchedWorkspace},
    model::WorkspaceId,
};

/// How many workspaces are visited at the same time, so that one on a slow disk does not hold up the others.
const MAX_CONCURRENT_VISITS: usize = 4;

/// How often directories are looked for that are not there. The one above would tell, but it is not the workspace's.
const ABSENT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Why a workspace is visited. Of two reasons for one visit, the greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VisitReason {
    /// To see what to watch.
    Look,
    /// To see whether something changed between the reading and the watching.
    Check,
    /// To read it again.
    Reload,
}

/// What a visit came to.
struct Visit {
    /// None if the workspace is no longer there.
    result: Option<VisitResult>,
}

struct VisitResult {
    watches: WatchPlan,
    /// Whether something may have changed since the workspace was read.
    freshness: Freshness,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Freshness {
    Unknown,
    AsRead,
    Changed,
}

struct ReloadLoop {
    state: Arc<DaemonState>,
    watcher: DirectoryWatcher,
    subscriptions: Subscriptions,
    debouncer: Debouncer,
    queue: VecDeque<WorkspaceId>,
    reasons: HashMap<WorkspaceId, VisitReason>,
    visits: JoinSet<Visit>,
    visited: HashMap<task::Id, WorkspaceId>,
    poll_absent: Instant,
}

/// Watches hook files until it is dropped; does nothing if `watch` is off.
pub(in crate::daemon) async fn watch(state: Arc<DaemonState>) {
    if !state.settings.watch {
        return;
    }
    let ended = match DirectoryWatcher::open() {
        Ok(watcher) => ReloadLoop::new(Arc::clone(&state), watcher).run().await,
        Err(error) => error,
    };
    state.watch.set(WatchCoverage::Partial);
    tracing::error!(
        error = %ended,
        "changed hook files are not noticed: raise fs.inotify.max_user_instances, or have them read again with \
         `hookyard reload`"
    );
}

impl ReloadLoop {
    fn new(state: Arc<DaemonState>, watcher: DirectoryWatcher) -> Self {
        Self {
            state,
            watcher,
            subscriptions: Subscriptions::default(),
            debouncer: Debouncer::default(),
            queue: VecDeque::new(),
            reasons: HashMap::new(),
            visits: JoinSet::new(),
            visited: HashMap::new(),
            poll_absent: Instant::now(),
        }
    }

    /// Returns why it hears nothing any more.
    async fn run(mut self) -> std::io::Error {
        self.state.watch.rescan_all();
        loop {
            self.visit_next();
            let next = self.next_time();
            tokio::select! {
                wanted = self.state.watch.next_request() => self.queue_rescan(wanted),
                heard = self.watcher.next_events() => match heard {
                    Ok(events) => self.note(events),
                    Err(error) => return error,
                },
                Some(done) = self.visits.join_next_with_id() => self.conclude(done),
                () = at(next) => {
                    for id in self.debouncer.take_due(Instant::now()) {
                        self.queue_visit(id, VisitReason::Reload);
                    }
                    self.poll_absent().await;
                }
            }
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let look = self.subscriptions.has_absent().then_some(self.poll_absent);
        self.debouncer.next().into_iter().chain(look).min()
    }

    fn queue_rescan(&mut self, wanted: RescanRequest) {
        let ids = match wanted {
            RescanRequest::Some(ids) => ids,
            RescanRequest::All => {
                let mut all = self.subscriptions.all();
                all.extend(self.state.orchestrator.workspace_ids());
                all
            }
        };
        for id in ids {
            self.queue_visit(id, VisitReason::Look);
        }
    }

    fn queue_visit(&mut self, id: WorkspaceId, why: VisitReason) {
        if let Some(known) = self.reasons.get_mut(&id) {
            *known = why.max(*known);
        } else {
            self.reasons.insert(id.clone(), why);
            self.queue.push_back(id);
        }
    }

    fn note(&mut self, events: Vec<FsEvent>) {
        let now = Instant::now();
        let debouncer = &mut self.debouncer;
        // Many changes of one file come as many events.
        let mut last = None;
        for event in events {
            if last.as_ref() == Some(&event) {
                continue;
            }
            match &event {
                FsEvent::WatchedEntry(directory, name) => {
                    for id in self.subscriptions.for_entry(directory, name) {
                        debouncer.touch(id, now);
                    }
                }
                FsEvent::Directory(directory) => {
                    for id in self.subscriptions.for_directory(directory) {
                        debouncer.touch(id, now);
                    }
                }
                FsEvent::Overflow => {
                    tracing::warn!(
                        "more files changed than the system could tell: all workspaces are read again"
                    );
                    for id in &self.subscriptions.all() {
                        debouncer.touch(id, now);
                    }
                }
            }
            last = Some(event);
        }
    }

    /// Begins as many visits as there is room for.
    fn visit_next(&mut self) {
        for _ in 0..self.queue.len() {
            if self.visits.len() >= MAX_CONCURRENT_VISITS {
                return;
            }
            let Some(id) = self.queue.pop_front() else { return };
            if self.visited.values().any(|under_way| *under_way == id) {
                self.queue.push_back(id);
                continue;
            }
            let why = self.reasons.remove(&id).unwrap_or(VisitReason::Look);
            let begun = self.visits.spawn(visit(Arc::clone(&self.state), id.clone(), why));
            self.visited.insert(begun.id(), id);
        }
    }

    fn conclude(&mut self, done: Result<(task::Id, Visit), JoinError>) {
        let task = done.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let Some(id) = self.visited.remove(&task) else { return };
        let Ok((_, Visit { result })) = done else { return };
        let (watches, freshness) = match result {
            Some(VisitResult { watches, freshness }) => (watches, freshness),
            None => (WatchPlan::default(), Freshness::AsRead),
        };
        let directories: Vec<PathBuf> = watches.directories.keys().cloned().collect();
        let change = self.subscriptions.set(&id, watches);
        change.unwatched.iter().for_each(|directory| self.watcher.remove(directory));
        let heard: Vec<WatchResult> = directories.iter().map(|directory| self.add(directory)).collect();
        self.report_coverage();
        // What was heard of a directory is lost with it, and it may have gone after the workspace was read.
        if freshness == Freshness::Changed || !change.absence_changed.is_empty() {
            self.queue_visit(id, VisitReason::Reload);
        } else if !change.unwatched.is_empty()
            || heard.iter().any(|heard| matches!(heard, WatchResult::New | WatchResult::Missing))
        {
            self.queue_visit(id, VisitReason::Check);
        }
    }

    fn add(&mut self, directory: &Path) -> WatchResult {
        let was_incomplete = self.watcher.unwatchable() > 0;
        let heard = self.watcher.add(directory);
        if let (WatchResult::Failed(error), false) = (heard, was_incomplete) {
            let advice = match error {
                Errno::NOSPC => "raise fs.inotify.max_user_watches",
                Errno::ACCESS => "let hookyard's user read it",
                _ => "see what the system says",
            };
            let (directory, error) = (directory.display(), std::io::Error::from(error));
            tracing::error!(
                %directory, %error,
                "not every directory can be watched: {advice}, or have changed files read again with `hookyard reload`"
            );
        }
        heard
    }

    fn report_coverage(&self) {
        let watching =
            if self.watcher.unwatchable() > 0 { WatchCoverage::Partial } else { WatchCoverage::Full };
        if self.state.watch.set(watching) == WatchCoverage::Partial && watching == WatchCoverage::Full {
            tracing::info!("every directory can be watched again");
        }
    }

    async fn poll_absent(&mut self) {
        if !self.subscriptions.has_absent() || Instant::now() < self.poll_absent {
            return;
        }
        self.poll_absent = Instant::now() + ABSENT_POLL_INTERVAL;
        let absent = self.subscriptions.absent();
        let look = move || absent.into_iter().filter(|base| base.is_dir()).collect::<Vec<_>>();
        // It fails only if the program ends.
        let returned = task::spawn_blocking(look).await.unwrap_or_default();
        let ids: BTreeSet<WorkspaceId> =
            returned.iter().flat_map(|base| self.subscriptions.for_absent(base)).collect();
        for id in ids {
            self.queue_visit(id, VisitReason::Reload);
        }
    }
}

/// Waits for a time; for ever, if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

async fn visit(state: Arc<DaemonState>, id: WorkspaceId, why: VisitReason) -> Visit {
    if why == VisitReason::Reload
        && let Err(error) = state.orchestrator.reload_workspace(&id).await
    {
        tracing::debug!(workspace = %id, %error, "the workspace is not read again");
    }
    let Some(report) = state.orchestrator.load_report(&id) else { return Visit { result: None } };
    let look = move || {
        let system = config::system_directory(&state.settings);
        let workspace = WatchedWorkspace {
            root: &report.root,
            home: state.addresses.home.as_deref(),
            system: &system,
            dialects: &report.dialects,
            files: &report.files,
        };
        let watches = WatchPlan::of(&workspace, &fs_state::path_state);
        let freshness = match why {
            VisitReason::Check if fs_state::has_changed_since(&watches, report.at) => Freshness::Changed,
            VisitReason::Check => Freshness::AsRead,
            VisitReason::Look | VisitReason::Reload => Freshness::Unknown,
        };
        VisitResult { watches, freshness }
    };
    Visit { result: task::spawn_blocking(look).await.ok() }
}
