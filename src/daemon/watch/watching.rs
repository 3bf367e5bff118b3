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
    super::shared::Shared,
    concerns::Concerns,
    disk,
    ears::{Ears, Heard, Sound},
    settling::Settling,
    state::{Wanted, Watching},
};
use crate::{
    config::{self, WatchPlan, WatchedWorkspace},
    model::WorkspaceId,
};

/// How many workspaces are visited at the same time, so that one on a slow disk does not hold up the others.
const VISITED_AT_ONCE: usize = 4;

/// How often directories are looked for that are not there. The one above would tell, but it is not the workspace's.
const LOOKED_FOR: Duration = Duration::from_secs(1);

/// Why a visit is made; of two reasons for one visit, the greater one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
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
    found: Option<Found>,
}

struct Found {
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

struct Watch {
    shared: Arc<Shared>,
    ears: Ears,
    concerns: Concerns,
    settling: Settling,
    queue: VecDeque<WorkspaceId>,
    reasons: HashMap<WorkspaceId, Why>,
    visits: JoinSet<Visit>,
    visited: HashMap<task::Id, WorkspaceId>,
    look_for_absent: Instant,
}

/// Watches until it is dropped, if the settings want it.
pub(in crate::daemon) async fn watch(shared: Arc<Shared>) {
    if !shared.settings.watch {
        return;
    }
    let ended = match Ears::open() {
        Ok(ears) => Watch::new(Arc::clone(&shared), ears).run().await,
        Err(error) => error,
    };
    shared.watch.set(Watching::Partly);
    tracing::error!(
        error = %ended,
        "changed hook files are not noticed: raise fs.inotify.max_user_instances, or have them read again with \
         `hookyard reload`"
    );
}

impl Watch {
    fn new(shared: Arc<Shared>, ears: Ears) -> Self {
        Self {
            shared,
            ears,
            concerns: Concerns::default(),
            settling: Settling::default(),
            queue: VecDeque::new(),
            reasons: HashMap::new(),
            visits: JoinSet::new(),
            visited: HashMap::new(),
            look_for_absent: Instant::now(),
        }
    }

