//! Sets up an orchestrator: workspaces, settings and native hooks. Refuses to start with native hooks that
//! could not work; broken hook files are reported instead, since they concern only themselves.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
};

use arc_swap::ArcSwap;
use ractor::Actor;
use tokio::sync::{Semaphore, broadcast};

use super::{
    DispatchError, Inner, NativeHook, Orchestrator, WorkspaceError,
    workspaces::{Workspaces, directory},
};
use crate::{
    config::{LoadedWorkspace, Settings, WorkerPoolSettings, WorkspaceSettings},
    handler::{
        ModelClient,
        agent::AgentRunner,
        command::{BaseEnvironment, CommandLimits, CommandRunner},
        http::{HttpLimits, HttpRunner},
        models::{ApiLimits, ModelDoor},
        prompt::PromptRunner,
    },
    model::{HandlerKind, Hook, Workspace, WorkspaceId},
    pool::{HandlerPools, HookLimits, NativeTaskPool, Pool, PoolLimits},
    run::{OutcomeObserver, RunContext, RunDirectory},
    supervisor::{Supervisor, SupervisorArguments, WorkspaceSnapshots},
    telemetry::Meters,
};

/// How many notices a slow subscriber may be behind before it loses the oldest.
const NOTICES_KEPT: usize = 4096;

/// The id of the workspace that has only native hooks.
const NATIVE_WORKSPACE: &str = "native";

