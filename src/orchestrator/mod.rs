//! The library's front door. Owns the path of an event from the host to its run's actor; refuses to install a
//! recorder, a logger or a signal handler: those belong to the program that embeds it.

mod builder;
mod dispatch;
mod native_hook;
mod run;
mod runs;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::PathBuf,
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

use crate::{
    config::{self, Settings},
    handler::ModelClient,
    model::{Diagnostic, Hook, Place, RunId, Severity, Source, WorkspaceId},
    registry::Snapshot,
    run::{Notice, RunContext},
    supervisor::{Registry, SupervisorMessage},
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
    registry: Arc<ArcSwap<Registry>>,
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
    sources: Vec<WorkspaceSource>,
    loaded: Mutex<HashMap<WorkspaceId, LoadReport>>,
}

/// A directory that was given as a workspace, and the id it was given, if any.
#[derive(Debug, Clone)]
struct WorkspaceSource {
    root: PathBuf,
    id: Option<WorkspaceId>,
}

/// What was found when a workspace was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadReport {
    /// The version of its registry.
    pub version: u64,
    /// How many hooks it has.
    pub hooks: usize,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// What there is to say about them.
    pub diagnostics: Vec<Diagnostic>,
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

    /// Reads the hook files of every workspace again. Events under way keep the hooks they began with.
    ///
    /// Returns an error if hookyard is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        let mut reports = Vec::new();
        for source in self.0.sources.clone() {
            let settings = self.0.settings.clone();
            let client = self.0.models.clone();
            let load = move || {
                let outside = config::Outside {
                    environment: &|name| std::env::var(name).ok(),
                    models: &|reference| client.as_ref().is_some_and(|client| client.has(reference)),
                };
                config::load_for_host(&source.root, source.id, &settings, &outside)
            };
            let loaded = tokio::task::spawn_blocking(load).await.map_err(|_| DispatchError::ShuttingDown)?;
            let id = loaded.place.workspace_id.clone();
            let report = self.publish(loaded.place, loaded.hooks, loaded.files, loaded.diagnostics).await?;
            reports.push((id, report));
        }
        Ok(reports)
    }

    /// What was found when the workspaces were loaded last.
    pub fn load_reports(&self) -> HashMap<WorkspaceId, LoadReport> {
        self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current snapshot of a workspace, or of the only one.
    pub fn snapshot(&self, workspace: Option<&WorkspaceId>) -> Option<Arc<Snapshot>> {
        self.0.registry.load().find(workspace).cloned()
    }

    /// How many runs are known and active. Two loads.
    pub fn run_count(&self) -> RunCount {
        let (known, active) = self.0.context.directory.count();
        RunCount { known, active }
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

    async fn publish(
        &self,
        place: Place,
        mut hooks: Vec<Hook>,
        files: Vec<PathBuf>,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Result<LoadReport, DispatchError> {
        let id = place.workspace_id.clone();
        diagnostics.extend(self.0.native.iter().filter_map(|native| shadow(&mut hooks, native)));
        hooks.extend(self.0.native.iter().cloned());
        let version = self.0.version.fetch_add(1, Ordering::Relaxed) + 1;
        let report = LoadReport { version, hooks: hooks.len(), files, diagnostics };
        let snapshot = Arc::new(Snapshot::new(version, Arc::new(place), hooks));
        ractor::call!(self.0.supervisor, |reply| SupervisorMessage::Publish(Arc::clone(&snapshot), reply))
            .map_err(|_| DispatchError::ShuttingDown)?;
        self.0.context.pools.reloaded(&snapshot.place().root, snapshot.hooks());
        self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(id, report.clone());
        Ok(report)
    }
}

/// Leaves out the hook of a file that has the name of a native hook: of two scopes, the higher one wins.
fn shadow(hooks: &mut Vec<Hook>, native: &Hook) -> Option<Diagnostic> {
    let position = hooks.iter().position(|hook| hook.name == native.name)?;
    let Source { file, line, .. } = hooks.remove(position).source;
    let message = format!("the name `{}` is that of a native hook, so this one is not loaded", native.name);
    let mut diagnostic =
        Diagnostic::of_file(Severity::Error, "duplicate-name", &file?, message).help("rename it");
    (diagnostic.line, diagnostic.column) = (line, 1);
    Some(diagnostic)
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
