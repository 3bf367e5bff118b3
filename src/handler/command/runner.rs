//! Runs command hooks, each in the mode of its hook file: `oneshot`, `prespawn` or `worker`.

use std::{
    collections::HashMap,
    ffi::OsString,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    environment::{BaseEnvironment, TRACEPARENT, Variables, hook_variable, stable_variables},
    ledger,
    oneshot::{OneshotRun, without_protocol},
    prespawn::SparePool,
    process::Program,
    sandbox::{self, PrivateTemp},
    warm_pool::WarmPool,
    worker::{Fleet, FleetMeters, ServeResult, StderrLogging, WorkerConfig, WorkerTimeouts},
};
use crate::{
    handler::runner::{CommandLimits, HandlerOutput, HookWorkers, Invocation, Runner},
    model::{
        Approval, CommandHandler, CommandLine, CommandMode, Draft, Ended, Failure, FilesystemAccess, Handler,
        Hook, HookName, WorkerBounds, Workspace,
    },
    registry::RegisteredHook,
    telemetry::{ProcessLeak, ProcessMeters, SpareResult, WorkerMeters},
};

/// The variable, with its value, that tells a program to serve as a worker.
const WORKER: (&str, &str) = ("HOOKYARD_WORKER", "1");

/// The number of the next runner of this process.
static NEXT_RUNNER: AtomicU64 = AtomicU64::new(0);

/// Where a hook runs.
#[derive(Debug, Clone, Copy)]
struct HookPlace<'a> {
    /// The directory of the workspace that it is of.
    root: &'a Path,
    /// The directories from which it takes no programs.
    project_roots: &'a [PathBuf],
}

/// Runs command handlers.
#[derive(Debug)]
pub(crate) struct CommandRunner {
    base: BaseEnvironment,
    limits: CommandLimits,
    /// The inherited environment by the directories of the project. Cached, because checking a PATH touches the disk.
    inherited: Mutex<HashMap<Arc<[PathBuf]>, Arc<Variables>>>,
    workers: WarmPool<Fleet>,
    spares: WarmPool<SparePool>,
    temp: PrivateTemp,
    /// Tells its processes from those of other runners.
    number: u64,
    /// Whether it may have started a process.
    has_started: AtomicBool,
    meters: Arc<ProcessMeters>,
}

impl CommandRunner {
    pub(crate) fn new(base: BaseEnvironment, limits: CommandLimits, meters: &Arc<ProcessMeters>) -> Self {
        Self {
            base,
            limits,
            inherited: Mutex::default(),
            workers: WarmPool::default(),
            spares: WarmPool::default(),
            temp: PrivateTemp::default(),
            number: NEXT_RUNNER.fetch_add(1, Ordering::Relaxed),
            has_started: AtomicBool::new(false),
            meters: Arc::clone(meters),
        }
    }

