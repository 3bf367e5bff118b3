//! The frame of everything that one invocation asks of a model: the client that can ask it (the embedding program's, or
//! hookyard's own), one deadline, cancellation, and the tokens used however it ends.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::client::{ModelAnswer, ModelClient, ModelError, ModelRequest};
use crate::{
    handler::runner::{HandlerOutput, Invocation},
    model::{Ended, Failure, Model, ModelAccess, RawReply, TokenUsage},
};

/// The model clients of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct ModelRouter {
    /// `None` in a build without the feature `models`.
    api: Option<Arc<dyn ModelClient>>,
    host: Option<Arc<dyn ModelClient>>,
}

impl ModelRouter {
    pub(crate) fn new(api: Option<Arc<dyn ModelClient>>, host: Option<Arc<dyn ModelClient>>) -> Self {
        Self { api, host }
    }

    /// Asks a model once.
    ///
    /// Returns a failure if there is no answer, or if no client can ask this model.
    pub(super) async fn ask(&self, model: &Model, request: &ModelRequest) -> Result<ModelAnswer, Failure> {
        let client = match model.access {
            ModelAccess::Api(_) => self.api.as_ref().ok_or_else(|| no_api_client(model))?,
            ModelAccess::Host => self.host.as_ref().ok_or_else(|| no_host_client(model))?,
        };
        client.ask(model, request).await.map_err(|error| {
            let ended = match error {
                ModelError::Failed(_) => Ended::Failed,
                ModelError::TooLarge(_) => Ended::OutputTooLarge,
            };
            Failure::new(ended, error.to_string())
        })
    }
}

fn no_api_client(model: &Model) -> Failure {
    let message = format!(
        "this build of hookyard cannot ask the model `{}`; build it with the feature `models`",
        model.reference
    );
    Failure::new(Ended::SpawnFailed, message)
}

fn no_host_client(model: &Model) -> Failure {
    let message = format!("the host no longer provides the model `{}`", model.reference);
    Failure::new(Ended::Failed, message)
}

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
