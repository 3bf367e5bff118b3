//! The handle of a running orchestrator, and the state that its clones share.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use ractor::{ActorRef, concurrency::JoinHandle};
use tokio::sync::Semaphore;

use super::{notice_stream::NoticeStream, workspace_table::WorkspaceTable};
use crate::{
    config::{LastGoodStore, LoadOptions, ManagedLevel, Settings},
    handler::{HookWorkers, ModelClient},
    model::{Event, Hook, WorkspaceId},
    registry::Snapshot,
    run::{EventSender, RunContext},
    supervisor::{SupervisorMessage, WorkspaceSnapshots},
};
#[cfg(feature = "daemon")]
use crate::{model::HandlerKind, telemetry::PoolOccupancy};

/// Runs the hooks of one or more workspaces for any number of runs. Cheap to clone; when the last clone is
/// dropped, everything it started is stopped.
///
/// ```
/// use hookyard::{NativeHook, Orchestrator, ToolCall, model::{EventKind, Reply, Verdict}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let guard = NativeHook::inline("no-force-push", [EventKind::BeforeToolDispatch], |draft| {
///     let input = draft.target(hookyard::model::Target::ToolInput).map(|json| json.as_str());
///     Ok(match input {
///         Some(text) if text.contains("push --force") => Reply::block("force pushes are not allowed"),
///         _ => Reply::proceed(),
///     })
/// });
/// let orchestrator = Orchestrator::builder().native_hook(guard).start().await?;
/// let run = orchestrator.run("run-1")?;
/// let input = serde_json::json!({ "command": "git push --force" });
/// let outcome = run.before_tool_dispatch(&ToolCall::new("Bash", &input)).await?;
/// assert_eq!(outcome.verdict, Verdict::Block);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Orchestrator(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) settings: Arc<Settings>,
    pub(super) registry: Arc<ArcSwap<WorkspaceSnapshots>>,
    pub(super) context: Arc<RunContext>,
    pub(super) supervisor: ActorRef<SupervisorMessage>,
    pub(super) supervisor_ended: Mutex<Option<JoinHandle<()>>>,
    /// Permits for in-flight events (`limits.in_flight`).
    pub(super) admission: Arc<Semaphore>,
    /// Those among them that the events of anonymous senders may take.
    pub(super) anonymous: Arc<Semaphore>,
    pub(super) closed: AtomicBool,
    pub(super) version: AtomicU64,
    pub(super) native: Vec<Hook>,
    /// The model client of the embedding program.
    pub(super) models: Option<Arc<dyn ModelClient>>,
    pub(super) workspaces: WorkspaceTable,
    /// How workspaces are loaded.
    pub(super) load_options: LoadOptions,
    /// Where the last good rules are kept, if they are.
    pub(super) last_good: OnceLock<LastGoodStore>,
    /// The hooks of the signed bundle, if one is configured.
    pub(super) managed: ArcSwapOption<ManagedLevel>,
    /// Records dispatched events, in test doubles only.
    pub(super) event_log: Option<Arc<EventLog>>,
}

/// Every event that was dispatched, in order.
#[derive(Debug, Default)]
pub(crate) struct EventLog(Mutex<Vec<Event>>);

impl EventLog {
    pub(super) fn record(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().clone()
    }

    /// Forgets them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// How many runs are known, and how many of them have an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCount {
    /// All that are known.
    pub known: usize,
    /// Those with an actor: work in flight, or work not long ago.
    pub active: usize,
}

impl Orchestrator {
    /// Finished invocations and outcomes from now on. A subscriber that is too slow loses the oldest and learns how
    /// many; see [`NoticeStream`].
    pub fn subscribe(&self) -> NoticeStream {
        NoticeStream::new(self.0.context.notices.subscribe())
    }

    /// The current snapshot of a workspace, or of the only one.
    pub fn snapshot(&self, workspace: Option<&WorkspaceId>) -> Option<Arc<Snapshot>> {
        self.0.registry.load().find(workspace).map(|published| Arc::clone(&published.snapshot))
    }

    /// How many runs are known and active. Costs two atomic loads.
    pub fn run_count(&self) -> RunCount {
        let (known, active) = self.0.context.directory.count();
        RunCount { known, active }
    }

    /// The workers of each hook that has any, with its workspace.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon shows them"))]
    pub(crate) fn hook_workers(&self) -> Vec<(WorkspaceId, HookWorkers)> {
        let snapshots = self.snapshots();
        // Of two workspaces in one directory, the first.
        let workspaces = snapshots.iter().rev().map(|snapshot| snapshot.workspace());
        let ids: HashMap<&Path, &WorkspaceId> =
            workspaces.map(|workspace| (workspace.root.as_path(), &workspace.id)).collect();
        let workers = self.0.context.pools.hook_workers().into_iter();
        workers.filter_map(|workers| Some(((*ids.get(workers.root.as_path())?).clone(), workers))).collect()
    }

    /// How much of each pool is in use.
    #[cfg(feature = "daemon")]
    pub(crate) fn pool_occupancies(&self) -> Vec<(HandlerKind, PoolOccupancy)> {
        self.0.context.pools.occupancies()
    }

    /// How many events are in flight.
    pub fn in_flight(&self) -> usize {
        most_in_flight(&self.0.settings).saturating_sub(self.0.admission.available_permits())
    }

    /// Takes no more events, lets those under way finish until the deadline, then cancels the rest and kills
    /// their processes. Returns whether everything finished in time.
    pub async fn shutdown(&self, deadline: Duration) -> bool {
        self.0.closed.store(true, Ordering::Release);
        self.0.context.close_outbox();
        #[cfg(feature = "cluster")]
        if let Some(worker) = self.0.context.ends.worker.get() {
            worker.stop_pulling();
        }
        // A send fails only if the supervisor is gone already.
        drop(self.0.supervisor.cast(SupervisorMessage::Drain));
        let all = u32::try_from(most_in_flight(&self.0.settings)).unwrap_or(u32::MAX);
        let finished = tokio::time::timeout(deadline, self.0.admission.acquire_many(all)).await.is_ok();
        self.0.supervisor.stop(None);
        let ended = self.0.supervisor_ended.lock().take();
        if let Some(ended) = ended {
            // The supervisor's task ends with its actor; a panic in it has been reported there.
            drop(ended.await);
        }
        for pool in self.0.context.pools.staffed.iter() {
            pool.settled().await;
            pool.end_escaped().await;
        }
        #[cfg(feature = "cluster")]
        if let Some(worker) = self.0.context.ends.worker.get() {
            worker.close().await;
        }
        if let Some(store) = self.0.context.directory.store() {
            // Fails only while the runtime shuts down, when nobody waits for the result.
            drop(tokio::task::spawn_blocking(move || store.close()).await);
        }
        finished
    }
}

/// `limits.in_flight`, within what a semaphore can count and be asked for at once.
pub(super) fn most_in_flight(settings: &Settings) -> usize {
    let most = usize::try_from(u32::MAX).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
    settings.limits.in_flight.get().min(most)
}

/// How many of them may be events of anonymous senders.
pub(super) fn most_anonymous(settings: &Settings) -> usize {
    EventSender::Anonymous.part_of(most_in_flight(settings))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.context.close_outbox();
        self.supervisor.stop(None);
    }
}
