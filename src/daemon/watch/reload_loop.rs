//! The loop that reloads workspaces when their files change, and updates what is watched for them.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::io::Errno;
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use super::{
    debounce::Debouncer,
    fs_state,
    state::{RescanRequest, WatchCoverage, WatchState},
    subscriptions::Subscriptions,
};
use crate::{
    Orchestrator,
    config::{DialectSelection, WatchPlan, WatchedWorkspace},
    model::WorkspaceId,
    platform::{DirectoryWatcher, FsEvent, WATCH_ADVICE, WatchResult, advice_for},
};

/// How many workspaces are visited at the same time, so that one on a slow disk does not delay the others.
const MAX_CONCURRENT_VISITS: usize = 4;

/// How often missing directories are looked for. Their parents would report them, but do not belong to the workspace.
const ABSENT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The longest that a load is taken to go on reading after it has begun.
const LONGEST_LOAD: Duration = Duration::from_secs(1);

/// Why a workspace is visited. Of two reasons for one visit, the greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VisitReason {
    /// To update what is watched.
    Rescan,
    /// To find changes between the last load and the first event of a new watch.
    Check,
    /// To load it again.
    Reload,
}

/// What a visit found.
struct VisitResult {
    plan: WatchPlan,
    /// Whether something may have changed since the workspace was loaded.
    freshness: Freshness,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Freshness {
    Unknown,
    AsLoaded,
    Changed,
}

/// What the loop works on.
#[derive(Debug)]
pub(in crate::daemon) struct WatchContext {
    pub(in crate::daemon) orchestrator: Orchestrator,
    /// The directory with the system's hooks.
    pub(in crate::daemon) system: PathBuf,
    /// The home directory with the user's own hooks.
    pub(in crate::daemon) home: Option<PathBuf>,
    pub(in crate::daemon) state: Arc<WatchState>,
}

struct ReloadLoop {
    context: Arc<WatchContext>,
    watcher: DirectoryWatcher,
    subscriptions: Subscriptions,
    debouncer: Debouncer,
    /// The workspaces to visit, each once.
    queue: VecDeque<WorkspaceId>,
    /// Why each of them is visited.
    reasons: HashMap<WorkspaceId, VisitReason>,
    visits: JoinSet<Option<VisitResult>>,
    /// The workspaces of the visits in flight.
    visiting: HashMap<task::Id, WorkspaceId>,
    /// When missing directories are looked for next.
    absent_poll_at: Instant,
}

/// Watches hook files until it is dropped, or the system refuses.
pub(in crate::daemon) async fn watch(context: WatchContext) {
    let state = Arc::clone(&context.state);
    let error = match DirectoryWatcher::open() {
        Ok(watcher) => ReloadLoop::new(Arc::new(context), watcher).run().await,
        Err(error) => error,
    };
    state.set_coverage(WatchCoverage::Partial);
    tracing::error!(
        %error,
        "changed hook files are not noticed: {WATCH_ADVICE}, or run `hookyard reload` after changes"
    );
}

impl ReloadLoop {
    fn new(context: Arc<WatchContext>, watcher: DirectoryWatcher) -> Self {
        Self {
            context,
            watcher,
            subscriptions: Subscriptions::default(),
            debouncer: Debouncer::default(),
            queue: VecDeque::new(),
            reasons: HashMap::new(),
            visits: JoinSet::new(),
            visiting: HashMap::new(),
            absent_poll_at: Instant::now(),
        }
    }

    /// Runs until watching fails. Returns its error.
    async fn run(mut self) -> std::io::Error {
        self.context.state.rescan_all();
        loop {
            self.start_visits();
            let next = self.next_time();
            tokio::select! {
                request = self.context.state.next_request() => self.queue_rescan(request),
                read = self.watcher.next_events() => match read {
                    Ok(events) => self.debounce(events),
                    Err(error) => return error,
                },
                Some(done) = self.visits.join_next_with_id() => self.conclude(done),
                () = sleep_until_some(next) => {
                    for id in self.debouncer.take_due(Instant::now()) {
                        self.queue_visit(id, VisitReason::Reload);
                    }
                    self.poll_absent().await;
                }
            }
        }
    }

