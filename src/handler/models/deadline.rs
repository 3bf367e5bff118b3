//! The deadline over everything that is said and done for one invocation.

use tokio_util::sync::CancellationToken;

use crate::{
    handler::Invocation,
    model::{Ended, Failure, RawReply},
};

/// Waits for an answer until the invocation's timeout, or until nobody waits for it any more.
pub(in crate::handler) async fn within(
    invocation: &Invocation,
    cancel: &CancellationToken,
    answer: impl Future<Output = Result<RawReply, Failure>>,
) -> Result<RawReply, Failure> {
    tokio::select! {
        result = tokio::time::timeout(invocation.timeout, answer) => result.unwrap_or_else(|_| {
            let message = format!("no answer of the model within {:?}", invocation.timeout);
            Err(Failure::new(Ended::TimedOut, message))
        }),
        () = cancel.cancelled() => {
            Err(Failure::new(Ended::Cancelled, "nobody waits for the outcome any more"))
        }
    }
}
