//! Matchers of settings files.

use std::sync::Arc;

use super::{
    super::{
        document::Value,
        event_reader::unquoted,
        event_table::{EventRow, MatchSource},
    },
    format::EventFilter,
    tool_rule::{current_name, renamed_tools},
};
use crate::model::{Condition, Event, EventKind, Json, Matcher, MatcherError, Target};

/// A matcher that is a name, a list of names, or else a pattern that may match anywhere.
pub(in crate::dialect) fn exact_list_or_regex(value: &Value<'_>, _: &EventRow) -> Option<EventFilter> {
    let text = value.text()?;
    if matches!(text, "" | "*") {
        return Some(EventFilter::default());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-,| ".contains(c);
    let matcher = if text.chars().all(is_plain) {
        let names: Vec<&str> =
            text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            let message = "`matcher` names nothing, so its hooks would never run";
            value.error("matcher", message, "leave `matcher` out to match everything");
            return None;
        }
        let names: Vec<&str> = names.iter().flat_map(|name| [*name, current_name(name)]).collect();
        Matcher::any_of(&names, text)
    } else {
        search_with_aliases(text, renamed_tools())
    };
    wanted(value, matcher)
}

/// A matcher that is a name, names between bars, or else a pattern that may match anywhere. A name of `aliases` also
/// means the tool beside it.
pub(in crate::dialect) fn exact_names_or_regex(
    value: &Value<'_>,
    row: &EventRow,
    aliases: &'static [(&'static str, &'static str)],
) -> Option<EventFilter> {
    let text = value.text()?;
    if matches!(text, "" | "*") || row.match_source == MatchSource::Unmatched {
        return Some(EventFilter::default());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '|';
    let matcher = if text.chars().all(is_plain) {
        let meant =
            |name| aliases.iter().filter(move |(alias, _)| *alias == name).map(|(_, current)| *current);
        let names: Vec<&str> =
            text.split('|').flat_map(|name| [name].into_iter().chain(meant(name))).collect();
        Matcher::any_of(&names, text)
    } else {
        search_with_aliases(text, aliases.iter().copied())
    };
    wanted(value, matcher)
}

/// A matcher that is a pattern for the whole text. A tool that has two names, beside each other in `tools`, is meant by
/// either.
pub(in crate::dialect) fn whole_regex(
    value: &Value<'_>,
    row: &EventRow,
    tools: &'static [(&'static str, &'static str)],
) -> Option<EventFilter> {
    let text = value.text()?;
    if matches!(text, "" | "*") || row.match_source == MatchSource::Unmatched {
        return Some(EventFilter::default());
    }
    // Without the brackets, to show mistakes where they are in the file.
    let matcher = Matcher::javascript(text).and_then(|_| {
        let both = tools.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
        search_with_aliases(&format!("^(?:{text})$"), both)
    });
    wanted(value, matcher)
}

/// A matcher that is a pattern, which may match anywhere. On some events it is compared with a word of theirs, and on
/// those that have nothing to compare it with, it matches.
pub(in crate::dialect) fn search_or_word(
    value: &Value<'_>,
    row: &EventRow,
    words: &[(&str, &str)],
) -> Option<EventFilter> {
    let text = value.text()?;
    if matches!(text, "" | "*") {
        return Some(EventFilter::default());
    }
    let matcher = Matcher::javascript(text);
    if row.match_source != MatchSource::Unmatched || matcher.is_err() {
        return wanted(value, matcher);
    }
    let word = words.iter().find(|(event, _)| *event == row.name).map(|(_, word)| *word);
    if let Some(word) = word.filter(|word| !matcher.is_ok_and(|matcher| matcher.accepts(word))) {
        let message = format!("`matcher` never matches: on {} it is compared with `{word}`", row.name);
        value.error("matcher", message, "the hook never runs; leave `matcher` out, and decide in the hook");
        return None;
    }
    Some(EventFilter::default())
}

/// A pattern, which also matches the tool that a matching alias means, such as a former name.
fn search_with_aliases(
    text: &str,
    aliases: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<Matcher, MatcherError> {
    let matcher = Matcher::javascript(text)?;
    let is_new = |current: &&str| !matcher.accepts(current);
    let meant = aliases.filter(|(alias, _)| matcher.accepts(alias));
    let mut names: Vec<&str> = meant.map(|(_, current)| current).filter(is_new).collect();
    names.dedup();
    if names.is_empty() {
        return Ok(matcher);
    }
    Matcher::javascript(&format!("(?:{text})|^(?:{})$", names.join("|")))
}

/// A matcher that is a pattern for these kinds, which may match anywhere, and the whole text for any other.
pub(in crate::dialect) fn exact_or_regex(
    value: &Value<'_>,
    row: &EventRow,
    searched: &[EventKind],
) -> Option<EventFilter> {
    let text = value.text()?.trim();
    if matches!(text, "" | "*") {
        return Some(EventFilter::default());
    }
    if !searched.contains(&row.kind) {
        return wanted(value, Matcher::any_of(&[text], text));
    }
    match Matcher::javascript(text) {
        Err(error @ MatcherError::Syntax { .. }) => {
            let message = format!("`matcher`: {error}; it is compared as a text");
            value.warn("matcher", message, "its hooks run for exactly this text");
            wanted(value, Matcher::any_of(&[text], text))
        }
        matcher => wanted(value, matcher),
    }
}

/// A matcher that is a pattern, which may match anywhere, or several between bars. One that is a name of `aliases`, and
/// nothing more, also means the tool beside it.
pub(in crate::dialect) fn names_or_regexes(
    value: &Value<'_>,
    aliases: &[(&str, &str)],
) -> Option<EventFilter> {
    let text = value.text()?.trim();
    let is_list = !text.starts_with(['^', '(']);
    let parts = if is_list { alternatives(text) } else { vec![text] };
    let parts: Vec<&str> = parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    if text.is_empty() || parts.iter().any(|part| matches!(*part, "*" | ".*")) {
        return Some(EventFilter::default());
    }
    let meant = aliases.iter().filter(|(alias, _)| parts.contains(alias)).map(|(_, tool)| *tool);
    let meant: Vec<&str> = meant.collect();
    let pattern = parts.join("|");
    match Matcher::javascript(&pattern) {
        // Bars alone.
        Ok(_) if parts.is_empty() => wanted(value, Matcher::any_of(&[text], text)),
        Err(error @ MatcherError::Syntax { .. }) => {
            let message = format!("`matcher`: {error}; it is compared as a text");
            value.warn("matcher", message, "its hooks run for exactly this text");
            let texts: Vec<&str> = parts.into_iter().chain(meant).collect();
            wanted(value, Matcher::any_of(&texts, text))
        }
        Ok(_) if !meant.is_empty() => {
            wanted(value, Matcher::javascript(&format!("(?:{pattern})|^(?:{})$", meant.join("|"))))
        }
        matcher => wanted(value, matcher),
    }
}

/// The parts of a text between bars that are in no brackets.
fn alternatives(text: &str) -> Vec<&str> {
    let mut bars = Vec::new();
    let (mut depth, mut is_escaped, mut is_in_class) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ']' => is_in_class = false,
            _ if is_in_class => {}
            '[' => is_in_class = true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => bars.push(at),
            _ => {}
        }
    }
    let starts = std::iter::once(0).chain(bars.iter().map(|bar| bar + 1));
    let ends = bars.iter().copied().chain([text.len()]);
    starts.zip(ends).filter_map(|(start, end)| text.get(start..end)).collect()
}