/// Why an orchestrator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Two workspaces have the same id.
    #[error("two workspaces have the id `{0}`; give one of them another id")]
    SameWorkspace(WorkspaceId),
    /// A directory given as a workspace cannot be one.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A native hook cannot work.
    #[error("native hook `{name}`: {message}")]
    NativeHook {
        /// Its name as given.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The actors could not be started.
    #[error("the supervisor did not start: {0}")]
    Actor(#[from] ractor::SpawnErr),
    /// The orchestrator was stopped while it started.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// Collects what an orchestrator is made of.
#[derive(Debug, Default)]
pub struct Builder {
    workspaces: Vec<(Option<WorkspaceId>, WorkspaceSettings)>,
    settings: Settings,
    native: Vec<NativeHook>,
    models: Option<Arc<dyn ModelClient>>,
    observers: Vec<Arc<dyn OutcomeObserver>>,
    beginning: Beginning,
}

/// What an orchestrator without workspaces begins with.
#[derive(Debug, Default)]
enum Beginning {
    /// A workspace of its own, which has only native hooks.
    #[default]
    NativeWorkspace,
    /// None: they are registered later.
    Empty,
}

impl Builder {
    /// Adds a workspace: a directory with hook files. Its id is the name of the directory.
    #[must_use]
    pub fn workspace(mut self, root: impl Into<PathBuf>) -> Self {
        self.workspaces.push((None, WorkspaceSettings::new(root)));
        self
    }

    /// Adds a workspace under an id of your own.
    #[must_use]
    pub fn workspace_as(mut self, id: WorkspaceId, root: impl Into<PathBuf>) -> Self {
        self.workspaces.push((Some(id), WorkspaceSettings::new(root)));
        self
    }

    /// Begins without any workspace if none is added: they are [registered](Orchestrator::register) later, and
    /// until then no event has one.
    #[must_use]
    pub fn workspaces_later(mut self) -> Self {
        self.beginning = Beginning::Empty;
        self
    }

    /// Uses these settings instead of the defaults.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a closure as a hook of every workspace.
    #[must_use]
    pub fn native_hook(mut self, hook: NativeHook) -> Self {
        self.native.push(hook);
        self
    }

    /// Has prompt and agent hooks ask this client for every model that it [has](ModelClient::has); the settings'
    /// models are asked as the settings say.
    #[must_use]
    pub fn model_client(mut self, client: impl ModelClient + 'static) -> Self {
        self.models = Some(Arc::new(client));
        self
    }

    /// Has this witness told of every outcome, in the moment it is there, after those named before it. Events that no
    /// hook wanted are not told.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn OutcomeObserver>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Starts the actors and loads the workspaces.
    ///
    /// Returns an error if a workspace's directory is not there, two workspaces have one id, or a native hook
    /// is not valid. Mistakes in hook files are no error: see [`Orchestrator::load_reports`].
    pub async fn start(self) -> Result<Orchestrator, StartError> {
        let native = native_hooks(self.native, &self.settings)?;
        let workspaces = named(self.workspaces)?;
        let registry = Arc::new(ArcSwap::from_pointee(WorkspaceSnapshots::default()));
        let context = Arc::new(run_context(&self.settings, self.models.as_ref(), self.observers));
        let arguments = SupervisorArguments {
            context: Arc::clone(&context),
            registry: Arc::clone(&registry),
            most_runs: self.settings.limits.runs.get(),
            run_idle: self.settings.run_idle,
            run_forget: self.settings.run_forget,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the supervisor is what all other actors are linked to"
        )]
        let (supervisor, ended) = Supervisor::spawn(None, Supervisor, arguments).await?;
        let orchestrator = Orchestrator(Arc::new(Inner {
            registry,
            context,
            supervisor,
            supervisor_ended: Mutex::new(Some(ended)),
            admission: Arc::new(Semaphore::new(super::in_flight(&self.settings))),
            settings: self.settings,
            closed: AtomicBool::new(false),
            version: AtomicU64::new(0),
            native,
            models: self.models,
            workspaces: Workspaces::default(),
        }));
        if workspaces.is_empty() && matches!(self.beginning, Beginning::NativeWorkspace) {
            orchestrator.publish(LoadedWorkspace::empty(native_place()?)).await?;
        }
        for (id, settings) in workspaces {
            orchestrator.register(&id, settings).await?;
        }
        Ok(orchestrator)
    }
}

fn run_context(
    settings: &Settings,
    models: Option<&Arc<dyn ModelClient>>,
    observers: Vec<Arc<dyn OutcomeObserver>>,
) -> RunContext {
    let meters = Meters::resolve();
    let base = BaseEnvironment::of_process(&settings.pass_environment);
    let limits = CommandLimits { stdout: settings.limits.stdout, stderr: settings.limits.stderr };
    let pools = &settings.pools;
    let runner = Arc::new(CommandRunner::new(base, limits, &meters.processes));
    let command = Pool::new(HandlerKind::Command, bounds(&pools.command), runner, &meters);
    // As many connections as there can be requests, so that a busy server is never connected to anew.
    let limits = HttpLimits { body: settings.limits.http_body, kept: pools.http.concurrency.get() };
    let http = Pool::new(HandlerKind::Http, bounds(&pools.http), Arc::new(HttpRunner::new(limits)), &meters);
    // As many connections as there can be questions.
    let kept = pools.prompt.concurrency.get() + pools.agent.concurrency.get();
    let models = ModelDoor::new(ApiLimits { body: settings.limits.model_body, kept }, models.cloned());
    let prompt = PromptRunner::new(models.clone());
    let prompt = Pool::new(HandlerKind::Prompt, bounds(&pools.prompt), Arc::new(prompt), &meters);
    let agent =
        Pool::new(HandlerKind::Agent, bounds(&pools.agent), Arc::new(AgentRunner::new(models)), &meters);
    RunContext {
        directory: Arc::new(RunDirectory::default()),
        pools: HandlerPools {
            staffed: [command, http, prompt, agent].into(),
            native: NativeTaskPool::new(
                pools.native.concurrency.get(),
                pools.command.queue_deadline,
                &meters,
            ),
            hook_limits: Arc::new(HookLimits::new(&meters)),
        },
        notices: broadcast::channel(NOTICES_KEPT).0,
        observers,
        interceptor_concurrency: settings.interceptor_concurrency.get(),
        pending_deadline: settings.limits.pending_deadline,
        answers: settings.limits.answers_per_run.get(),
        meters,
    }
}

fn bounds(pool: &WorkerPoolSettings) -> PoolLimits {
    PoolLimits {
        concurrency: pool.concurrency.get(),
        queue: pool.queue.get(),
        queue_deadline: pool.queue_deadline,
    }
}

/// The workspaces with their ids, of which no two may be the same.
fn named(
    given: Vec<(Option<WorkspaceId>, WorkspaceSettings)>,
) -> Result<Vec<(WorkspaceId, WorkspaceSettings)>, StartError> {
    let mut seen = HashSet::new();
    let mut workspaces = Vec::with_capacity(given.len());
    for (id, settings) in given {
        let settings = directory(settings)?;
        let id = id.unwrap_or_else(|| WorkspaceId::of_directory(&settings.root));
        if !seen.insert(id.clone()) {
            return Err(StartError::SameWorkspace(id));
        }
        workspaces.push((id, settings));
    }
    Ok(workspaces)
}

fn native_hooks(native: Vec<NativeHook>, settings: &Settings) -> Result<Vec<Hook>, StartError> {
    let mut hooks: Vec<Hook> = Vec::with_capacity(native.len());
    for (position, hook) in native.into_iter().enumerate() {
        let name = hook.name().to_owned();
        let refuse = |message: String| StartError::NativeHook { name: name.clone(), message };
        let hook = hook.into_hook(position, settings.default_timeout).map_err(refuse)?;
        if hooks.iter().any(|known| known.name == hook.name) {
            return Err(refuse("another native hook has this name".to_owned()));
        }
        hooks.push(hook);
    }
    Ok(hooks)
}

fn native_place() -> Result<Workspace, StartError> {
    let here = Path::new(".");
    let root =
        here.canonicalize().map_err(|source| WorkspaceError::Directory { path: here.to_owned(), source })?;
    let workspace_id =
        WorkspaceId::new(NATIVE_WORKSPACE).map_err(|source| DispatchError::id("workspace_id", source))?;
    Ok(Workspace { id: workspace_id, root })
}
