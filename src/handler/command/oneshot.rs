//! Mode `oneshot`: a process for each event. Translates a program's end into a raw reply or a failure; refuses
//! to interpret exit codes and outputs.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{
    process::{self, Bounds, End, Finished, Program, SpawnError, Stopped, Waiting},
    runner::CommandLimits,
};
use crate::{
    handler::Invocation,
    model::{Ended, Failure, RawReply},
    telemetry::{OutputStream, ProcessExit, ProcessLeak, ProcessMeters},
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes are read after the exit, if a descendant still holds them.
const DRAIN: Duration = Duration::from_millis(200);

/// One event for a process.
pub(super) struct Once<'a> {
    pub(super) invocation: &'a Invocation,
    pub(super) limits: CommandLimits,
    pub(super) meters: &'a ProcessMeters,
}

impl Once<'_> {
    /// Runs a program for the event.
    pub(super) async fn run(
        &self,
        program: &Program,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<RawReply, Failure> {
        let running = self.meters.running();
        let envelope = self.invocation.envelope.clone();
        let finished = process::run(program, envelope, bounds(timeout, self.limits), cancel).await;
        drop(running);
        self.conclude(finished, timeout)
    }

    /// Has a process that was started before the event work on it.
    pub(super) async fn feed(
        &self,
        waiting: Waiting,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<RawReply, Failure> {
        let running = self.meters.running();
        let envelope = self.invocation.envelope.clone();
        let finished = waiting.feed(envelope, bounds(timeout, self.limits), cancel).await;
        drop(running);
        self.conclude(finished, timeout)
    }

    fn conclude(
        &self,
        finished: Result<Finished, SpawnError>,
        timeout: Duration,
    ) -> Result<RawReply, Failure> {
        let finished = finished.map_err(|error| Failure::new(Ended::SpawnFailed, error.to_string()))?;
        count(&finished, self.meters);
        for (stream, captured) in
            [(OutputStream::Stdout, &finished.stdout), (OutputStream::Stderr, &finished.stderr)]
        {
            if captured.truncated() {
                self.invocation.meters.truncated(stream);
            }
        }
        raw_reply(finished, timeout)
    }
}

fn bounds(timeout: Duration, limits: CommandLimits) -> Bounds {
    Bounds { timeout, grace: GRACE, drain: DRAIN, stdout: limits.stdout, stderr: limits.stderr }
}

fn count(finished: &Finished, meters: &ProcessMeters) {
    if finished.pid.is_some() {
        meters.spawned(finished.spawn_time);
    }
    let exit = match finished.end {
        End::Exited(0) => Some(ProcessExit::Ok),
        End::Exited(2) => Some(ProcessExit::Block),
        End::Exited(_) | End::Lost => Some(ProcessExit::Nonzero),
        End::Signalled(_) => Some(ProcessExit::Signal),
        End::TimedOut(Stopped::ByTerm) => Some(ProcessExit::TimeoutTerm),
        End::TimedOut(Stopped::ByKill | Stopped::StillDying) => Some(ProcessExit::TimeoutKill),
        End::Cancelled => None,
    };
    if let Some(exit) = exit {
        meters.exited(exit);
    }
    if finished.leak.pipe_held {
        meters.leaked(ProcessLeak::PipeHeld);
    }
    // One that was stopped had no time to end what it had started.
    if finished.leak.survivor_killed && !matches!(finished.end, End::TimedOut(_) | End::Cancelled) {
        meters.leaked(ProcessLeak::SurvivorKilled);
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
        End::Cancelled => Err(Failure::cancelled()),
        End::Lost => {
            Err(Failure::new(Ended::Failed, "the process ended, but its exit status could not be had"))
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    #[tokio::test]
    async fn what_a_process_had_started_is_no_leak_when_it_is_stopped() {
        let args = vec!["-c".into(), "sleep 600; true".into()];
        let program = Program { path: "/bin/sh".into(), args, cwd: "/".into(), environment: vec![] };
        let bounds = Bounds::within(Duration::from_millis(100));
        let never = CancellationToken::new();
        let mut finished = process::run(&program, bytes::Bytes::new(), bounds, &never).await.unwrap();
        // Whether it had gone already is a race.
        finished.leak.survivor_killed = true;
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || count(&finished, &ProcessMeters::resolve()));
        let leaks = recorder.snapshotter().snapshot().into_vec().into_iter();
        let leaks: Vec<_> = leaks.filter(|(key, ..)| key.key().name().ends_with("leaks_total")).collect();
        assert!(leaks.iter().all(|(.., value)| *value == DebugValue::Counter(0)), "{leaks:?}");
    }

    #[tokio::test]
    async fn a_process_that_was_not_started_is_not_counted() {
        let program = Program { path: "/bin/sh".into(), args: vec![], cwd: "/".into(), environment: vec![] };
        let cancel = CancellationToken::new();
        cancel.cancel();
        let bounds = Bounds::within(Duration::from_secs(1));
        let finished = process::run(&program, bytes::Bytes::new(), bounds, &cancel).await.unwrap();
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || count(&finished, &ProcessMeters::resolve()));
        let counted = recorder.snapshotter().snapshot().into_vec();
        let is_nothing = |value: &DebugValue| match value {
            DebugValue::Counter(count) => *count == 0,
            DebugValue::Gauge(value) => value.0 == 0.0,
            DebugValue::Histogram(values) => values.is_empty(),
        };
        assert!(counted.iter().all(|(.., value)| is_nothing(value)), "{counted:?}");
    }
}
