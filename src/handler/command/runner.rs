//! Runs command hooks, each in its mode. Owns what a hook's program is started with and what stands ready for
//! hooks between events; refuses to know how a process is served, which is the modes' part.

use std::{
    collections::HashMap,
    ffi::OsString,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    environment::{BaseEnvironment, TRACEPARENT, Variables},
    ledger,
    oneshot::Once,
    prespawn::Spares,
    process::Program,
    standing::Standing,
    worker::{Errors, Fleet, FleetMeters, Served},
};
use crate::{
    handler::{Brought, Invocation, Runner},
    model::{
        CommandHandler, CommandLine, CommandMode, Draft, Ended, Failure, Handler, Hook, HookName,
        WorkerBounds, Workspace,
    },
    registry::RegisteredHook,
    telemetry::{ProcessMeters, SpareResult, WorkerMeters},
};

/// Variables that say something about one event. A process that is started before its event has none of them.
const OF_ONE_EVENT: [&str; 2] = ["HOOKYARD_EVENT", "HOOKYARD_DEADLINE_MS"];

/// Tells a program that it is a worker.
const WORKER: (&str, &str) = ("HOOKYARD_WORKER", "1");

/// How much output is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandLimits {
    /// Bytes of standard output, or of a worker's line; more makes the answer invalid.
    pub(crate) stdout: usize,
    /// Bytes of standard error; of more, head and tail are kept.
    pub(crate) stderr: usize,
}

/// Runs command handlers.
#[derive(Debug)]
pub(crate) struct CommandRunner {
    base: BaseEnvironment,
    limits: CommandLimits,
    /// The base environment of each workspace, since checking a PATH touches the disk.
    within: Mutex<HashMap<PathBuf, Arc<Variables>>>,
    workers: Standing<Fleet>,
    spares: Standing<Spares>,
    meters: Arc<ProcessMeters>,
}

impl CommandRunner {
    pub(crate) fn new(base: BaseEnvironment, limits: CommandLimits, meters: &Arc<ProcessMeters>) -> Self {
        let (workers, spares) = (Standing::default(), Standing::default());
        Self { base, limits, within: Mutex::default(), workers, spares, meters: Arc::clone(meters) }
    }

    async fn answer(&self, invocation: &Invocation, cancel: &CancellationToken) -> Brought {
        let Handler::Command(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::SpawnFailed, "this is not a command hook")).into();
        };
        let once = Once { invocation, limits: self.limits, meters: &self.meters };
        let begun = Instant::now();
        let mut left = invocation.timeout;
        let mut warning = None;
        let mut busy = None;
        match handler.mode {
            CommandMode::Oneshot => {}
            CommandMode::Prespawn { spares } => {
                let spares = self.spares.of(invocation, handler, || self.spares(handler, invocation, spares));
                let (waiting, until_done) = spares.take();
                busy = Some(until_done);
                let found = if waiting.is_some() { SpareResult::Hit } else { SpareResult::Miss };
                invocation.meters.looked_for_spare(found);
                if let Some(waiting) = waiting {
                    return once.feed(waiting, left, cancel).await.into();
                }
            }
            CommandMode::Worker(bounds) => {
                let make = || {
                    let name = &invocation.hook.hook.name;
                    let environment = &invocation.environment;
                    self.fleet(
                        name,
                        invocation.meters.workers(),
                        handler,
                        bounds,
                        &invocation.root,
                        environment,
                    )
                };
                let fleet = self.workers.of(invocation, handler, make);
                match fleet.serve(invocation, cancel).await {
                    Served::Concluded(result) => return result.into(),
                    Served::NoWorker(why) => warning = why,
                }
                left = left.saturating_sub(begun.elapsed());
            }
        }
        // What was started before this event cannot have it, so it makes no two of those different either.
        let trace = invocation.event.trace.map(|trace| (TRACEPARENT, trace.to_string()));
        let variables = invocation.environment.iter().chain(&trace);
        let program = self.program(handler, &invocation.root, variables);
        let result = once.run(&program, left, cancel).await;
        drop(busy);
        Brought { warnings: warning.into_iter().collect(), ..result.into() }
    }

    fn spares(&self, handler: &CommandHandler, invocation: &Invocation, wanted: NonZeroUsize) -> Spares {
        let program = self.program(handler, &invocation.root, lasting(&invocation.environment));
        Spares::new(program, handler, wanted)
    }

    fn fleet(
        &self,
        name: &HookName,
        workers: Option<&Arc<WorkerMeters>>,
        handler: &CommandHandler,
        bounds: WorkerBounds,
        root: &Path,
        environment: &[(&'static str, String)],
    ) -> Fleet {
        let mut program = self.program(handler, root, lasting(environment));
        program.environment.push((WORKER.0.into(), WORKER.1.into()));
        let has_secrets = handler.environment.iter().any(|(_, value)| !value.secrets().is_empty());
        let errors = if has_secrets { Errors::Withheld } else { Errors::Shown };
        let meters = FleetMeters {
            workers: workers.map_or_else(|| Arc::new(WorkerMeters::unread()), Arc::clone),
            processes: Arc::clone(&self.meters),
        };
        Fleet::new(name.as_str(), errors, program, bounds, self.limits, meters)
    }

    /// Starts a worker of a hook to hear its hello, and stops it. Does nothing for a hook that is none of
    /// `mode: worker`.
    ///
    /// Returns why it is no worker if there is no hello.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the command line checks hooks"))]
    pub(crate) async fn greet(&self, hook: &Hook, draft: &Draft, place: &Workspace) -> Result<(), String> {
        let Handler::Command(handler) = &hook.handler else { return Ok(()) };
        let CommandMode::Worker(bounds) = handler.mode else { return Ok(()) };
        let environment = hook.dialect.environment(draft, place, hook.timeout);
        self.fleet(&hook.name, None, handler, bounds, &place.root, &environment).greet().await
    }

    fn program<'a>(
        &self,
        handler: &CommandHandler,
        root: &Path,
        dialect: impl Iterator<Item = &'a (&'static str, String)>,
    ) -> Program {
        let mut environment = Variables::clone(&self.within(root));
        environment.extend(ledger::mark());
        environment.extend(dialect.map(|(name, value)| (OsString::from(name), value.into())));
        environment
            .extend(handler.environment.iter().map(|(name, value)| (name.into(), value.expose().into())));
        let (path, args) = match &handler.line {
            CommandLine::Shell(line) => (PathBuf::from("/bin/sh"), vec!["-c".into(), line.into()]),
            CommandLine::Exec { program, args } => {
                (program.clone(), args.iter().map(OsString::from).collect())
            }
        };
        Program { path, args, cwd: handler.cwd.clone(), environment }
    }

    fn within(&self, root: &Path) -> Arc<Variables> {
        let mut within = self.within.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(environment) = within.get(root) {
            return Arc::clone(environment);
        }
        let environment = Arc::new(self.base.within(root));
        within.insert(root.to_owned(), Arc::clone(&environment));
        environment
    }
}

impl Runner for CommandRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Brought> {
        Box::pin(self.answer(invocation, cancel))
    }

    fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.within.lock().unwrap_or_else(PoisonError::into_inner).remove(root);
        self.workers.reloaded(root, hooks);
        self.spares.reloaded(root, hooks);
    }

    fn stop(&self) {
        self.workers.stop();
        self.spares.stop();
    }
}

/// The variables that are the same for every event.
pub(super) fn lasting<'a>(
    variables: &'a [(&'static str, String)],
) -> impl Iterator<Item = &'a (&'static str, String)> {
    variables.iter().filter(|(name, _)| !OF_ONE_EVENT.contains(name))
}