    /// Returns why it hears nothing any more.
    async fn run(mut self) -> std::io::Error {
        self.shared.watch.look_at_all();
        loop {
            self.visit_next();
            let next = self.next_time();
            tokio::select! {
                wanted = self.shared.watch.wanted() => self.want(wanted),
                heard = self.ears.hear() => match heard {
                    Ok(sounds) => self.note(sounds),
                    Err(error) => return error,
                },
                Some(done) = self.visits.join_next_with_id() => self.conclude(done),
                () = at(next) => {
                    for id in self.settling.take_due(Instant::now()) {
                        self.want_visit(id, Why::Reload);
                    }
                    self.look_for_absent().await;
                }
            }
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let look = self.concerns.has_absent().then_some(self.look_for_absent);
        self.settling.next().into_iter().chain(look).min()
    }

    fn want(&mut self, wanted: Wanted) {
        let ids = match wanted {
            Wanted::Some(ids) => ids,
            Wanted::All => {
                let mut all = self.concerns.all();
                all.extend(self.shared.orchestrator.workspace_ids());
                all
            }
        };
        for id in ids {
            self.want_visit(id, Why::Look);
        }
    }

    fn want_visit(&mut self, id: WorkspaceId, why: Why) {
        if let Some(known) = self.reasons.get_mut(&id) {
            *known = why.max(*known);
        } else {
            self.reasons.insert(id.clone(), why);
            self.queue.push_back(id);
        }
    }

    fn note(&mut self, sounds: Vec<Sound>) {
        let now = Instant::now();
        let settling = &mut self.settling;
        // Many changes of one file come as many sounds.
        let mut last = None;
        for sound in sounds {
            if last.as_ref() == Some(&sound) {
                continue;
            }
            match &sound {
                Sound::Entry(directory, name) => {
                    for id in self.concerns.of_entry(directory, name) {
                        settling.touch(id, now);
                    }
                }
                Sound::Directory(directory) => {
                    for id in self.concerns.of_directory(directory) {
                        settling.touch(id, now);
                    }
                }
                Sound::Lost => {
                    tracing::warn!(
                        "more files changed than the system could tell: all workspaces are read again"
                    );
                    for id in &self.concerns.all() {
                        settling.touch(id, now);
                    }
                }
            }
            last = Some(sound);
        }
    }

    /// Begins as many visits as there is room for.
    fn visit_next(&mut self) {
        for _ in 0..self.queue.len() {
            if self.visits.len() >= VISITED_AT_ONCE {
                return;
            }
            let Some(id) = self.queue.pop_front() else { return };
            if self.visited.values().any(|under_way| *under_way == id) {
                self.queue.push_back(id);
                continue;
            }
            let why = self.reasons.remove(&id).unwrap_or(Why::Look);
            let begun = self.visits.spawn(visit(Arc::clone(&self.shared), id.clone(), why));
            self.visited.insert(begun.id(), id);
        }
    }

    fn conclude(&mut self, done: Result<(task::Id, Visit), JoinError>) {
        let task = done.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let Some(id) = self.visited.remove(&task) else { return };
        let Ok((_, Visit { found })) = done else { return };
        let (watches, freshness) = match found {
            Some(Found { watches, freshness }) => (watches, freshness),
            None => (WatchPlan::default(), Freshness::AsRead),
        };
        let directories: Vec<PathBuf> = watches.directories.keys().cloned().collect();
        let shift = self.concerns.set(&id, watches);
        shift.ended.iter().for_each(|directory| self.ears.ignore(directory));
        let heard: Vec<Heard> = directories.iter().map(|directory| self.listen(directory)).collect();
        self.tell_how_it_goes();
        // What was heard of a directory is lost with it, and it may have gone after the workspace was read.
        if freshness == Freshness::Changed || !shift.turned.is_empty() {
            self.want_visit(id, Why::Reload);
        } else if !shift.ended.is_empty()
            || heard.iter().any(|heard| matches!(heard, Heard::Anew | Heard::Gone))
        {
            self.want_visit(id, Why::Check);
        }
    }

    fn listen(&mut self, directory: &Path) -> Heard {
        let was_deaf = self.ears.deaf() > 0;
        let heard = self.ears.listen(directory);
        if let (Heard::Not(error), false) = (heard, was_deaf) {
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

    fn tell_how_it_goes(&self) {
        let watching = if self.ears.deaf() > 0 { Watching::Partly } else { Watching::On };
        if self.shared.watch.set(watching) == Watching::Partly && watching == Watching::On {
            tracing::info!("every directory can be watched again");
        }
    }

    async fn look_for_absent(&mut self) {
        if !self.concerns.has_absent() || Instant::now() < self.look_for_absent {
            return;
        }
        self.look_for_absent = Instant::now() + LOOKED_FOR;
        let absent = self.concerns.absent();
        let look = move || absent.into_iter().filter(|base| base.is_dir()).collect::<Vec<_>>();
        // It fails only if the program ends.
        let returned = task::spawn_blocking(look).await.unwrap_or_default();
        let ids: BTreeSet<WorkspaceId> =
            returned.iter().flat_map(|base| self.concerns.of_absent(base)).collect();
        for id in ids {
            self.want_visit(id, Why::Reload);
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

async fn visit(shared: Arc<Shared>, id: WorkspaceId, why: Why) -> Visit {
    if why == Why::Reload
        && let Err(error) = shared.orchestrator.reload_workspace(&id).await
    {
        tracing::debug!(workspace = %id, %error, "the workspace is not read again");
    }
    let Some(report) = shared.orchestrator.load_report(&id) else { return Visit { found: None } };
    let look = move || {
        let system = config::system_directory(&shared.settings);
        let workspace = WatchedWorkspace {
            root: &report.root,
            home: shared.places.home.as_deref(),
            system: &system,
            dialects: &report.dialects,
            files: &report.files,
        };
        let watches = WatchPlan::of(&workspace, &disk::standing);
        let freshness = match why {
            Why::Check if disk::has_changed_since(&watches, report.at) => Freshness::Changed,
            Why::Check => Freshness::AsRead,
            Why::Look | Why::Reload => Freshness::Unknown,
        };
        Found { watches, freshness }
    };
    Visit { found: task::spawn_blocking(look).await.ok() }
}
