//! Mode `oneshot`: one process for each event.

use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{
    process::{
        self, FinishedProcess, IdleProcess, ProcessContext, ProcessEnd, ProcessLimits, Program, SpawnError,
        Stopped,
    },
    sandbox,
    worker::{Fleet, is_protocol_output},
};
use crate::{
    handler::{
        runner::CommandLimits,
        runner::{HandlerOutput, Invocation},
    },
    model::{Ended, Failure, RawReply},
    telemetry::{OutputStream, ProcessExit, ProcessLeak, ProcessMeters},
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How long the pipes are read after the exit, if a descendant still holds them.
const DRAIN: Duration = Duration::from_millis(200);

/// The signal by which a launcher of a sandbox ends itself.
const SIGKILL: i32 = 9;

/// The run of one process for one event.
pub(super) struct OneshotRun<'a> {
    pub(super) invocation: &'a Invocation,
    pub(super) limits: CommandLimits,
    pub(super) meters: &'a ProcessMeters,
}

impl OneshotRun<'_> {
    /// Starts a program for the event and runs it to its end.
    pub(super) async fn run(
        &self,
        program: &Program,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> HandlerOutput {
        let running = self.meters.running();
        let finished = process::run_in(
            ProcessContext::of_hook(self.invocation, cancel),
            program,
            self.input(),
            bounds(timeout, self.limits),
        );
        let finished = finished.await;
        drop(running);
        self.conclude(finished, timeout)
    }

    /// Passes the event to a process that was started before, and runs it to its end.
    pub(super) async fn feed(
        &self,
        waiting: IdleProcess,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> HandlerOutput {
        let running = self.meters.running();
        let finished = waiting.feed(
            self.input(),
            bounds(timeout, self.limits),
            ProcessContext::of_hook(self.invocation, cancel),
        );
        let finished = finished.await;
        drop(running);
        self.conclude(finished, timeout)
    }

    /// The standard input of the process.
    fn input(&self) -> Bytes {
        let envelope = &self.invocation.envelope;
        if !self.invocation.hook.hook.dialect.ends_input_with_newline() {
            return envelope.clone();
        }
        let mut line = Vec::with_capacity(envelope.len() + 1);
        line.extend_from_slice(envelope);
        line.push(b'\n');
        line.into()
    }

    fn conclude(&self, finished: Result<FinishedProcess, SpawnError>, timeout: Duration) -> HandlerOutput {
        let finished = match finished {
            Ok(finished) => finished,
            Err(SpawnError::Untrusted { why }) => return Err(Failure::new(Ended::Untrusted, why)).into(),
            Err(error) => return Err(Failure::new(Ended::SpawnFailed, error.to_string())).into(),
        };
        count(&finished, self.meters);
        let meters = &self.invocation.meters;
        if finished.stdout.truncated() {
            meters.truncated(OutputStream::Stdout);
        }
        if finished.stderr.truncated() {
            meters.truncated(OutputStream::Stderr);
        }
        let warnings = escape_warning(finished.escaped).into_iter().collect();
        HandlerOutput { warnings, ..raw_reply(finished, timeout).into() }
    }
}

/// What the operator should know about processes that left the group of their hook.
fn escape_warning(escaped: usize) -> Option<String> {
    let what = match escaped {
        0 => return None,
        1 => "1 process".to_owned(),
        more => format!("{more} processes"),
    };
    Some(format!(
        "{what} of the hook left its process group and still run; they are ended when hookyard stops"
    ))
}

fn bounds(timeout: Duration, limits: CommandLimits) -> ProcessLimits {
    ProcessLimits { timeout, grace: GRACE, drain: DRAIN, stdout: limits.stdout, stderr: limits.stderr }
}

fn count(finished: &FinishedProcess, meters: &ProcessMeters) {
    if finished.pid.is_some() {
        meters.spawned(finished.spawn_time);
    }
    let exit = match finished.end {
        ProcessEnd::Exited(0) => Some(ProcessExit::Ok),
        ProcessEnd::Exited(2) => Some(ProcessExit::Block),
        ProcessEnd::Exited(_) | ProcessEnd::Lost => Some(ProcessExit::Nonzero),
        ProcessEnd::Signalled(_) => Some(ProcessExit::Signal),
        ProcessEnd::TimedOut(Stopped::ByTerm) => Some(ProcessExit::TimeoutTerm),
        ProcessEnd::TimedOut(Stopped::ByKill | Stopped::StillDying) => Some(ProcessExit::TimeoutKill),
        ProcessEnd::Cancelled => None,
    };
    if let Some(exit) = exit {
        meters.exited(exit);
    }
    if finished.escaped > 0 {
        meters.leaked(ProcessLeak::Escaped);
    }
    if finished.leak.pipe_held {
        meters.leaked(ProcessLeak::PipeHeld);
    }
    // A stopped process had no time to end what it had started, so that is no leak.
    if finished.leak.survivor_killed
        && !matches!(finished.end, ProcessEnd::TimedOut(_) | ProcessEnd::Cancelled)
    {
        meters.leaked(ProcessLeak::SurvivorKilled);
    }
}

fn raw_reply(finished: FinishedProcess, timeout: Duration) -> Result<RawReply, Failure> {
    match finished.end {
        ProcessEnd::Exited(exit_code) => Ok(RawReply::Command {
            exit_code,
            truncated: finished.stdout.truncated(),
            stdout: finished.stdout.bytes,
            stderr: finished.stderr.bytes,
        }),
        ProcessEnd::Signalled(signal) => {
            if signal == SIGKILL
                && let Some(why) = sandbox::refusal(&finished.stderr.bytes)
            {
                return Err(Failure::new(Ended::SpawnFailed, why));
            }
            let failure = Failure::new(Ended::Failed, format!("the process was killed by signal {signal}"));
            Err(failure.by_stricter_policy())
        }
        ProcessEnd::TimedOut(stopped) => {
            let how = match stopped {
                Stopped::ByTerm => "ended by SIGTERM",
                Stopped::ByKill => "ended by SIGKILL",
                Stopped::StillDying => "killed, and not gone yet",
            };
            Err(Failure::new(Ended::TimedOut, format!("no answer within {timeout:?}; the process was {how}")))
        }
        ProcessEnd::Cancelled => Err(Failure::cancelled()),
        ProcessEnd::Lost => {
            Err(Failure::new(Ended::Failed, "the process ended, but its exit status could not be had"))
        }
    }
}

/// An output of a program that was run without the worker protocol; see [`refuse_protocol`].
pub(super) fn without_protocol(output: HandlerOutput, fleet: Option<&Fleet>) -> HandlerOutput {
    let result = output.result.and_then(|reply| refuse_protocol(reply, fleet));
    HandlerOutput { result, ..output }
}

/// A reply of a program that was run without the worker protocol, unless it speaks that all the same: a hello is no
/// answer, and must not read as one without an opinion. The fleet of such a program is told.
fn refuse_protocol(reply: RawReply, fleet: Option<&Fleet>) -> Result<RawReply, Failure> {
    match &reply {
        RawReply::Command { exit_code: 0, stdout, .. } if is_protocol_output(stdout) => {
            let message = if let Some(fleet) = fleet {
                fleet.note_protocol();
                "this script speaks the worker protocol only, and no worker was ready; later events wait for one"
            } else {
                "this script speaks the worker protocol only; set `mode: worker`"
            };
            Err(Failure::new(Ended::InvalidOutput, message))
        }
        _ => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;
    use crate::model::Approval;

    #[tokio::test]
    async fn children_of_a_stopped_process_are_no_leak() {
        let args = vec!["-c".into(), "sleep 600; true".into()];
        let program = Program {
            path: "/bin/sh".into(),
            args,
            cwd: "/".into(),
            environment: vec![],
            approval: Approval::of_host(),
        };
        let bounds = ProcessLimits::within(Duration::from_millis(100));
        let never = CancellationToken::new();
        let mut finished = process::run(&program, bytes::Bytes::new(), bounds, &never).await.unwrap();
        // Whether the child was gone already is a race.
        finished.leak.survivor_killed = true;
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || count(&finished, &ProcessMeters::resolve()));
        let leaks = recorder.snapshotter().snapshot().into_vec().into_iter();
        let leaks: Vec<_> = leaks.filter(|(key, ..)| key.key().name().ends_with("leaks_total")).collect();
        assert!(leaks.iter().all(|(.., value)| *value == DebugValue::Counter(0)), "{leaks:?}");
    }

    #[tokio::test]
    async fn a_process_that_was_not_started_is_not_counted() {
        let program = Program {
            path: "/bin/sh".into(),
            args: vec![],
            cwd: "/".into(),
            environment: vec![],
            approval: Approval::of_host(),
        };
        let cancel = CancellationToken::new();
        cancel.cancel();
        let bounds = ProcessLimits::within(Duration::from_secs(1));
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
