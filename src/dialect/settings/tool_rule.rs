//! Rules for tool calls, such as `Edit` or `Bash(git push *)`. A rule that could be read in two ways matches both:
//! a hook that runs too often can still decide.

use std::borrow::Cow;

use crate::{
    dialect::event_reader::unquoted,
    model::{Condition, Event, Json, Matcher, Target},
};

/// The fields of a tool's input that name what it works on; the first one present counts.
const SUBJECTS: [&str; 7] = ["command", "file_path", "path", "notebook_path", "url", "pattern", "query"];

/// A rule for tool calls.
#[derive(Debug)]
pub(super) struct ToolRule {
    written: String,
    tool: Matcher,
    /// What the tool works on; without one, anything.
    subject: Option<Matcher>,
}

impl ToolRule {
    /// The rule of a text, or `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (tool, subject) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
            None => (text, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return None;
        }
        let subject = match subject {
            None | Some("") => None,
            Some(subject) => Some(wildcards(subject)?),
        };
        Some(Self { written: text.to_owned(), tool: wildcards(tool)?, subject })
    }
}

impl Condition for ToolRule {
    fn holds(&self, event: &Event) -> bool {
        if !event.attributes.tool_name.as_deref().is_some_and(|name| self.tool.accepts(name)) {
            return false;
        }
        let Some(wanted) = &self.subject else { return true };
        let input = event.targets.get(Target::ToolInput).and_then(Json::fields);
        let subject = input.and_then(|fields| {
            SUBJECTS.iter().find_map(|name| fields.get(name).and_then(unquoted).map(Cow::into_owned))
        });
        // What is not there cannot be looked at, so the hook has to.
        subject.is_none_or(|text| wanted.accepts(&text) || parts(&text).any(|part| wanted.accepts(part)))
    }

    fn text(&self) -> String {
        format!("a tool call that fits `{}`", self.written)
    }
}

/// The commands of a line that runs several.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split(['&', '|', ';', '\n', '(', ')', '`']).map(str::trim).filter(|part| !part.is_empty())
}

/// A text in which `*` matches anything, and `:*` at the end matches anything after a word.
fn wildcards(text: &str) -> Option<Matcher> {
    let (text, end) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
        Some(stem) => (stem, r"(?:\s.*)?"),
        None => (text, ""),
    };
    let pattern: Vec<String> = text.split('*').map(regex::escape).collect();
    Matcher::search(&format!("(?s)^{}{end}$", pattern.join(".*"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventKind, RunId, SessionId};

    fn holds(rule: &str, tool: &str, input: &str) -> bool {
        let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
        event.attributes.tool_name = Some(tool.into());
        event.targets.set(Target::ToolInput, Json::parse(input).unwrap());
        ToolRule::parse(rule).unwrap().holds(&event)
    }

    #[test]
    fn rules_look_at_the_tool_and_at_what_it_works_on() {
        let push = r#"{"command":"git push origin"}"#;
        assert!(holds("Bash", "Bash", push) && !holds("Bash", "Edit", push));
        assert!(holds("Bash(git *)", "Bash", push) && holds("Bash(git push:*)", "Bash", push));
        assert!(!holds("Bash(git pull *)", "Bash", push) && !holds("Bash(gi *)", "Bash", push));
        assert!(holds("Bash(git *)", "Bash", r#"{"command":"ls && git push"}"#));
        assert!(holds("Edit(*.ts)", "Edit", r#"{"file_path":"/a/b.ts"}"#));
        assert!(!holds("Edit(*.ts)", "Edit", r#"{"file_path":"/a/b.rs"}"#));
        assert!(holds("mcp__*", "mcp__x__y", "{}") && holds("Bash(git *)", "Bash", "{}"));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "(x)", "Bash(git", "Ba sh", "Bash)"] {
            assert!(ToolRule::parse(text).is_none(), "{text}");
        }
    }
}
