//! The builder of an orchestrator: workspaces, settings, native hooks, observers.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use ractor::Actor;
use tokio::sync::{Semaphore, broadcast};

use super::{
    error::{DispatchError, StartError, WorkspaceError},
    handle::{EventLog, Inner, Orchestrator, most_anonymous, most_in_flight},
    load_report::LoadReport,
    native_hook::NativeHook,
    workspace_table::{WorkspaceTable, with_real_root},
};
use crate::{
    config::{self, LoadOptions, Settings, TrustPolicy, WorkerPoolSettings, WorkspaceSettings},
    handler::{
        CommandLimits, HttpLimits, ModelClient, OwnListeners,
        agent::AgentRunner,
        api_client,
        command::{BaseEnvironment, CommandRunner},
        http_runner,
        models::ModelRouter,
        prompt::PromptRunner,
    },
    model::{HandlerKind, Hook, Workspace, WorkspaceId},
    pool::{HandlerPools, HookLimits, NativeTaskPool, Pool, PoolLimits},
    run::{AnswerLimits, OutcomeObserver, QueueEnds, RunContext, RunDirectory},
    supervisor::{Supervisor, SupervisorArguments, WorkspaceSnapshots},
    telemetry::Meters,
};

/// How many notices a slow subscriber may be behind before it loses the oldest.
const NOTICES_KEPT: usize = 4096;

/// The id of the workspace that has only native hooks.
const NATIVE_WORKSPACE: &str = "native";

/// Configures an orchestrator before it starts.
#[derive(Debug, Default)]
pub struct Builder {
    workspaces: Vec<(Option<WorkspaceId>, WorkspaceSettings)>,
    settings: Settings,
    native: Vec<NativeHook>,
    models: Option<Arc<dyn ModelClient>>,
    observers: Vec<Arc<dyn OutcomeObserver>>,
    event_log: Option<Arc<EventLog>>,
    without_workspaces: WithoutWorkspaces,
    hook_file_errors: HookFileErrors,
    trust: Option<TrustPolicy>,
    own_listeners: Option<OwnListeners>,
    #[cfg(feature = "store")]
    data: Option<PathBuf>,
    load_options: LoadOptions,
}

/// What an orchestrator starts with if no workspace is added.
#[derive(Debug, Default)]
enum WithoutWorkspaces {
    /// A workspace that has only native hooks.
    #[default]
    NativeWorkspace,
    /// Nothing: workspaces are registered later.
    Nothing,
}

/// What errors in hook files do to the start.
#[derive(Debug, Default, PartialEq, Eq)]
enum HookFileErrors {
    /// They are in the load reports.
    #[default]
    Reported,
    /// They make it fail.
    Fatal,
}

impl Orchestrator {
    /// Configures an orchestrator; [`Builder::start`] starts it.
    pub fn builder() -> Builder {
        Builder::default()
    }
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

    /// Adds a workspace as the settings declare it.
    #[cfg(feature = "cli")]
    pub(crate) fn workspace_with(mut self, id: Option<WorkspaceId>, workspace: WorkspaceSettings) -> Self {
        self.workspaces.push((id, workspace));
        self
    }

    /// Starts without a workspace if none is added. Workspaces are [registered](Orchestrator::register) later; until
    /// then every event is an error.
    #[must_use]
    pub fn workspaces_later(mut self) -> Self {
        self.without_workspaces = WithoutWorkspaces::Nothing;
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

    /// Sends the model calls of prompt and agent hooks to this client for every model that it
    /// [has](ModelClient::has). The models of the settings are called as the settings say.
    #[must_use]
    pub fn model_client(mut self, client: impl ModelClient + 'static) -> Self {
        self.models = Some(Arc::new(client));
        self
    }

    /// Calls this observer with every outcome, after the observers added before it. Events that no hook wanted are
    /// not reported.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn OutcomeObserver>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Says where hookyard listens, if that is not as the settings say. No http hook may connect there.
    #[cfg(feature = "daemon")]
    pub(crate) fn own_listeners(mut self, listeners: OwnListeners) -> Self {
        self.own_listeners = Some(listeners);
        self
    }

    /// Loads workspaces with these options.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(crate) fn load_options(self, load_options: LoadOptions) -> Self {
        Self { load_options, ..self }
    }

