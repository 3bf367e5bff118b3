//! Runs prompt hooks: a question about an event to a model, within one deadline. Refuses to keep anything between
//! events.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    Invocation, Runner,
    models::{Dialogue, ModelDoor, ToolUse, within},
};
use crate::model::{Ended, Failure, Handler, RawReply};

/// Runs prompt handlers.
#[derive(Debug)]
pub(crate) struct PromptRunner {
    door: ModelDoor,
}

impl PromptRunner {
    pub(crate) fn new(door: ModelDoor) -> Self {
        Self { door }
    }

    async fn answer(&self, invocation: &Invocation) -> Result<RawReply, Failure> {
        let Handler::Prompt(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::Failed, "this is not a prompt hook"));
        };
        let model = &handler.model;
        let mut dialogue = Dialogue::open(&self.door, model, invocation, "", &handler.prompt, Vec::new());
        let answer = dialogue.ask(ToolUse::Forbidden).await?;
        dialogue.settle(answer).await
    }
}

impl Runner for PromptRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<RawReply, Failure>> {
        Box::pin(within(invocation, cancel, self.answer(invocation)))
    }
}
