//! Runs prompt hooks: a question about an event to a model, within one deadline. Refuses to keep anything between
//! events.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    Brought, Invocation, Runner,
    models::{Dialogue, ModelDoor, Talk, ToolUse, talk},
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
}

impl Runner for PromptRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Brought> {
        Box::pin(talk(&self.door, invocation, cancel, answer))
    }
}

async fn answer(talk: Talk<'_>) -> Result<RawReply, Failure> {
    let Handler::Prompt(handler) = &talk.invocation.hook.hook.handler else {
        return Err(Failure::new(Ended::Failed, "this is not a prompt hook"));
    };
    let mut dialogue = Dialogue::open(talk, &handler.model, "", &handler.prompt, Vec::new());
    let answer = dialogue.ask(ToolUse::Forbidden).await?;
    dialogue.settle(answer).await
}