    /// Records every event that is dispatched, for test doubles.
    pub(crate) fn event_log(mut self, log: Arc<EventLog>) -> Self {
        self.event_log = Some(log);
        self
    }

    /// Makes mistakes because of which a hook is not loaded a start error that lists them: all errors, and those
    /// warnings about agents' settings files that are [skipped](crate::model::Diagnostic::skipped) hooks. Other warnings
    /// do not count, and neither do workspaces registered after the start.
    ///
    /// Without it, a broken hook file leaves out its hooks and the start succeeds, even if one of them is a guard.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use hookyard::{Orchestrator, StartError};
    ///
    /// let workspace = tempfile::tempdir()?;
    /// std::fs::create_dir_all(workspace.path().join(".openharness/hooks"))?;
    /// std::fs::write(workspace.path().join(".openharness/hooks/guard.yaml"), "name: guard\n")?;
    /// let started = Orchestrator::builder().workspace(workspace.path()).strict().start().await;
    /// assert!(matches!(started, Err(StartError::HookFiles(errors)) if !errors.is_empty()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.hook_file_errors = HookFileErrors::Fatal;
        self
    }

    /// Says whether hooks of workspaces need the trust of a person before they run, whatever the settings say. Give
    /// [`TrustPolicy::Off`] only for directories whose content is that of the program itself.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use hookyard::{Orchestrator, config::TrustPolicy};
    ///
    /// let workspace = tempfile::tempdir()?;
    /// let builder = Orchestrator::builder().workspace(workspace.path());
    /// let orchestrator = builder.trust(TrustPolicy::Off).start().await?;
    /// # drop(orchestrator);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn trust(mut self, policy: TrustPolicy) -> Self {
        self.trust = Some(policy);
        self
    }

    /// Keeps halts, the hooks that have run once in their run, and how often in a row an agent was kept from stopping, in
    /// this directory, so that they survive a restart. A halt is on disk before it is answered. The rules of files without
    /// mistakes are kept there too, for a start that finds the files broken. Without a directory, all of it is forgotten
    /// at the end of the program. The setting `data` is the daemon's and does not count here.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn data(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data = Some(directory.into());
        self
    }

    /// Starts the actors and loads the workspaces.
    ///
    /// Returns an error if a workspace's directory is not there, two workspaces have one id, a native hook is not valid,
    /// or the state of runs cannot be kept where it should be. Mistakes in hook files are an error only if the builder is
    /// [strict](Builder::strict); see [`Orchestrator::load_reports`].
    pub async fn start(mut self) -> Result<Orchestrator, StartError> {
        self.settings.trust = self.trust.unwrap_or(self.settings.trust);
        let native = native_hooks(self.native, &self.settings)?;
        let workspaces = with_ids(self.workspaces, &self.settings)?;
        let registry = Arc::new(ArcSwap::from_pointee(WorkspaceSnapshots::default()));
        let own = self.own_listeners.unwrap_or_else(|| configured_listeners(&self.settings));
        let context = Arc::new(run_context(&self.settings, self.models.as_ref(), self.observers, own));
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
        let (supervisor, ended) = Supervisor::spawn(None, Supervisor, arguments)
            .await
            .map_err(|error| StartError::Supervisor(error.to_string()))?;
        let orchestrator = Orchestrator(Arc::new(Inner {
            registry,
            context,
            supervisor,
            supervisor_ended: Mutex::new(Some(ended)),
            admission: Arc::new(Semaphore::new(most_in_flight(&self.settings))),
            anonymous: Arc::new(Semaphore::new(most_anonymous(&self.settings))),
            settings: Arc::new(self.settings),
            closed: AtomicBool::new(false),
            version: AtomicU64::new(0),
            native,
            models: self.models,
            workspaces: WorkspaceTable::default(),
            load_options: self.load_options,
            last_good: OnceLock::new(),
            managed: ArcSwapOption::empty(),
            event_log: self.event_log,
        }));
        orchestrator.load_managed().await?;
        #[cfg(feature = "store")]
        if let Some(data) = self.data {
            orchestrator.open_data(data).await?;
        }
        if workspaces.is_empty() && matches!(self.without_workspaces, WithoutWorkspaces::NativeWorkspace) {
            orchestrator.publish(orchestrator.without_files(native_place()?), None).await?;
        }
        let reports = orchestrator.register_all(workspaces).await?;
        let errors: Vec<_> = reports.iter().flat_map(LoadReport::skipped).cloned().collect();
        if self.hook_file_errors == HookFileErrors::Fatal && !errors.is_empty() {
            orchestrator.shutdown(Duration::ZERO).await;
            return Err(StartError::HookFiles(errors));
        }
        Ok(orchestrator)
    }
}

