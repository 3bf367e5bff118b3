//! A decision as one line of text: for `audit` and `log`.

use std::fmt::Write;

use serde_json::Value;

use super::{escape, paint::Paint};
use crate::model::Verdict;

/// The longest reason or error that is shown, in characters.
const LONGEST: usize = 300;

/// A decision, from a line of the audit or an entry of the stream.
#[derive(Debug)]
pub(super) struct VerdictLine<'v> {
    at: &'v str,
    /// Workspace, run.
    place: &'v Value,
    tool: Option<&'v str>,
    /// Event, verdict, reason, hooks.
    outcome: &'v Value,
}

impl<'v> VerdictLine<'v> {
    /// A line of the audit.
    pub(super) fn of_audit(line: &'v Value) -> Self {
        let at = line["at"].as_str().unwrap_or_default();
        Self { at, place: line, tool: line["tool"].as_str(), outcome: line }
    }

    /// An outcome of the stream, which came at this time.
    pub(super) fn of_stream(entry: &'v Value, at: &'v str) -> Self {
        Self { at, place: entry, tool: None, outcome: &entry["outcome"] }
    }

    /// The verdict; none in a line of a newer version.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        verdict_name(text(&self.outcome["verdict"])).ok()
    }

    /// Whether a hook failed.
    pub(super) fn has_failure(&self) -> bool {
        self.failures().next().is_some()
    }

    /// The line, and one for each hook that failed.
    pub(super) fn render(&self, paint: Paint) -> String {
        let name = text(&self.outcome["verdict"]);
        let padded = format!("{:<7}", escape::line(name));
        let verdict = self.verdict().map_or_else(|| padded.clone(), |known| paint.verdict(known, &padded));
        let mut parts = vec![paint.dim(&escape::line(self.at)), verdict];
        parts.push(escape::line(text(&self.outcome["event"])).into_owned());
        parts.extend(self.tool.map(|tool| escape::short(tool, LONGEST)));
        if let Some(by) = self.outcome["by"].as_str() {
            parts.push(format!("by {}", escape::line(by)));
        }
        parts.push(self.place());
        parts.push(paint.dim(&escape::line(text(&self.outcome["decision_id"]))));
        let mut lines = parts.join("  ");
        if let Some(reason) = self.outcome["reason"].as_str() {
            // Writing to a string cannot fail.
            _ = write!(lines, "\n  {}", escape::short(reason, LONGEST));
        }
        for hook in self.failures() {
            let error = hook["error"].as_str().map(|error| format!(": {}", escape::short(error, LONGEST)));
            let ended = text(&hook["ended"]);
            let line = format!(
                "\n  {} {}{}",
                escape::line(text(&hook["hook"])),
                escape::line(ended),
                error.unwrap_or_default()
            );
            lines.push_str(&line);
        }
        lines
    }

    /// Where the event belongs; why no hook was asked, where that is not known.
    fn place(&self) -> String {
        if let Some(code) = self.outcome["unasked"]["code"].as_str() {
            return format!("no hook asked: {}", escape::line(code));
        }
        let (workspace, run) = (text(&self.place["workspace_id"]), text(&self.place["run_id"]));
        format!("in {}/{}", escape::line(workspace), escape::short(run, LONGEST))
    }

    fn failures(&self) -> impl Iterator<Item = &'v Value> {
        let hooks = self.outcome["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        hooks.iter().filter(|hook| !["completed", "cancelled"].contains(&text(&hook["ended"])))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The verdict of this name.
pub(super) fn verdict_name(name: &str) -> Result<Verdict, String> {
    let names = || Verdict::ALL.map(Verdict::as_str).join(", ");
    let found = Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == name);
    found.ok_or_else(|| format!("use one of {}", names()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_the_decision_its_reason_and_the_failures() {
        let line = json!({
            "at": "2026-01-31T09:30:00.125Z", "workspace_id": "shop", "run_id": "r\u{1b}[2J", "decision_id": "d-1",
            "event": "before_tool_dispatch", "tool": "Bash", "verdict": "block", "by": "guard", "reason": "no\nrm",
            "hooks": [
                { "hook": "guard", "ended": "completed" },
                { "hook": "slow", "ended": "timed_out", "error": "no answer" },
            ],
        });
        let shown = VerdictLine::of_audit(&line);
        assert_eq!((shown.verdict(), shown.has_failure()), (Some(Verdict::Block), true));
        let expected = "2026-01-31T09:30:00.125Z  block    before_tool_dispatch  Bash  by guard  in shop/r\\x1b[2J  d-1\n  \
                        no\\nrm\n  slow timed_out: no answer";
        assert_eq!(shown.render(Paint::Plain), expected);
    }
}
