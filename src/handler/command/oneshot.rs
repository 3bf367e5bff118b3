//! Mode `oneshot`: a process for each event. Translates an invocation into a program and its end into a raw
//! reply or a failure; refuses to interpret exit codes and outputs.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    environment::{BaseEnvironment, Variables},
    process::{self, Bounds, End, Finished, Program, Stopped},
};
use crate::{
    handler::{Invocation, Runner},
    model::{CommandHandler, CommandLine, Ended, Failure, Handler, RawReply},
    telemetry::{ProcessExit, ProcessLeak, ProcessRunning, Spawned},
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes are read after the exit, if a descendant still holds them.
const DRAIN: Duration = Duration::from_millis(200);

/// How much output is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandLimits {
    /// Bytes of standard output; more makes the answer invalid.
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
}

impl CommandRunner {
    pub(crate) fn new(base: BaseEnvironment, limits: CommandLimits) -> Self {
        Self { base, limits, within: Mutex::default() }
    }

    async fn answer(&self, invocation: &Invocation, cancel: &CancellationToken) -> Result<RawReply, Failure> {
        let Handler::Command(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::SpawnFailed, "this is not a command hook"));
        };
        let program = self.program(handler, invocation);
        let bounds = Bounds {
            timeout: invocation.timeout,
            grace: GRACE,
            drain: DRAIN,
            stdout: self.limits.stdout,
            stderr: self.limits.stderr,
        };
        let running = ProcessRunning::enter();
        let finished = process::run(&program, invocation.envelope.clone(), bounds, cancel).await;
        drop(running);
        let finished = finished.map_err(|error| Failure::new(Ended::SpawnFailed, error.to_string()))?;
        count(&finished);
        raw_reply(finished, invocation.timeout)
    }

    fn program(&self, handler: &CommandHandler, invocation: &Invocation) -> Program {
        let mut environment = Variables::clone(&self.within(&invocation.root));
        let dialect = invocation.environment.iter().map(|(name, value)| (OsString::from(name), value.into()));
        environment.extend(dialect);
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
    ) -> BoxFuture<'a, Result<RawReply, Failure>> {
        Box::pin(self.answer(invocation, cancel))
    }
}

fn count(finished: &Finished) {
    if finished.pid.is_some() {
        Spawned(finished.spawn_time).emit();
    }
    match finished.end {
        End::Exited(0) => ProcessExit::Ok.emit(),
        End::Exited(2) => ProcessExit::Block.emit(),
        End::Exited(_) | End::Lost => ProcessExit::Nonzero.emit(),
        End::Signalled(_) => ProcessExit::Signal.emit(),
        End::TimedOut(Stopped::ByTerm) => ProcessExit::TimeoutTerm.emit(),
        End::TimedOut(Stopped::ByKill | Stopped::StillDying) => ProcessExit::TimeoutKill.emit(),
        End::Cancelled => {}
    }
    if finished.leak.pipe_held {
        ProcessLeak::PipeHeld.emit();
    }
    if finished.leak.survivor_killed {
        ProcessLeak::SurvivorKilled.emit();
    }
}

fn raw_reply(finished: Finished, timeout: Duration) -> Result<RawReply, Failure> {
    match finished.end {
        End::Exited(exit_code) => Ok(RawReply::Command {
            exit_code,
            truncated: finished.stdout.truncated(),
            stdout: finished.stdout.bytes,
            stderr: finished.stderr.bytes,
        }),
        End::Signalled(signal) => {
            Err(Failure::new(Ended::Failed, format!("the process was killed by signal {signal}")))
        }
        End::TimedOut(stopped) => {
            let how = match stopped {
                Stopped::ByTerm => "ended by SIGTERM",
                Stopped::ByKill => "ended by SIGKILL",
                Stopped::StillDying => "killed, and not gone yet",
            };
            Err(Failure::new(Ended::TimedOut, format!("no answer within {timeout:?}; the process was {how}")))
        }
        End::Cancelled => Err(Failure::new(Ended::Cancelled, "nobody waits for the outcome any more")),
        End::Lost => {
            Err(Failure::new(Ended::Failed, "the process ended, but its exit status could not be had"))
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::DebuggingRecorder;

    use super::*;

    #[tokio::test]
    async fn a_process_that_was_not_started_is_not_counted() {
        let program = Program { path: "/bin/sh".into(), args: vec![], cwd: "/".into(), environment: vec![] };
        let cancel = CancellationToken::new();
        cancel.cancel();
        let bounds = Bounds::within(Duration::from_secs(1));
        let finished = process::run(&program, bytes::Bytes::new(), bounds, &cancel).await.unwrap();
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || count(&finished));
        assert!(recorder.snapshotter().snapshot().into_vec().is_empty());
    }
}
