//! Agent files: YAML between two lines `---`, then the agent's role.

use std::{num::NonZeroUsize, path::Path};

use super::{
    super::{Document, Mapping, Value, suggest::did_you_mean, suggest::shorten},
    lookup::ReferenceLookup,
};
use crate::model::{Agent, AgentTool, Diagnostic, Model, Severity};

/// How often the model of an agent is asked for one task by default.
const USUAL_TURNS: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");

/// How often the model of an agent may be asked for one task.
const MOST_TURNS: i64 = 50;

/// The code of a model that the hooks cannot use. What helps is in the settings, not in the file.
pub(super) const MODEL_CODE: &str = "model";

const KEYS: [&str; 4] = ["model_ref", "tools", "max_turns", "description"];

/// The line before and after the keys.
const FENCE: &str = "---";

/// Reads the file of an agent.
///
/// Returns all mistakes if there are any.
pub(super) fn read(
    name: &str,
    path: &Path,
    bytes: &[u8],
    resolver: &dyn ReferenceLookup,
) -> Result<Agent, Vec<Diagnostic>> {
    let of_file = |message: &str| Diagnostic::of_file(Severity::Error, "agent", path, message);
    let text = std::str::from_utf8(bytes).map_err(|_| vec![of_file("it is not UTF-8")])?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (keys, role) = split(text).ok_or_else(|| {
        let needed = format!("begin it with a line `{FENCE}`, the agent's keys, and another line `{FENCE}`");
        vec![of_file("its keys are missing").help(needed)]
    })?;
    // The first fence stays, so that places are those of the file.
    let document = Document::parse(keys.as_bytes(), path).map_err(|diagnostic| vec![*diagnostic])?;
    let system = role.trim();
    let agent = document.root().and_then(|root| {
        root.allow_only(&KEYS);
        let model = root.require("model_ref", "model_ref: platform/default");
        let model = model.and_then(|value| model_of(&value, resolver));
        let max_turns = root.get("max_turns").map_or(Some(USUAL_TURNS), |value| turns(&value));
        let tools = tools(&root);
        let description = root.get("description").and_then(|value| value.text()).map(str::to_owned);
        let system = system.to_owned();
        Some(Agent {
            name: name.to_owned(),
            description,
            system,
            model: model?,
            tools,
            max_turns: max_turns?,
        })
    });
    let has_errors = document.has_errors();
    let mut wrong = document.into_diagnostics();
    if system.is_empty() {
        wrong.push(of_file("its system prompt is missing").help("write it below the keys"));
    }
    agent.filter(|_| !has_errors && !system.is_empty()).ok_or(wrong)
}

/// The part with the keys and its first fence, and the text below the second.
fn split(text: &str) -> Option<(&str, &str)> {
    let first = text.lines().next().filter(|line| line.trim_end() == FENCE)?;
    let mut end = text.find(first)? + first.len();
    end += text[end..].find('\n')? + 1;
    let mut at = end;
    for line in text[end..].split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// A model that hooks may ask.
pub(super) fn model_of(value: &Value<'_>, resolver: &dyn ReferenceLookup) -> Option<Model> {
    match resolver.model(value.text()?) {
        Ok(model) => Some(model),
        Err((message, help)) => {
            value.error(MODEL_CODE, format!("`{}`: {message}", value.name()), help);
            None
        }
    }
}

fn turns(value: &Value<'_>) -> Option<NonZeroUsize> {
    let number = value.integer()?;
    let turns = usize::try_from(number).ok().and_then(NonZeroUsize::new).filter(|_| number <= MOST_TURNS);
    if turns.is_none() {
        value.error("max-turns", "`max_turns` is out of range", format!("use 1 to {MOST_TURNS}"));
    }
    turns
}

fn tools(root: &Mapping<'_>) -> Vec<AgentTool> {
    let known: Vec<&str> = AgentTool::ALL.iter().map(|tool| tool.as_str()).collect();
    let mut tools = Vec::new();
    for item in root.get("tools").and_then(|value| value.list()).unwrap_or_default() {
        let Some(text) = item.text() else { continue };
        match AgentTool::from_name(text) {
            Some(tool) if !tools.contains(&tool) => tools.push(tool),
            Some(_) => {}
            None => {
                let message = format!("unknown tool `{}`", shorten(text, 64));
                item.error("tool", message, did_you_mean(text, &known));
            }
        }
    }
    tools
}