    /// When the loop has to wake up next, whatever happens.
    fn next_time(&self) -> Option<Instant> {
        let poll = self.subscriptions.has_absent().then_some(self.absent_poll_at);
        self.debouncer.next().into_iter().chain(poll).min()
    }

    fn queue_rescan(&mut self, request: RescanRequest) {
        let ids = match request {
            RescanRequest::Some(ids) => ids,
            RescanRequest::All => {
                let mut all = self.subscriptions.all();
                all.extend(self.context.orchestrator.workspace_ids());
                all
            }
        };
        for id in ids {
            self.queue_visit(id, VisitReason::Rescan);
        }
    }

    fn queue_visit(&mut self, id: WorkspaceId, reason: VisitReason) {
        if let Some(known) = self.reasons.get_mut(&id) {
            *known = reason.max(*known);
        } else {
            self.reasons.insert(id.clone(), reason);
            self.queue.push_back(id);
        }
    }

    /// Has the workspaces of these events reloaded once their changes pause.
    fn debounce(&mut self, events: Vec<FsEvent>) {
        let now = Instant::now();
        let debouncer = &mut self.debouncer;
        // One change of a file often comes as several equal events.
        let mut last = None;
        for event in events {
            if last.as_ref() == Some(&event) {
                continue;
            }
            match &event {
                FsEvent::Entry(directory, name) => {
                    for id in self.subscriptions.for_entry(directory, name) {
                        debouncer.touch(id, now);
                    }
                }
                FsEvent::Directory(directory) => {
                    for id in self.subscriptions.for_directory(directory) {
                        debouncer.touch(id, now);
                    }
                }
                FsEvent::Passing(directory, since) => {
                    for id in self.subscriptions.for_directory(directory) {
                        let is_loading = self.visiting.values().any(|visiting| visiting == id);
                        if is_loading || has_loaded_since(&self.context.orchestrator, id, *since) {
                            debouncer.touch(id, now);
                        }
                    }
                }
                FsEvent::Overflow => {
                    tracing::warn!("the queue of file changes overflowed: all workspaces are reloaded");
                    for id in &self.subscriptions.all() {
                        debouncer.touch(id, now);
                    }
                }
            }
            last = Some(event);
        }
    }

    /// Starts visits up to the limit. A workspace that is being visited goes to the end of the queue.
    fn start_visits(&mut self) {
        for _ in 0..self.queue.len() {
            if self.visits.len() >= MAX_CONCURRENT_VISITS {
                return;
            }
            let Some(id) = self.queue.pop_front() else { return };
            if self.visiting.values().any(|visiting| *visiting == id) {
                self.queue.push_back(id);
                continue;
            }
            let reason = self.reasons.remove(&id).unwrap_or(VisitReason::Rescan);
            let task = self.visits.spawn(visit(Arc::clone(&self.context), id.clone(), reason));
            self.visiting.insert(task.id(), id);
        }
    }

    /// Watches what a visit found, and queues another visit if changes may have been missed.
    fn conclude(&mut self, visited: Result<(task::Id, Option<VisitResult>), JoinError>) {
        let task = visited.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let Some(id) = self.visiting.remove(&task) else { return };
        let Ok((_, result)) = visited else { return };
        let gone = VisitResult { plan: WatchPlan::default(), freshness: Freshness::AsLoaded };
        let VisitResult { plan, freshness } = result.unwrap_or(gone);
        let directories: Vec<PathBuf> = plan.directories.keys().cloned().collect();
        let change = self.subscriptions.set(&id, plan);
        for directory in &change.unwatched {
            self.watcher.remove(directory);
        }
        let mut has_gap = !change.unwatched.is_empty();
        for directory in &directories {
            has_gap |= matches!(self.watch_directory(directory), WatchResult::New | WatchResult::Missing);
        }
        self.report_coverage();
        if freshness == Freshness::Changed || !change.absence_changed.is_empty() {
            self.queue_visit(id, VisitReason::Reload);
        } else if has_gap {
            // A directory that was not watched until now, or is not any more, may have changed since the load.
            self.queue_visit(id, VisitReason::Check);
        }
    }

