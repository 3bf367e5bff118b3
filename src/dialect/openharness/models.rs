//! Prompt and agent handlers of hook files. Their texts are read when the hook is loaded.

use std::{path::Path, sync::Arc};

use super::{
    super::{Mapping, Mistake, Value, suggest::shorten},
    agent_file,
    lookup::{ReferenceLookup, allow_handler_keys},
};
use crate::model::{Agent, AgentHandler, Diagnostic, PromptHandler};

/// A prompt handler as its file has it.
pub(super) struct RawPromptHandler<'d> {
    prompt: Option<Mapping<'d>>,
    model_ref: Option<Value<'d>>,
    handler: Mapping<'d>,
}

impl<'d> RawPromptHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        allow_handler_keys(handler, &["prompt", "model_ref"]);
        let prompt =
            handler.require("prompt", "prompt: { inline: Is this safe? }").and_then(|value| value.mapping());
        Self { prompt, model_ref: handler.get("model_ref"), handler: handler.clone() }
    }

    pub(super) fn prepare(&self, resolver: &dyn ReferenceLookup) -> Option<PromptHandler> {
        let prompt = self.prompt.as_ref().and_then(|prompt| text(prompt, resolver));
        let model = match &self.model_ref {
            Some(value) => agent_file::model_of(value, value.text(), resolver),
            None => agent_file::usual_model(self.handler.document(), self.handler.span(), resolver),
        };
        Some(PromptHandler { prompt: prompt?, model: model? })
    }
}

/// An agent handler as its file has it.
pub(super) struct RawAgentHandler<'d> {
    agent: Option<Value<'d>>,
    task: Option<Mapping<'d>>,
}

impl<'d> RawAgentHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        allow_handler_keys(handler, &["agent", "task"]);
        let task =
            handler.require("task", "task: { inline: Check the change. }").and_then(|value| value.mapping());
        Self { agent: handler.require("agent", "agent: reviewer"), task }
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
        Ok((agent, warnings)) => {
            for warning in warnings {
                let message = format!("the agent `{}`: {}", shorten(name, 64), located(&warning));
                value.warn("agent", message, warning.help.unwrap_or_default());
            }
            Some(agent)
        }
        Err(mistakes) => {
            let (what, help) = agent_file_error(&mistakes, &path);
            refuse(format!("the agent `{}` cannot be used: {what}", shorten(name, 64)), help)
        }
    }
}

/// A message with its line in an agent's file.
fn located(mistake: &Diagnostic) -> String {
    match mistake.line {
        0 => mistake.message.clone(),
        line => format!("line {line}: {}", mistake.message),
    }
}

/// What is wrong with an agent's file, and what to do.
fn agent_file_error(mistakes: &[Diagnostic], path: &Path) -> (String, String) {
    let path = path.display();
    if let [only] = mistakes {
        let help = match &only.help {
            Some(help) if only.code == agent_file::MODEL_CODE => help.clone(),
            Some(help) => format!("correct {path}: {help}"),
            None => format!("correct {path}"),
        };
        return (located(only), help);
    }
    let with_help = |mistake: &Diagnostic| match &mistake.help {
        Some(help) => format!("{} ({help})", located(mistake)),
        None => located(mistake),
    };
    let all: Vec<String> = mistakes.iter().map(with_help).collect();
    (all.join("; "), format!("correct {path}"))
}

/// A text given here or in a file.
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
            file.error("text", "`inline` and `file` cannot be used together", "keep one of the two");
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
