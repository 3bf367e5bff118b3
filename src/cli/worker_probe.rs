//! Starts the workers of a workspace once, all at the same time, to see whether they say hello. None is left running,
//! also not at a signal.

use std::{io, sync::Arc};

use futures_util::future::join_all;

use super::{exit::Exit, session::StopSignals};
use crate::{
    config::{self, LoadedWorkspace, Settings},
    handler::{
        CommandLimits,
        command::{BaseEnvironment, CommandRunner, is_inside_hook},
    },
    model::{CommandMode, Diagnostic, Draft, Event, Handler, Hook, Redactor, RunId, SessionId},
    telemetry::ProcessMeters,
};

/// The code of the warning.
const DIAGNOSTIC_CODE: &str = "worker-hello";

/// What to do.
const HELP: &str = "use one of the SDKs (`hookyard_worker.py`, `hookyard-worker.mjs` or `hookyard-worker.sh` in \
                    config/workers), or remove `mode`; without a hello each event starts a process";

/// Starts the worker of each enabled hook of `mode: worker`.
///
/// Returns a warning for each that does not say hello, or the exit code if a signal came first.
pub(super) async fn probe_workers(
    loaded: &LoadedWorkspace,
    settings: &Settings,
) -> io::Result<Result<Vec<Diagnostic>, Exit>> {
    let may_start = |hook: &&Hook| hook.enabled && hook.trust.approval().is_some() && is_worker(hook);
    let workers: Vec<&Hook> = loaded.hooks.iter().filter(may_start).collect();
    // A hook that calls `hookyard check` must not start other hooks.
    if workers.is_empty() || is_inside_hook() {
        return Ok(Ok(Vec::new()));
    }
    let mut signals = StopSignals::listen()?;
    let runner = command_runner(settings);
    let probes = join_all(workers.into_iter().map(|hook| probe(&runner, hook, loaded)));
    Ok(tokio::select! {
        warnings = probes => Ok(warnings.into_iter().flatten().collect()),
        exit = signals.next() => Err(exit),
    })
}

/// A runner of commands with the environment and the limits of the settings.
pub(super) fn command_runner(settings: &Settings) -> CommandRunner {
    let account = config::account_variables(settings, &|name| std::env::var(name).ok());
    let base = BaseEnvironment::of_process(&settings.pass_environment, account);
    let limits = CommandLimits { stdout: settings.limits.stdout, stderr: settings.limits.stderr };
    CommandRunner::new(base, limits, &Arc::new(ProcessMeters::resolve()))
}

fn is_worker(hook: &Hook) -> bool {
    matches!(&hook.handler, Handler::Command(command) if matches!(command.mode, CommandMode::Worker(_)))
}

async fn probe(runner: &CommandRunner, hook: &Hook, loaded: &LoadedWorkspace) -> Option<Diagnostic> {
    let workspace = hook.workspace(&loaded.workspace);
    let draft = sample_draft(hook)?;
    let why = runner.probe_worker(hook, &draft, workspace, &loaded.project_roots).await.err()?;
    let why = Redactor::of(&hook.handler).string(why);
    let message = format!("no hello from the worker: {why}");
    config::warn_of_mode(&workspace.root, hook, DIAGNOSTIC_CODE, message, HELP)
}

/// An event from which the dialect makes the environment. A worker gets no variables of a single event.
fn sample_draft(hook: &Hook) -> Option<Draft> {
    const UNKNOWN: &str = "unknown";
    let kind = hook.events.iter().next()?;
    let event = Event::new(kind, SessionId::new(UNKNOWN).ok()?, RunId::new(UNKNOWN).ok()?);
    Some(Draft::new(Arc::new(event)))
}