/// Where a daemon with these settings listens.
fn configured_listeners(settings: &Settings) -> OwnListeners {
    let listen = &settings.listen;
    let sockets = [&listen.socket, &listen.control_socket, &listen.lines];
    let tcp = [listen.tcp, listen.metrics].into_iter().flatten().collect();
    OwnListeners { tcp, sockets: sockets.into_iter().flatten().cloned().collect() }
}

fn run_context(
    settings: &Settings,
    models: Option<&Arc<dyn ModelClient>>,
    observers: Vec<Arc<dyn OutcomeObserver>>,
    own: OwnListeners,
) -> RunContext {
    let meters = Meters::resolve();
    let account = config::account_variables(settings, &|name| std::env::var(name).ok());
    let base = BaseEnvironment::of_process(&settings.pass_environment, account);
    let limits = CommandLimits { stdout: settings.limits.stdout, stderr: settings.limits.stderr };
    let pools = &settings.pools;
    let runner = Arc::new(CommandRunner::new(base, limits, &meters.processes));
    let command = Pool::new(HandlerKind::Command, bounds(&pools.command), runner, &meters);
    // As many connections as there can be requests, so that a busy server is never connected to again.
    let limits = HttpLimits { body: settings.limits.http_body, max_idle: pools.http.concurrency.get() };
    let allow = settings.http.allow.clone();
    let http = Pool::new(HandlerKind::Http, bounds(&pools.http), http_runner(limits, allow, own), &meters);
    let questions = pools.prompt.concurrency.get() + pools.agent.concurrency.get();
    let limits = HttpLimits { body: settings.limits.model_body, max_idle: questions };
    let models = ModelRouter::new(api_client(limits), models.cloned());
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
        answers: AnswerLimits::new(settings.limits.answers_per_run, settings.limits.answers_bytes),
        stop_blocks: u8::try_from(settings.limits.stop_blocks.get()).unwrap_or(u8::MAX),
        meters,
        outbox: ArcSwapOption::empty(),
        freshness: OnceLock::new(),
        #[cfg(feature = "cluster")]
        cluster: OnceLock::new(),
        ends: QueueEnds::default(),
        #[cfg(all(test, feature = "daemon"))]
        simulated_disk: std::sync::OnceLock::new(),
    }
}

fn bounds(pool: &WorkerPoolSettings) -> PoolLimits {
    PoolLimits {
        concurrency: pool.concurrency.get(),
        queue: pool.queue.get(),
        queue_deadline: pool.queue_deadline,
    }
}

/// The workspaces with their ids; a workspace without one has the name of its directory.
///
/// Returns an error if two have the same id, or if one is no directory.
fn with_ids(
    given: Vec<(Option<WorkspaceId>, WorkspaceSettings)>,
    all: &Settings,
) -> Result<Vec<(WorkspaceId, WorkspaceSettings)>, StartError> {
    let mut workspaces: Vec<(WorkspaceId, WorkspaceSettings)> = Vec::with_capacity(given.len());
    for (id, settings) in given {
        let settings = with_real_root(settings, all)?;
        let id = id.unwrap_or_else(|| WorkspaceId::of_directory(&settings.root));
        if workspaces.iter().any(|(known, _)| *known == id) {
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
        let hook = hook.into_hook(position, settings.default_timeout);
        let hook = hook.and_then(|hook| {
            if hooks.iter().any(|known| known.name == hook.name) {
                return Err("another native hook has this name".to_owned());
            }
            Ok(hook)
        });
        hooks.push(hook.map_err(|message| StartError::NativeHook { name, message })?);
    }
    Ok(hooks)
}

fn native_place() -> Result<Workspace, StartError> {
    let current = Path::new(".").canonicalize();
    let root = current.map_err(|source| WorkspaceError::Directory { path: ".".into(), source })?;
    let workspace_id =
        WorkspaceId::new(NATIVE_WORKSPACE).map_err(|source| DispatchError::id("workspace_id", source))?;
    Ok(Workspace::new(workspace_id, root))
}
