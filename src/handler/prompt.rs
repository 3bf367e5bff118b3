//! Runs prompt hooks: one question to a model about an event.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    models::{Conversation, ModelCall, ModelRouter, ToolUse, run_call},
    runner::{HandlerOutput, Invocation, Runner},
};
use crate::model::{Ended, Failure, Handler, RawReply};

/// Runs prompt handlers.
#[derive(Debug)]
pub(crate) struct PromptRunner {
    router: ModelRouter,
}

impl PromptRunner {
    pub(crate) fn new(router: ModelRouter) -> Self {
        Self { router }
    }
}

impl Runner for PromptRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput> {
        Box::pin(run_call(&self.router, invocation, cancel, answer))
    }
}

async fn answer(call: ModelCall<'_>) -> Result<RawReply, Failure> {
    let Handler::Prompt(handler) = &call.invocation.hook.hook.handler else {
        return Err(Failure::new(Ended::Failed, "this is not a prompt hook"));
    };
    let mut conversation = Conversation::open(call, &handler.model, "", &handler.prompt, Vec::new())?;
    let answer = conversation.ask(ToolUse::Forbidden).await?;
    conversation.finish(answer).await
}