    async fn answer(&self, invocation: &Invocation, cancel: &CancellationToken) -> HandlerOutput {
        let Handler::Command(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::SpawnFailed, "this is not a command hook")).into();
        };
        let approval = match invocation.approval() {
            Ok(approval) => approval,
            Err(refused) => return Err(refused).into(),
        };
        if let Err(why) = launchable(handler) {
            return Err(Failure::new(Ended::SpawnFailed, why)).into();
        }
        let oneshot = OneshotRun { invocation, limits: self.limits, meters: &self.meters };
        let started = Instant::now();
        let mut left = invocation.timeout;
        let mut warning = None;
        let mut fleet = None;
        // Delays the start of new spares until the end of this event.
        let mut refill_guard = None;
        match handler.mode {
            CommandMode::Oneshot => {}
            CommandMode::Prespawn { spares } => {
                let pool = self.spares_of(&approval, invocation, handler, spares);
                let (spare, guard) = pool.take();
                refill_guard = Some(guard);
                let found = if spare.is_some() { SpareResult::Hit } else { SpareResult::Miss };
                invocation.meters.looked_for_spare(found);
                if let Some(spare) = spare {
                    let output = Box::pin(oneshot.feed(spare, left, cancel)).await;
                    return without_protocol(output, None);
                }
            }
            CommandMode::Worker(bounds) => {
                let workers = self.fleet_of(&approval, invocation, handler, bounds);
                match workers.serve(invocation, cancel).await {
                    ServeResult::Concluded(result) => return result.into(),
                    ServeResult::NoWorker(why) => warning = why,
                }
                fleet = Some(workers);
                // No worker has seen the event, so it gets a process of its own in the time that is left.
                left = left.saturating_sub(started.elapsed());
            }
        }
        // Boxed, so that the future of an event for a worker is small.
        let mut output = Box::pin(self.run_oneshot(&approval, &oneshot, handler, left, cancel)).await;
        drop(refill_guard);
        output.warnings.extend(warning);
        without_protocol(output, fleet.as_deref())
    }

    async fn run_oneshot(
        &self,
        approval: &Approval,
        oneshot: &OneshotRun<'_>,
        handler: &CommandHandler,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> HandlerOutput {
        let invocation = oneshot.invocation;
        // Only here: what was started before its event cannot have the trace of it.
        let trace = invocation.event.trace.map(|trace| (TRACEPARENT, trace.to_string()));
        let variables = invocation.environment.iter().chain(&trace);
        let name = &invocation.hook.hook.name;
        let program = self.program(approval, name, handler, place_of(invocation), variables);
        oneshot.run(&program, timeout, cancel).await
    }

    /// The spares of the invocation's hook.
    fn spares_of(
        &self,
        approval: &Approval,
        invocation: &Invocation,
        handler: &CommandHandler,
        wanted: NonZeroUsize,
    ) -> Arc<SparePool> {
        self.spares.of(invocation, handler, approval, || {
            let variables = stable_variables(&invocation.environment);
            let name = &invocation.hook.hook.name;
            let program = self.program(approval, name, handler, place_of(invocation), variables);
            SparePool::new(program, handler, wanted)
        })
    }

    /// The workers of the invocation's hook.
    fn fleet_of(
        &self,
        approval: &Approval,
        invocation: &Invocation,
        handler: &CommandHandler,
        bounds: WorkerBounds,
    ) -> Arc<Fleet> {
        self.workers.of(invocation, handler, approval, || {
            let (name, variables) = (&invocation.hook.hook.name, &invocation.environment);
            let program = self.worker_program(approval, name, handler, place_of(invocation), variables);
            let known = invocation.meters.workers();
            let meters = known.map_or_else(|| Arc::new(WorkerMeters::unread()), Arc::clone);
            Fleet::new(self.worker_config(name, handler, program, bounds, meters))
        })
    }

    /// Starts a worker of a hook, waits for its hello, and stops it. Does nothing for hooks without `mode: worker`.
    ///
    /// Returns why there is no hello.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the command line checks hooks"))]
    pub(crate) async fn probe_worker(
        &self,
        hook: &Hook,
        draft: &Draft,
        workspace: &Workspace,
        project_roots: &[PathBuf],
    ) -> Result<(), String> {
        let Handler::Command(handler) = &hook.handler else { return Ok(()) };
        let CommandMode::Worker(bounds) = handler.mode else { return Ok(()) };
        let refusal = || hook.trust.refusal().unwrap_or_default().to_owned();
        let approval = hook.trust.approval().ok_or_else(refusal)?;
        launchable(handler)?;
        let environment = hook.dialect.environment(draft, workspace, hook.timeout);
        let place = HookPlace { root: &workspace.root, project_roots };
        let program = self.worker_program(&approval, &hook.name, handler, place, &environment);
        let meters = Arc::new(WorkerMeters::unread());
        Fleet::new(self.worker_config(&hook.name, handler, program, bounds, meters)).probe().await
    }

    /// Whether a spare waits for an event such as that of an invocation, and has written nothing yet.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn has_quiet_spare(&self, invocation: &Invocation) -> bool {
        let Handler::Command(handler) = &invocation.hook.hook.handler else { return false };
        let CommandMode::Prespawn { spares } = handler.mode else { return false };
        let has_one = |approval| self.spares_of(&approval, invocation, handler, spares).has_quiet_spare();
        invocation.approval().is_ok_and(has_one)
    }

    fn worker_config(
        &self,
        hook: &HookName,
        handler: &CommandHandler,
        program: Program,
        bounds: WorkerBounds,
        meters: Arc<WorkerMeters>,
    ) -> WorkerConfig {
        let has_secrets = handler.environment.iter().any(|(_, value)| !value.secrets().is_empty());
        WorkerConfig {
            hook: hook.as_str().into(),
            stderr_logging: if has_secrets { StderrLogging::Withheld } else { StderrLogging::Shown },
            program: Arc::new(program),
            bounds,
            limits: self.limits,
            timeouts: WorkerTimeouts::default(),
            meters: FleetMeters { workers: meters, processes: Arc::clone(&self.meters) },
        }
    }

    fn worker_program(
        &self,
        approval: &Approval,
        hook: &HookName,
        handler: &CommandHandler,
        place: HookPlace<'_>,
        variables: &[(&'static str, String)],
    ) -> Program {
        let mut program = self.bare_program(approval, handler, place, stable_variables(variables));
        program.environment.push((WORKER.0.into(), WORKER.1.into()));
        self.confined(program, hook, handler, place.root)
    }

    /// The program of a handler, for a hook that may run, in its sandbox if it has one.
    fn program<'a>(
        &self,
        approval: &Approval,
        hook: &HookName,
        handler: &CommandHandler,
        place: HookPlace<'_>,
        dialect: impl Iterator<Item = &'a (&'static str, String)>,
    ) -> Program {
        self.confined(self.bare_program(approval, handler, place, dialect), hook, handler, place.root)
    }

    fn confined(
        &self,
        mut program: Program,
        hook: &HookName,
        handler: &CommandHandler,
        root: &Path,
    ) -> Program {
        let Some(sandbox) = &handler.sandbox else { return program };
        let Some(launcher) = &sandbox.launcher else { return program };
        let temp = match sandbox.filesystem {
            FilesystemAccess::Any => None,
            FilesystemAccess::Workspace | FilesystemAccess::ReadOnly => self.temp.of(root, hook),
        };
        if let Some(temp) = &temp {
            program.environment.push(("TMPDIR".into(), temp.into()));
        }
        sandbox::launched(program, sandbox, launcher, root, temp.as_deref())
    }

    /// The program of a handler. Of variables with the same name the last one counts: the marks of hooks, then the
    /// handler's own, then the dialect's, then inherited ones.
    fn bare_program<'a>(
        &self,
        approval: &Approval,
        handler: &CommandHandler,
        place: HookPlace<'_>,
        dialect: impl Iterator<Item = &'a (&'static str, String)>,
    ) -> Program {
        let mut environment = Variables::clone(&self.inherited(place.project_roots));
        environment.extend(dialect.map(|(name, value)| (OsString::from(name), value.into())));
        environment
            .extend(handler.environment.iter().map(|(name, value)| (name.into(), value.expose().into())));
        // Last, so that no hook file can take them away: by them hookyard recognises what its hooks have started.
        environment.push(hook_variable());
        environment.extend(ledger::mark());
        self.has_started.store(true, Ordering::Relaxed);
        environment.push((ledger::PROCESS_MARK.into(), self.mark().into()));
        let (path, args) = match &handler.line {
            CommandLine::Shell(line) => (PathBuf::from("/bin/sh"), vec!["-c".into(), line.into()]),
            CommandLine::Exec { program, args } => {
                (program.clone(), args.iter().map(OsString::from).collect())
            }
        };
        Program { path, args, cwd: handler.cwd.clone(), environment, approval: approval.clone() }
    }

    /// The beginning of the marks of its processes.
    fn mark(&self) -> String {
        format!("{}.{}", ledger::process_mark(), self.number)
    }

    async fn end_marked(&self) {
        if !self.has_started.load(Ordering::Relaxed) {
            return;
        }
        let mark = self.mark();
        let ended = tokio::task::spawn_blocking(move || ledger::end_marked(&mark)).await.unwrap_or_default();
        if ended > 0 {
            self.meters.leaked(ProcessLeak::Escaped);
            tracing::warn!(groups = ended, "processes that had left the groups of their hooks were ended");
        }
    }

    fn inherited(&self, project_roots: &[PathBuf]) -> Arc<Variables> {
        let mut inherited = self.inherited.lock();
        if let Some(variables) = inherited.get(project_roots) {
            return Arc::clone(variables);
        }
        let variables = Arc::new(self.base.for_project(project_roots));
        inherited.insert(project_roots.into(), Arc::clone(&variables));
        variables
    }
}

