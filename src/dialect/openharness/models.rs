//! Prompt and agent handlers of hook files. Their texts are read when the hook is loaded.

use std::sync::Arc;

use super::{
    super::{Mapping, Mistake, Value, suggest::shorten},
    agent_file,
    keys::allow_handler_keys,
    lookup::ReferenceLookup,
};
use crate::model::{Agent, AgentHandler, PromptHandler};

/// A prompt handler as its file says it.
pub(super) struct RawPromptHandler<'d> {
    prompt: Option<Mapping<'d>>,
    model_ref: Option<Value<'d>>,
}

impl<'d> RawPromptHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        allow_handler_keys(handler, &["prompt", "model_ref"]);
        let prompt = handler.require("prompt").and_then(|value| value.mapping());
        Self { prompt, model_ref: handler.require("model_ref") }
    }

    pub(super) fn prepare(&self, resolver: &dyn ReferenceLookup) -> Option<PromptHandler> {
        let prompt = self.prompt.as_ref().and_then(|prompt| text(prompt, resolver));
        let model = self.model_ref.as_ref().and_then(|value| agent_file::model_of(value, resolver));
        Some(PromptHandler { prompt: prompt?, model: model? })
    }
}

/// An agent handler as its file says it.
pub(super) struct RawAgentHandler<'d> {
    agent: Option<Value<'d>>,
    task: Option<Mapping<'d>>,
}

impl<'d> RawAgentHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        allow_handler_keys(handler, &["agent", "task"]);
        let task = handler.require("task").and_then(|value| value.mapping());
        Self { agent: handler.require("agent"), task }
    }

    pub(super) fn prepare(&self, resolver: &dyn ReferenceLookup) -> Option<AgentHandler> {
        let task = self.task.as_ref().and_then(|task| text(task, resolver));
        let agent = self.agent.as_ref().and_then(|value| agent(value, resolver));
        Some(AgentHandler { agent: Arc::new(agent?), task: task? })
    }
}

fn agent(value: &Value<'_>, resolver: &dyn ReferenceLookup) -> Option<Agent> {
    let name = value.text()?;
    let refuse = |message: String, help: String| {
        value.error("agent", message, help);
        None
    };
    let (path, bytes) = match resolver.agent_file(name) {
        Ok(found) => found,
        Err((message, help)) => return refuse(format!("`agent`: {message}"), help),
    };
    match agent_file::read(name, &path, &bytes, resolver) {
        Ok(agent) => Some(agent),
        Err(wrong) => {
            let message = format!("the agent `{}` cannot be used: {}", shorten(name, 64), wrong.join("; "));
            refuse(message, format!("correct {}", path.display()))
        }
    }
}

/// A text that stands here or in a file.
fn text(mapping: &Mapping<'_>, resolver: &dyn ReferenceLookup) -> Option<Arc<str>> {
    mapping.allow_only(&["inline", "file"]);
    match (mapping.get("inline"), mapping.get("file")) {
        (Some(inline), None) => non_empty(&inline, inline.text()?),
        (None, Some(file)) => match resolver.text_file(file.text()?) {
            Ok(text) => non_empty(&file, &text),
            Err(why) => {
                file.error("text", format!("`file`: {why}"), "name a UTF-8 text file inside the workspace");
                None
            }
        },
        (Some(_), Some(file)) => {
            file.error("text", "`inline` and `file` cannot both be there", "keep one of the two");
            None
        }
        (None, None) => {
            let message = format!("`{}` needs `inline` or `file`", mapping.name());
            let mistake = Mistake::error("missing-key", mapping.span(), message);
            mapping.document().report(mistake.help("write the text, or name a file inside the workspace"));
            None
        }
    }
}

fn non_empty(value: &Value<'_>, text: &str) -> Option<Arc<str>> {
    if text.trim().is_empty() {
        value.error("text", format!("`{}` has no text", value.name()), "write the text");
        return None;
    }
    Some(text.into())
}
