//! A decision as one line of text: for `audit` and `log`.

use std::{
    borrow::Cow,
    fmt::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use super::{escape, paint::Paint, screen::Screen, wrap};
use crate::model::{Timestamp, Verdict};

/// The longest reason or error that is shown, in characters.
const LONGEST: usize = 300;

/// What a line begins with that goes on with the one before. Reasons are indented less.
const CONTINUED: &str = "\n    ";

/// A decision, from a line of the audit, the daemon's memory or an entry of the stream.
#[derive(Debug)]
pub(super) struct VerdictLine<'v> {
    at: Cow<'v, str>,
    /// Workspace, run.
    place: &'v Value,
    tool: Option<&'v str>,
    /// Event, verdict, reason.
    outcome: &'v Value,
    /// What became of the hooks.
    hooks: &'v Value,
}

impl<'v> VerdictLine<'v> {
    /// A line of the audit.
    pub(super) fn of_audit(line: &'v Value) -> Self {
        let at = Cow::Borrowed(line["at"].as_str().unwrap_or_default());
        Self { at, place: line, tool: line["tool"].as_str(), outcome: line, hooks: &line["hooks"] }
    }

    /// A decision as the daemon lists it.
    pub(super) fn of_memory(kept: &'v Value) -> Self {
        let at = Duration::from_millis(kept["at"].as_u64().unwrap_or_default());
        let at = Cow::Owned(Timestamp::of(UNIX_EPOCH + at).to_string());
        Self { at, place: kept, tool: kept["tool"].as_str(), outcome: kept, hooks: &kept["failures"] }
    }

    /// An outcome of the stream, which came at this time.
    pub(super) fn of_stream(entry: &'v Value, at: SystemTime) -> Self {
        let outcome = &entry["outcome"];
        let at = Cow::Owned(Timestamp::of(at).to_string());
        Self { at, place: entry, tool: None, outcome, hooks: &outcome["hooks"] }
    }

    /// The verdict; none in a line of a newer version.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        verdict_name(text(&self.outcome["verdict"])).ok()
    }

    /// Whether it asks, blocks or halts, or a hook failed.
    pub(super) fn is_notable(&self) -> bool {
        self.verdict().is_none_or(|verdict| verdict > Verdict::Allow) || self.failures().next().is_some()
    }

    /// The line, and one for its reason and for each hook that failed. On a terminal, long lines are broken.
    pub(super) fn render(&self, screen: &Screen) -> String {
        self.render_at(screen.table_width(), screen.out.paint)
    }

    fn render_at(&self, width: Option<usize>, paint: Paint) -> String {
        let mut lines = Words::new(width);
        lines.add(&escape::line(&self.at), |at| paint.dim(at));
        let name = format!("{:<7}", escape::line(text(&self.outcome["verdict"])));
        lines.add(&name, |name| {
            self.verdict().map_or_else(|| name.to_owned(), |known| paint.verdict(known, name))
        });
        lines.add(&escape::line(text(&self.outcome["event"])), str::to_owned);
        if let Some(tool) = self.tool {
            lines.add(&escape::short(tool, LONGEST), str::to_owned);
        }
        if let Some(by) = self.outcome["by"].as_str() {
            lines.add(&format!("by {}", escape::line(by)), str::to_owned);
        }
        lines.add(&self.place(), str::to_owned);
        lines.add(&escape::line(text(&self.outcome["decision_id"])), |id| paint.dim(id));
        let reason = self.outcome["reason"].as_str().map(|reason| escape::short(reason, LONGEST));
        for below in reason.into_iter().chain(self.failures().map(failure)) {
            // Writing to a string cannot fail.
            _ = write!(lines.text, "\n  {}", wrap::hanging(&below, width, 2));
        }
        lines.text
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
        let hooks = self.hooks.as_array().map(Vec::as_slice).unwrap_or_default();
        hooks.iter().filter(|hook| !["completed", "cancelled"].contains(&text(&hook["ended"])))
    }
}

/// Which hook failed, how and why.
fn failure(hook: &Value) -> String {
    let error = hook["error"].as_str().map(|error| format!(": {}", escape::short(error, LONGEST)));
    let (name, ended) = (escape::line(text(&hook["hook"])), escape::line(text(&hook["ended"])));
    format!("{name} {ended}{}", error.unwrap_or_default())
}

/// The parts of a line, of which those go to the next that do not fit.
struct Words {
    text: String,
    width: Option<usize>,
    /// How many characters the last line has.
    used: usize,
}

impl Words {
    fn new(width: Option<usize>) -> Self {
        Self { text: String::new(), width, used: 0 }
    }

    /// Adds a part, as it is painted.
    fn add(&mut self, part: &str, painted: impl FnOnce(&str) -> String) {
        let length = part.chars().count();
        let gap = match self.width {
            _ if self.text.is_empty() => "",
            Some(width) if self.used + 2 + length > width => {
                self.used = 0;
                CONTINUED
            }
            _ => "  ",
        };
        self.used += gap.trim_start_matches('\n').len() + length;
        self.text.push_str(gap);
        self.text.push_str(&painted(part));
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
        assert_eq!((shown.verdict(), shown.is_notable()), (Some(Verdict::Block), true));
        let expected = "2026-01-31T09:30:00.125Z  block    before_tool_dispatch  Bash  by guard  in shop/r\\x1b[2J  d-1\n  \
                        no\\nrm\n  slow timed_out: no answer";
        assert_eq!(shown.render_at(None, Paint::Plain), expected);
        let narrow = "2026-01-31T09:30:00.125Z  block  \n    before_tool_dispatch  Bash  by guard\n    in shop/r\\x1b[2J  d-1\n  \
                      no\\nrm\n  slow timed_out: no answer";
        assert_eq!(shown.render_at(Some(44), Paint::Plain), narrow);
    }
}