fn place_of(invocation: &Invocation) -> HookPlace<'_> {
    HookPlace { root: invocation.hook_root(), project_roots: &invocation.project_roots }
}

/// Whether a handler that has to run in a sandbox can.
fn launchable(handler: &CommandHandler) -> Result<(), String> {
    match &handler.sandbox {
        Some(sandbox) if sandbox.require && sandbox.launcher.is_none() => {
            Err("there is no launcher for its sandbox; name a `hookyard` in the setting `sandbox.launcher`"
                .to_owned())
        }
        _ => Ok(()),
    }
}

impl Runner for CommandRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput> {
        Box::pin(self.answer(invocation, cancel))
    }

    fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.inherited.lock().retain(|roots, _| !roots.iter().any(|known| known == root));
        self.workers.reloaded(root, hooks);
        self.spares.reloaded(root, hooks);
    }

    fn capacity(&self, invocation: &Invocation) -> Option<watch::Receiver<usize>> {
        let Handler::Command(handler) = &invocation.hook.hook.handler else { return None };
        let CommandMode::Worker(bounds) = handler.mode else { return None };
        let approval = invocation.approval().ok()?;
        Some(self.fleet_of(&approval, invocation, handler, bounds).capacity())
    }

    fn has_own_queue(&self, invocation: &Invocation) -> bool {
        matches!(&invocation.hook.hook.handler, Handler::Command(handler) if matches!(handler.mode, CommandMode::Worker(_)))
    }

    fn hook_workers(&self) -> Vec<HookWorkers> {
        self.workers.each(|root, hook, fleet| Some(fleet.shown(root, hook)))
    }

    fn sample(&self) {
        self.workers.each(|_, _, fleet| {
            fleet.sample();
            None::<()>
        });
    }

    fn stop(&self) {
        self.workers.stop();
        self.spares.stop();
    }

    fn end_escaped(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end_marked())
    }
}
