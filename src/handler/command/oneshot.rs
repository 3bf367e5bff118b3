//! Mode `oneshot`: a process for each event. Translates a program's end into a raw reply or a failure; refuses
//! to interpret exit codes and outputs.

use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{
    process::{self, Bounds, End, Finished, Program, SpawnError, Stopped, Waiting},
    runner::CommandLimits,
};
use crate::{
    model::{Ended, Failure, RawReply},
    telemetry::{ProcessExit, ProcessLeak, ProcessRunning, Spawned},
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes are read after the exit, if a descendant still holds them.
const DRAIN: Duration = Duration::from_millis(200);

/// Runs a program for one event.
pub(super) async fn run(
    program: &Program,
    envelope: Bytes,
    timeout: Duration,
    limits: CommandLimits,
    cancel: &CancellationToken,
) -> Result<RawReply, Failure> {
    let running = ProcessRunning::enter();
    let finished = process::run(program, envelope, bounds(timeout, limits), cancel).await;
    drop(running);
    conclude(finished, timeout)
}

/// Has a process that was started before its event work on it.
pub(super) async fn feed(
    waiting: Waiting,
    envelope: Bytes,
    timeout: Duration,
    limits: CommandLimits,
    cancel: &CancellationToken,
) -> Result<RawReply, Failure> {
    let running = ProcessRunning::enter();
    let finished = waiting.feed(envelope, bounds(timeout, limits), cancel).await;
    drop(running);
    conclude(finished, timeout)
}

fn bounds(timeout: Duration, limits: CommandLimits) -> Bounds {
    Bounds { timeout, grace: GRACE, drain: DRAIN, stdout: limits.stdout, stderr: limits.stderr }
}

fn conclude(finished: Result<Finished, SpawnError>, timeout: Duration) -> Result<RawReply, Failure> {
    let finished = finished.map_err(|error| Failure::new(Ended::SpawnFailed, error.to_string()))?;
    count(&finished);
    raw_reply(finished, timeout)
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
