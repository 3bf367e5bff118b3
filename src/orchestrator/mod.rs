//! The library's front door. Owns the path of an event from the host to its run's actor; refuses to install a
//! recorder, a logger or a signal handler: those belong to the program that embeds it.

mod builder;
mod dispatch;
mod native_hook;
mod refuse;
mod run;
mod runs;
mod sample;
#[cfg(test)]
mod tests;
mod told;
mod workspaces;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use ractor::{ActorRef, concurrency::JoinHandle};
use tokio::sync::{Semaphore, broadcast};

pub use builder::{Builder, StartError};
pub use dispatch::{DispatchError, Overload};
pub use native_hook::NativeHook;
pub use run::Run;
pub use runs::{Cancelled, RunFilter, RunList};
pub use workspaces::{LoadReport, WorkspaceError};

use workspaces::Workspaces;

use crate::{
    config::Settings,
    handler::ModelClient,
    model::{Hook, RunId, WorkspaceId},
    registry::Snapshot,
    run::{Notice, RunContext},
    supervisor::{SupervisorMessage, WorkspaceSnapshots},
};

/// Runs the hooks of one or more workspaces for any number of runs. Cheap to clone; when the last clone is
/// dropped, everything it started is stopped.
///
/// ```
/// use hookyard::{NativeHook, Orchestrator, model::{EventKind, Reply, Verdict}};
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
/// let outcome = run.before_tool_dispatch("Bash", &serde_json::json!({ "command": "git push --force" })).await?;
/// assert_eq!(outcome.verdict, Verdict::Block);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Orchestrator(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    registry: Arc<ArcSwap<WorkspaceSnapshots>>,
    context: Arc<RunContext>,
    supervisor: ActorRef<SupervisorMessage>,
    supervisor_ended: Mutex<Option<JoinHandle<()>>>,
    /// What is done at a time, over all runs.
    admission: Arc<Semaphore>,
    closed: AtomicBool,
    version: AtomicU64,
    native: Vec<Hook>,
    /// The embedding program's own.
    models: Option<Arc<dyn ModelClient>>,
    workspaces: Workspaces,
}

/// How many runs are known, and how many of them have an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    /// All that are known.
    pub known: usize,
    /// Those with an actor: work in flight, or work not long ago.
    pub active: usize,
}

impl Orchestrator {
    /// Sets up an orchestrator.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A run of the only workspace, for typed events; its session has the same id.
    ///
    /// Returns an error if the id is empty, longer than 256 bytes or has control characters.
    pub fn run(&self, id: impl AsRef<str>) -> Result<Run, DispatchError> {
        let id = RunId::new(id).map_err(|source| DispatchError::id("run_id", source))?;
        Run::new(self.clone(), id)
    }

    /// Finished invocations and outcomes from now on. A receiver that is too slow loses the oldest, and is told
    /// how many.
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.context.notices.subscribe()
    }

    /// The current snapshot of a workspace, or of the only one.
    pub fn snapshot(&self, workspace: Option<&WorkspaceId>) -> Option<Arc<Snapshot>> {
        self.0.registry.load().find(workspace).map(|published| Arc::clone(&published.snapshot))
    }

    /// How many runs are known and active. Two loads.
    pub fn run_count(&self) -> RunCount {
        let (known, active) = self.0.context.directory.count();
        RunCount { known, active }
    }

    /// How many events are worked on at the moment.
    pub fn in_flight(&self) -> usize {
        in_flight(&self.0.settings).saturating_sub(self.0.admission.available_permits())
    }

    /// Takes no more events, lets those under way finish until the deadline, then cancels the rest and kills
    /// their processes. Returns whether everything finished in time.
    pub async fn shutdown(&self, deadline: Duration) -> bool {
        self.0.closed.store(true, Ordering::Release);
        // A send fails only if the supervisor is gone already.
        drop(self.0.supervisor.cast(SupervisorMessage::Drain));
        let all = u32::try_from(in_flight(&self.0.settings)).unwrap_or(u32::MAX);
        let finished = tokio::time::timeout(deadline, self.0.admission.acquire_many(all)).await.is_ok();
        self.0.supervisor.stop(None);
        let ended = self.0.supervisor_ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // The supervisor's task ends with its actor; a panic in it has been reported there.
            drop(ended.await);
        }
        for pool in self.0.context.pools.staffed.iter() {
            pool.settled().await;
        }
        finished
    }
}

/// How much is done at a time, within what a semaphore can count and be asked for at once.
fn in_flight(settings: &Settings) -> usize {
    let most = usize::try_from(u32::MAX).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
    settings.limits.in_flight.get().min(most)
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.supervisor.stop(None);
    }
}
