//! Sets up an orchestrator: workspaces, settings and native hooks. Refuses to start with native hooks that
//! could not work; broken hook files are reported instead, since they concern only themselves.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
};

use arc_swap::ArcSwap;
use ractor::Actor;
use tokio::sync::{Semaphore, broadcast};

use super::{DispatchError, Inner, NativeHook, Orchestrator, WorkspaceSource};
use crate::{
    config::{Settings, WorkerPool},
    handler::{
        ModelClient,
        agent::AgentRunner,
        command::{BaseEnvironment, CommandLimits, CommandRunner},
        http::{HttpLimits, HttpRunner},
        models::{ApiLimits, ModelDoor},
        prompt::PromptRunner,
    },
    model::{HandlerKind, Hook, Place, WorkspaceId},
    pool::{NativePool, Pool, PoolBounds, Pools},
    run::{Directory, RunContext},
    supervisor::{Registry, Supervisor, SupervisorArguments},
};

/// How many notices a slow subscriber may be behind before it loses the oldest.
const NOTICES_KEPT: usize = 4096;

/// The id of the workspace that has only native hooks.
const NATIVE_WORKSPACE: &str = "native";

/// Why an orchestrator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory given as a workspace cannot be used.
    #[error("workspace {}: {source}", path.display())]
    Workspace {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Two workspaces have the same id.
    #[error("two workspaces have the id `{0}`; give one of them another id")]
    SameWorkspace(WorkspaceId),
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
    sources: Vec<WorkspaceSource>,
    settings: Settings,
    native: Vec<NativeHook>,
    models: Option<Arc<dyn ModelClient>>,
}

impl Builder {
    /// Adds a workspace: a directory with hook files. Its id is the name of the directory.
    #[must_use]
    pub fn workspace(mut self, root: impl Into<PathBuf>) -> Self {
        self.sources.push(WorkspaceSource { root: root.into(), id: None });
        self
    }

    /// Adds a workspace under an id of your own.
    #[must_use]
    pub fn workspace_as(mut self, id: WorkspaceId, root: impl Into<PathBuf>) -> Self {
        self.sources.push(WorkspaceSource { root: root.into(), id: Some(id) });
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

    /// Starts the actors and loads the workspaces.
    ///
    /// Returns an error if a workspace's directory is not there, two workspaces have one id, or a native hook
    /// is not valid. Mistakes in hook files are no error: see [`Orchestrator::load_reports`].
    pub async fn start(self) -> Result<Orchestrator, StartError> {
        let native = native_hooks(self.native, &self.settings)?;
        let sources = self.sources.into_iter().map(canonical).collect::<Result<Vec<_>, _>>()?;
        let registry = Arc::new(ArcSwap::from_pointee(Registry::default()));
        let context = Arc::new(run_context(&self.settings, self.models.as_ref()));
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
        let native_only = sources.is_empty();
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
            sources,
            loaded: Mutex::new(HashMap::new()),
        }));
        if native_only {
            orchestrator.publish(native_place()?, Vec::new(), Vec::new(), Vec::new()).await?;
        } else {
            unique(orchestrator.reload().await?.into_iter().map(|(id, _)| id))?;
        }
        Ok(orchestrator)
    }
}

fn run_context(settings: &Settings, models: Option<&Arc<dyn ModelClient>>) -> RunContext {
    let base = BaseEnvironment::of_process(&settings.pass_environment);
    let limits = CommandLimits { stdout: settings.limits.stdout, stderr: settings.limits.stderr };
    let pools = &settings.pools;
    let runner = Arc::new(CommandRunner::new(base, limits));
    let command = Pool::new(HandlerKind::Command, bounds(&pools.command), runner);
    // As many connections as there can be requests, so that a busy server is never connected to anew.
    let limits = HttpLimits { body: settings.limits.http_body, kept: pools.http.concurrency.get() };
    let http = Pool::new(HandlerKind::Http, bounds(&pools.http), Arc::new(HttpRunner::new(limits)));
    // As many connections as there can be questions.
    let kept = pools.prompt.concurrency.get() + pools.agent.concurrency.get();
    let models = ModelDoor::new(ApiLimits { body: settings.limits.model_body, kept }, models.cloned());
    let prompt = PromptRunner::new(models.clone());
    let prompt = Pool::new(HandlerKind::Prompt, bounds(&pools.prompt), Arc::new(prompt));
    let agent = Pool::new(HandlerKind::Agent, bounds(&pools.agent), Arc::new(AgentRunner::new(models)));
    RunContext {
        directory: Arc::new(Directory::default()),
        pools: Pools {
            staffed: [command, http, prompt, agent].into(),
            native: NativePool::new(pools.native.concurrency.get(), pools.command.queue_deadline),
            gates: Arc::default(),
        },
        notices: broadcast::channel(NOTICES_KEPT).0,
        interceptor_concurrency: settings.interceptor_concurrency.get(),
        pending_deadline: settings.limits.pending_deadline,
        answers: settings.limits.answers_per_run.get(),
    }
}

fn bounds(pool: &WorkerPool) -> PoolBounds {
    PoolBounds {
        concurrency: pool.concurrency.get(),
        queue: pool.queue.get(),
        queue_deadline: pool.queue_deadline,
    }
}

fn canonical(source: WorkspaceSource) -> Result<WorkspaceSource, StartError> {
    match source.root.canonicalize() {
        Ok(root) if root.is_dir() => Ok(WorkspaceSource { root, id: source.id }),
        Ok(path) => Err(StartError::Workspace { path, source: std::io::ErrorKind::NotADirectory.into() }),
        Err(error) => Err(StartError::Workspace { path: source.root, source: error }),
    }
}

fn unique(ids: impl Iterator<Item = WorkspaceId>) -> Result<(), StartError> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id.clone()) {
            return Err(StartError::SameWorkspace(id));
        }
    }
    Ok(())
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

fn native_place() -> Result<Place, StartError> {
    let here = Path::new(".");
    let root =
        here.canonicalize().map_err(|source| StartError::Workspace { path: here.to_owned(), source })?;
    let workspace_id =
        WorkspaceId::new(NATIVE_WORKSPACE).map_err(|source| DispatchError::id("workspace_id", source))?;
    Ok(Place { workspace_id, root })
}