fn wanted(value: &Value<'_>, matcher: Result<Matcher, MatcherError>) -> Option<EventFilter> {
    match matcher {
        Ok(matcher) => Some(EventFilter { matcher: Some(matcher), condition: None }),
        Err(error @ (MatcherError::TooLong(_) | MatcherError::TooLarge)) => {
            let message = format!("`{}`: {error}; it is ignored", value.name());
            value.warn(
                "matcher",
                message,
                "its hooks run for every such event; match more, and decide in the hook",
            );
            Some(EventFilter::default())
        }
        Err(error) => {
            refuse(value, &error);
            None
        }
    }
}

/// A pattern for the command of a tool call, which may match anywhere. A call without a command does not fit.
#[expect(clippy::option_option, reason = "no condition and one that was refused are different things")]
pub(super) fn command_pattern(value: &Value<'_>) -> Option<Option<Arc<dyn Condition>>> {
    let text = value.text()?;
    if text.is_empty() {
        return Some(None);
    }
    let found = wanted(value, Matcher::javascript(text))?;
    Some(found.matcher.map(|pattern| Arc::new(CommandPattern(pattern)) as Arc<dyn Condition>))
}

/// What the command of a tool call must look like.
#[derive(Debug)]
struct CommandPattern(Matcher);

impl Condition for CommandPattern {
    fn holds(&self, event: &Event) -> bool {
        let fields = event.targets.get(Target::ToolInput).and_then(Json::fields);
        let command = fields.as_ref().and_then(|fields| unquoted(fields.get("command")?));
        command.is_some_and(|command| self.0.accepts(&command))
    }

    fn text(&self) -> String {
        format!("a command that fits `{}`", self.0.pattern())
    }
}

fn refuse(value: &Value<'_>, error: &MatcherError) {
    let span = match error {
        MatcherError::Syntax { column, .. } => value.character_span(*column),
        MatcherError::TooLong(_) | MatcherError::TooLarge | MatcherError::Glob(_) => value.span(),
    };
    let message = format!("`{}`: {error}", value.name());
    value.error_at(span, "matcher", message, "its hooks are not loaded; match more and decide in the hook");
}
