//! The frame of everything that one invocation asks of a model: one deadline, cancellation, and the tokens used
//! however it ends.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::router::ModelRouter;
use crate::{
    handler::runner::{HandlerOutput, Invocation},
    model::{Ended, Failure, RawReply, TokenUsage},
};

/// What a prompt or agent hook needs to ask a model for one invocation.
#[derive(Debug, Clone, Copy)]
pub(in crate::handler) struct ModelCall<'a> {
    pub(super) router: &'a ModelRouter,
    pub(in crate::handler) invocation: &'a Invocation,
    pub(super) spent: &'a TokensSpent,
}

/// The tokens used so far. Outside the future that asks, so that they are known when it is dropped.
#[derive(Debug, Default)]
pub(super) struct TokensSpent(Mutex<Option<TokenUsage>>);

impl TokensSpent {
    pub(super) fn add(&self, tokens: TokenUsage) {
        let mut spent = self.0.lock();
        *spent = Some(spent.unwrap_or_default().plus(tokens));
    }
}

/// Runs what asks a model for an invocation, until its timeout or its cancellation.
pub(in crate::handler) async fn run_call(
    router: &ModelRouter,
    invocation: &Invocation,
    cancel: &CancellationToken,
    ask: impl AsyncFnOnce(ModelCall<'_>) -> Result<RawReply, Failure>,
) -> HandlerOutput {
    let spent = TokensSpent::default();
    let answer = ask(ModelCall { router, invocation, spent: &spent });
    let result = tokio::select! {
        // In this order: nothing is started for an event that is cancelled.
        biased;
        () = cancel.cancelled() => Err(Failure::cancelled()),
        result = tokio::time::timeout(invocation.timeout, answer) => result.unwrap_or_else(|_| {
            let message = format!("no answer of the model within {:?}", invocation.timeout);
            Err(Failure::new(Ended::TimedOut, message))
        }),
    };
    HandlerOutput { tokens: spent.0.into_inner(), ..result.into() }
}
