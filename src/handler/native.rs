//! Native hooks: closures of the embedding program. Owns what becomes of their panics and failures; refuses
//! to wait for anything.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use tokio::time::Instant;

use crate::{
    model::{Conclusion, Draft, Ended, Failure, NativeReply, Reply},
    telemetry::Panicked,
};

/// Runs a closure that is no future, here and now. It cannot be interrupted, but an answer that comes after
/// its deadline does not count.
pub(crate) fn run_inline(
    closure: &(dyn Fn(&Draft) -> NativeReply + Send + Sync),
    draft: &Draft,
    timeout: Duration,
) -> Conclusion {
    let started = Instant::now();
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| closure(draft)));
    let duration = started.elapsed();
    let result = match caught {
        Ok(_) if duration > timeout => Err(Failure::new(
            Ended::TimedOut,
            format!("the reply came after {duration:?}, later than {timeout:?}"),
        )),
        Ok(reply) => read(reply),
        Err(panic) => Err(panicked(&*panic)),
    };
    Conclusion::ran(result, duration).started_at(started.into_std())
}

/// A native reply needs no dialect to read it.
pub(crate) fn read(reply: NativeReply) -> Result<Reply, Failure> {
    reply.map_err(|message| Failure::new(Ended::Failed, message))
}

/// The failure that a caught panic is.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    Panicked("native").emit();
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Failure::new(Ended::Failed, format!("the hook panicked: {text}"))
}
