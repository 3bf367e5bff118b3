//! Everything that is said and done for one invocation: within one deadline, and with its cost known however it
//! ends.

use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::door::ModelDoor;
use crate::{
    handler::{Brought, Invocation},
    model::{Ended, Failure, RawReply, TokenUsage},
};

/// What whoever talks to a model for an invocation needs.
#[derive(Debug, Clone, Copy)]
pub(in crate::handler) struct Talk<'a> {
    pub(super) door: &'a ModelDoor,
    pub(in crate::handler) invocation: &'a Invocation,
    pub(super) spent: &'a Spent,
}

/// What was spent so far, also if the talk is given up in the middle.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<Option<TokenUsage>>);

impl Spent {
    pub(super) fn add(&self, tokens: TokenUsage) {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *spent = Some(spent.unwrap_or_default().plus(tokens));
    }

    fn into_tokens(self) -> Option<TokenUsage> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a talk about an invocation, until its timeout or until nobody waits for its answer any more.
pub(in crate::handler) async fn talk(
    door: &ModelDoor,
    invocation: &Invocation,
    cancel: &CancellationToken,
    about: impl AsyncFnOnce(Talk<'_>) -> Result<RawReply, Failure>,
) -> Brought {
    let spent = Spent::default();
    let answer = about(Talk { door, invocation, spent: &spent });
    let result = tokio::select! {
        result = tokio::time::timeout(invocation.timeout, answer) => result.unwrap_or_else(|_| {
            let message = format!("no answer of the model within {:?}", invocation.timeout);
            Err(Failure::new(Ended::TimedOut, message))
        }),
        () = cancel.cancelled() => {
            Err(Failure::cancelled())
        }
    };
    Brought { tokens: spent.into_tokens(), ..result.into() }
}