    /// Watches a directory. The first failure is logged, until every directory can be watched again.
    fn watch_directory(&mut self, directory: &Path) -> WatchResult {
        let is_complete = self.watcher.unwatchable() == 0;
        let result = self.watcher.add(directory);
        if let WatchResult::Failed(error) = result
            && is_complete
        {
            log_unwatchable(directory, error);
        }
        result
    }

    fn report_coverage(&self) {
        let coverage =
            if self.watcher.unwatchable() > 0 { WatchCoverage::Partial } else { WatchCoverage::Full };
        let previous = self.context.state.set_coverage(coverage);
        if previous == WatchCoverage::Partial && coverage == WatchCoverage::Full {
            tracing::info!("every directory can be watched again");
        }
    }

    /// Reloads the workspaces whose missing directories exist again, once in a while.
    async fn poll_absent(&mut self) {
        if !self.subscriptions.has_absent() || Instant::now() < self.absent_poll_at {
            return;
        }
        self.absent_poll_at = Instant::now() + ABSENT_POLL_INTERVAL;
        let absent = self.subscriptions.absent();
        let find = move || absent.into_iter().filter(|base| base.is_dir()).collect::<Vec<_>>();
        // Fails only while the runtime shuts down.
        let found = task::spawn_blocking(find).await.unwrap_or_default();
        let ids: BTreeSet<WorkspaceId> =
            found.iter().flat_map(|base| self.subscriptions.for_absent(base)).collect();
        for id in ids {
            self.queue_visit(id, VisitReason::Reload);
        }
    }
}

/// Whether a workspace may have been read since a time.
fn has_loaded_since(orchestrator: &Orchestrator, id: &WorkspaceId, since: SystemTime) -> bool {
    let since = since.checked_sub(LONGEST_LOAD).unwrap_or(SystemTime::UNIX_EPOCH);
    orchestrator.load_report(id).is_some_and(|report| report.at >= since)
}

fn log_unwatchable(directory: &Path, error: Errno) {
    let advice = advice_for(error);
    tracing::error!(
        directory = %directory.display(),
        error = %std::io::Error::from(error),
        "cannot watch every directory: {advice}, or run `hookyard reload` after changes"
    );
}

/// Waits until a time; forever if there is none.
async fn sleep_until_some(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Reloads a workspace if that is the reason, and finds out what to watch for it. None if it is gone.
async fn visit(context: Arc<WatchContext>, id: WorkspaceId, reason: VisitReason) -> Option<VisitResult> {
    if reason == VisitReason::Reload
        && let Err(error) = context.orchestrator.reload_workspace(&id).await
    {
        tracing::debug!(workspace = %id, %error, "cannot reload the workspace");
    }
    let report = context.orchestrator.load_report(&id)?;
    // Reads the disk.
    let inspect = move || {
        let workspace = WatchedWorkspace {
            root: &report.root,
            around: &report.around,
            home: context.home.as_deref(),
            system: &context.system,
            // Files of dialects that the workspace leaves out are read too: they may have guards.
            dialects: &DialectSelection::Auto,
            files: &[&report.files[..], &report.missing_files[..]].concat(),
            trust: &report.watched,
        };
        let plan = WatchPlan::of(&workspace, &fs_state::path_state);
        // What is watched then belongs to the directory that the link leads to.
        let is_replaced = report.root.canonicalize().is_ok_and(|real| real != report.root);
        let freshness = match reason {
            _ if is_replaced && report.replaced().is_none() => Freshness::Changed,
            VisitReason::Check if fs_state::has_changed_since(&plan, report.at) => Freshness::Changed,
            VisitReason::Check => Freshness::AsLoaded,
            VisitReason::Rescan | VisitReason::Reload => Freshness::Unknown,
        };
        VisitResult { plan, freshness }
    };
    task::spawn_blocking(inspect).await.ok()
}
