//! Made-up events for a hook.

use crate::{
    cli::new::sample_event,
    dialect,
    model::{DialectName, Event, EventKind, Hook, Literals, MatchField},
};

/// A made-up event of a kind, with a tool that the matcher of the hook takes. `None` for an event that has no kind of its
/// own.
pub(super) fn made_up(hook: &Hook, kind: EventKind) -> Option<Event> {
    dialect::named(DialectName::Canonical).read_event(made_up_json(hook, kind).to_string().as_bytes()).ok()
}

/// The same as JSON.
pub(super) fn made_up_json(hook: &Hook, kind: EventKind) -> serde_json::Value {
    let mut sample = with_prompt(kind);
    if kind.match_field() == Some(MatchField::ToolName)
        && let Some(matcher) = &hook.matcher
        && let Some(Literals::Exact(names) | Literals::Contains(names)) = matcher.literals()
        && let Some(name) = names.first().filter(|_| !matcher.accepts("Bash"))
    {
        sample["tool_name"] = name.as_str().into();
    }
    sample
}

/// The made-up event of a kind as JSON; a hook that is asked for a prompt gets one.
fn with_prompt(kind: EventKind) -> serde_json::Value {
    let mut sample = sample_event(kind);
    if kind == EventKind::PromptSubmitted {
        sample["prompt"] = "hello".into();
    }
    sample
}
