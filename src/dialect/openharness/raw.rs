//! A hook as its file is written: keys and values before they are checked against each other.

use super::{
    super::{
        Mapping, Span, Value,
        catalog::natives,
        suggest::{did_you_mean, shorten},
    },
    handlers::{self, RawHandler},
    lookup::HOOK_KEYS,
};
use crate::model::{Capability, EventKind, FailurePolicy, HookName, Matcher, MatcherError};

/// The kind that an agent's name for an event means.
pub(super) fn canonical_kind(name: &str) -> Option<EventKind> {
    natives().find_map(|native| native.row_named(name)).map(|row| row.kind)
}

/// A value of a file, and its position.
#[derive(Debug, Clone)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// A hook as its file has it; missing and refused values are `None`.
pub(super) struct RawHook<'d> {
    pub(super) name: Option<Spanned<HookName>>,
    pub(super) events: Vec<EventKind>,
    pub(super) matcher: Option<Spanned<Matcher>>,
    pub(super) capabilities: Vec<Spanned<Capability>>,
    pub(super) handler: Option<RawHandler<'d>>,
    pub(super) priority: i32,
    pub(super) enabled: bool,
    pub(super) on_error: Option<Spanned<FailurePolicy>>,
    pub(super) on_timeout: Option<Spanned<FailurePolicy>>,
}

impl<'d> RawHook<'d> {
    /// Reads the keys of a hook file.
    pub(super) fn read(file: &Mapping<'d>) -> Self {
        file.allow_only(&HOOK_KEYS);
        Self {
            name: file.require("name", "name: my-hook").and_then(|value| name(&value)),
            events: file
                .require("events", "events: [before_tool_dispatch]")
                .map(|value| events(&value))
                .unwrap_or_default(),
            matcher: file.get("matcher").and_then(|value| matcher(&value)),
            capabilities: file.get("capabilities").map(|value| capabilities(&value)).unwrap_or_default(),
            handler: file
                .require("handler", "handler: { type: command, command: … }")
                .and_then(|value| value.mapping())
                .and_then(|handler| handlers::read(&handler)),
            priority: file.get("priority").and_then(|value| priority(&value)).unwrap_or_default(),
            enabled: file.get("enabled").and_then(|value| value.flag()).unwrap_or(true),
            on_error: file.get("on_error").and_then(|value| policy(&value)),
            on_timeout: file.get("on_timeout").and_then(|value| policy(&value)),
        }
    }
}

fn name(value: &Value<'_>) -> Option<Spanned<HookName>> {
    match HookName::new(value.text()?) {
        Ok(name) => Some(Spanned { value: name, span: value.span() }),
        Err(e) => {
            value.error("name", format!("`name` {e}"), "use 1 to 64 of `A-Z a-z 0-9 . _ -`");
            None
        }
    }
}

fn events(value: &Value<'_>) -> Vec<EventKind> {
    let items = value.list();
    if items.as_ref().is_some_and(Vec::is_empty) {
        value.error("events", "`events` is empty", "name at least one event, or set `enabled: false`");
    }
    let mut kinds = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(kind) = event_kind(&item) else { continue };
        if kinds.contains(&kind) {
            item.warn("events", format!("duplicate event `{kind}`"), "keep one of the two");
        } else {
            kinds.push(kind);
        }
    }
    kinds
}

fn event_kind(item: &Value<'_>) -> Option<EventKind> {
    let text = item.text()?;
    let kind = EventKind::from_name(text);
    if kind.is_none() {
        let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let message = format!("unknown event `{}`", shorten(text, 64));
        let help = match canonical_kind(text) {
            Some(EventKind::HostEvent) => {
                format!(
                    "write `host_event`; it stands for every event of an agent that has no name here, and `event.name` is `{text}` in a rule"
                )
            }
            Some(kind) => format!("write `{kind}`, the name of this event in hook files"),
            None => did_you_mean(text, &known),
        };
        item.error("unknown-event", message, help);
    }
    kind
}

fn matcher(value: &Value<'_>) -> Option<Spanned<Matcher>> {
    const LEAVE_OUT: &str = "leave `matcher` out to match everything";
    let pattern = value.text()?;
    let matches_all = match pattern {
        "" => Some("`matcher` is empty"),
        "*" => Some("`matcher` is a regular expression, not a glob: `*` alone is not valid"),
        _ => None,
    };
    if let Some(message) = matches_all {
        value.error("matcher", message, LEAVE_OUT);
        return None;
    }
    match Matcher::javascript(pattern) {
        Ok(matcher) => Some(Spanned { value: matcher, span: value.span() }),
        Err(e) => {
            let span = match e {
                MatcherError::Syntax { column, .. } => value.character_span(column),
                MatcherError::TooLong(_) | MatcherError::TooLarge | MatcherError::Glob(_) => value.span(),
            };
            value.error_at(span, "matcher", format!("`matcher`: {e}"), advice(&e));
            None
        }
    }
}

fn advice(error: &MatcherError) -> &'static str {
    match error {
        MatcherError::Syntax { message, .. }
            if message.contains("unclosed") || message.contains("unopened") =>
        {
            "put a `\\` before characters that are meant literally"
        }
        MatcherError::Syntax { .. } => "the syntax is that of JavaScript, or of the Rust crate `regex`",
        MatcherError::TooLong(_) | MatcherError::TooLarge | MatcherError::Glob(_) => {
            "match more, and let the hook decide"
        }
    }
}

fn capabilities(value: &Value<'_>) -> Vec<Spanned<Capability>> {
    let known: Vec<&str> = Capability::ALL.iter().map(|capability| capability.as_str()).collect();
    let mut found = Vec::new();
    for item in value.list().unwrap_or_default() {
        let Some(text) = item.text() else { continue };
        if let Some(capability) = Capability::from_name(text) {
            found.push(Spanned { value: capability, span: item.span() });
        } else {
            let message = format!("unknown capability `{}`", shorten(text, 64));
            item.error("unknown-capability", message, did_you_mean(text, &known));
        }
    }
    found
}

fn priority(value: &Value<'_>) -> Option<i32> {
    let number = value.integer()?;
    let priority = i32::try_from(number).ok();
    if priority.is_none() {
        value.error(
            "priority",
            "`priority` is out of range",
            "use -2147483648 to 2147483647; lower runs earlier",
        );
    }
    priority
}

fn policy(value: &Value<'_>) -> Option<Spanned<FailurePolicy>> {
    let choices = FailurePolicy::ALL.map(|policy| (policy.as_str(), policy));
    value.choice(&choices).map(|policy| Spanned { value: policy, span: value.span() })
}
