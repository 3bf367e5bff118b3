//! What runs in this process: closures of the embedding program, and rules.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use tokio::time::Instant;

use crate::{
    model::{Conclusion, Draft, Ended, Failure, NativeReply, Reply, RuleCall, RuleHandler},
    telemetry::Panicked,
};

/// Runs a synchronous closure on the calling thread. It cannot be interrupted; a reply after `timeout` counts as
/// `timed_out`, and a panic as `failed`.
pub(crate) fn run_inline(
    closure: &(dyn Fn(&Draft) -> NativeReply + Send + Sync),
    draft: &Draft,
    timeout: Duration,
) -> Conclusion {
    run_here(|| read(closure(draft)), timeout)
}

/// Evaluates rules on the calling thread, in the same way. They end by themselves, within their number of steps.
pub(crate) fn run_rule(rule: &RuleHandler, call: RuleCall<'_>, timeout: Duration) -> Conclusion {
    run_here(|| rule.program.judge(call), timeout)
}

fn run_here(judge: impl FnOnce() -> Result<Reply, Failure>, timeout: Duration) -> Conclusion {
    let started = Instant::now();
    let caught = std::panic::catch_unwind(AssertUnwindSafe(judge));
    let duration = started.elapsed();
    let result = match caught {
        Ok(_) if duration > timeout => Err(Failure::new(
            Ended::TimedOut,
            format!("the reply came after {duration:?}, later than {timeout:?}"),
        )),
        Ok(result) => result,
        Err(panic) => Err(panicked(&*panic)),
    };
    Conclusion::ran(result, duration).started_at(started.into_std())
}

/// Converts a native reply, which needs no dialect to read it.
pub(crate) fn read(reply: NativeReply) -> Result<Reply, Failure> {
    reply.map_err(|message| Failure::new(Ended::Failed, message))
}

/// Converts a caught panic into a failure and counts it.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    Panicked("native").emit();
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Failure::new(Ended::Failed, format!("the hook panicked: {text}"))
}
