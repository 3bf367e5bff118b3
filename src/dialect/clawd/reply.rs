//! Reads the answers of ClawdCode's hooks: exit codes, plain text and JSON, with fields at the top or in
//! `hookSpecificOutput`. An answer that is almost a decision is `invalid_output`.

use crate::{
    dialect::{
        event_table::{BlockEffect, EventRow, PlainText},
        output::{
            check_size, default_reason, excerpt, exited, flag_of, invalid, object_of, printed_too_much,
            text_in, text_of, unknown_keys, value_of, whole_object, wrong_type,
        },
    },
    model::{
        Ended, EventKind, Failure, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply,
        Target,
    },
};

/// The exit code of a failure, which counts as the hook's policy says.
const FAILURE: i32 = 1;

/// The exit code of a block.
const BLOCK: i32 = 2;

/// The exit code of a hook that timed out by itself, as `timeout` has it.
const TIMEOUT: i32 = 124;

/// The object that may hold fields, and the prefix of their names in messages.
const SPECIFIC: &str = "hookSpecificOutput";
const WITHIN: &str = "hookSpecificOutput.";

/// The fields of a decision, and those of its reason; the first one present counts.
const DECISIONS: [&str; 2] = ["permissionDecision", "decision"];
const REASONS: [&str; 2] = ["permissionDecisionReason", "reason"];

/// Reads the output of a handler.
///
/// Returns a failure if the dialect does not allow the answer.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    match raw {
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => Err(printed_too_much(&stdout)),
        RawReply::Command { exit_code: 0, stdout, .. } => printed(row, hook, &stdout),
        RawReply::Command { exit_code: BLOCK, stdout, stderr, .. } => {
            Ok(refused(row, hook, &stdout, &stderr))
        }
        RawReply::Command { exit_code: FAILURE, stderr, .. } => Err(exited(FAILURE, &stderr)),
        RawReply::Command { exit_code: TIMEOUT, .. } => {
            Err(Failure::new(Ended::TimedOut, format!("exit code {TIMEOUT}, which means a timeout")))
        }
        RawReply::Command { exit_code, stderr, .. } => Err(exited(exit_code, &stderr).ignored()),
        RawReply::Http { .. } | RawReply::Text(_) => Err(invalid("only commands answer in this dialect")),
        RawReply::Native(reply) => Ok(reply),
    }
}

/// Whether an output is meant as JSON.
fn json_in(stdout: &[u8]) -> bool {
    stdout.trim_ascii_start().starts_with(b"{")
}

/// The output of a hook that succeeded: JSON if it looks like it, or else plain text.
fn printed(row: &EventRow, hook: &Hook, stdout: &[u8]) -> Result<Reply, Failure> {
    let mut reply = Reply::default();
    if json_in(stdout) {
        let text = text_in(stdout)?;
        let output = ClawdOutput::of(whole_object(text, text)?)?;
        output.read(row, hook, &mut reply)?;
    } else if row.plain_text == PlainText::Told {
        note(
            &mut reply,
            NoteKind::AdditionalContext,
            Some(String::from_utf8_lossy(stdout).trim().to_owned()),
        );
    }
    Ok(reply)
}

/// A hook that ended with the exit code of a block: its standard error is the reason, whatever else it printed.
fn refused(row: &EventRow, hook: &Hook, stdout: &[u8], stderr: &[u8]) -> Reply {
    let mut reply = Reply::default();
    let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
    let printed = || {
        let text = text_in(stdout).ok().filter(|_| json_in(stdout))?;
        ClawdOutput::of(whole_object(text, text).ok()?).ok()?.reason().ok()?
    };
    let reason = if stderr.is_empty() { printed() } else { Some(stderr) };
    if row.kind.is_interceptor() {
        reply.decision = HookDecision::Block(Some(reason.unwrap_or_else(|| default_reason(hook, "blocked"))));
    } else if row.block == BlockEffect::Tells {
        note(&mut reply, NoteKind::AdditionalContext, reason);
    } else {
        note(&mut reply, NoteKind::SystemMessage, reason);
    }
    reply
}

fn note(reply: &mut Reply, kind: NoteKind, text: Option<String>) {
    reply.notes.extend(text.filter(|text| !text.trim().is_empty()).map(|text| (kind, text)));
}

/// A hook's output, in both objects.
struct ClawdOutput<'a> {
    specific: JsonFields<'a>,
    top: JsonFields<'a>,
}

impl<'a> ClawdOutput<'a> {
    fn of(top: JsonFields<'a>) -> Result<Self, Failure> {
        let specific = match value_of(&top, SPECIFIC) {
            Some(value) => object_of(SPECIFIC, value)?,
            None => JsonFields::default(),
        };
        Ok(Self { specific, top })
    }

    /// Both objects, the more specific first, each with the prefix of its names in messages.
    fn places(&self) -> [(&JsonFields<'a>, &'static str); 2] {
        [(&self.specific, WITHIN), (&self.top, "")]
    }

    fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        for (fields, within) in self.places() {
            let text = text_of(fields, within, name)?.filter(|text| !text.trim().is_empty());
            if text.is_some() {
                return Ok(text);
            }
        }
        Ok(None)
    }

    /// Whether a flag is set in either object.
    fn flag(&self, name: &str) -> Result<bool, Failure> {
        let [specific, top] = self.places().map(|(fields, within)| flag_of(fields, within, name));
        Ok(specific? == Some(true) || top? == Some(true))
    }

    fn reason(&self) -> Result<Option<String>, Failure> {
        for name in REASONS {
            if let Some(reason) = self.text(name)? {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// Of several decisions, the strictest.
    fn decision(&self) -> Result<Option<Decision>, Failure> {
        let mut strictest = None;
        for (fields, within) in self.places() {
            for name in DECISIONS {
                let Some(word) = text_of(fields, within, name)? else { continue };
                strictest = strictest.max(Some(Decision::of(&word, name)?));
            }
        }
        Ok(strictest)
    }

    fn read(&self, row: &EventRow, hook: &Hook, reply: &mut Reply) -> Result<(), Failure> {
        self.warn(row, reply);
        note(reply, NoteKind::AdditionalContext, self.text("additionalContext")?);
        let reason = self.reason()?;
        let block =
            |verb| HookDecision::Block(Some(reason.clone().unwrap_or_else(|| default_reason(hook, verb))));
        match row.kind {
            EventKind::AgentStopping | EventKind::SubagentStopping if self.flag("continue")? => {
                reply.decision = block("kept at work");
            }
            EventKind::BeforeContextCompact if self.flag("prevent")? => reply.decision = block("prevented"),
            kind if decides(kind) => match self.decision()? {
                None => {}
                Some(Decision::Allow) => reply.decision = HookDecision::Allow(reason),
                Some(Decision::Deny) => reply.decision = block("blocked"),
                // The next hook may still decide, and if none does a person is asked anyway.
                Some(Decision::Ask) if kind == EventKind::PermissionRequested => {
                    note(reply, NoteKind::SystemMessage, reason);
                }
                Some(Decision::Ask) => reply.decision = HookDecision::Ask(reason),
            },
            _ => {}
        }
        if changes(row.kind) { self.changed_input(reply) } else { Ok(()) }
    }

    fn changed_input(&self, reply: &mut Reply) -> Result<(), Failure> {
        const NAME: &str = "updatedInput";
        for (fields, within) in self.places() {
            let Some(value) = value_of(fields, NAME) else { continue };
            if !value.get().starts_with('{') {
                return Err(wrong_type(&format!("{within}{NAME}"), "an object", value));
            }
            check_size(value)?;
            reply.patches.push(Patch::Target(Target::ToolInput, Json::checked(value)));
            break;
        }
        Ok(())
    }

    fn warn(&self, row: &EventRow, reply: &mut Reply) {
        let mut known = vec![SPECIFIC, "hookEventName", "additionalContext", "reason"];
        match row.kind {
            EventKind::AgentStopping | EventKind::SubagentStopping => known.push("continue"),
            EventKind::BeforeContextCompact => known.push("prevent"),
            kind if decides(kind) => known.extend(DECISIONS.into_iter().chain(REASONS)),
            _ => {}
        }
        if changes(row.kind) {
            known.push("updatedInput");
        }
        for (fields, within) in self.places() {
            reply.warnings.extend(unknown_keys(fields, &known, within));
        }
        if let Ok(Some(other)) = text_of(&self.specific, WITHIN, "hookEventName")
            && other != row.name
        {
            let shown = excerpt(&other);
            reply.warnings.push(format!("{SPECIFIC} is for `{shown}`, not for `{}`, but counts", row.name));
        }
    }
}

/// Whether hooks decide about the subject of the event.
fn decides(kind: EventKind) -> bool {
    changes(kind) || matches!(kind, EventKind::PromptSubmitted | EventKind::AfterToolDispatch)
}

/// Whether hooks may change a tool's input.
fn changes(kind: EventKind) -> bool {
    matches!(kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested)
}

/// The decision of a hook, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Decision {
    Allow,
    Ask,
    Deny,
}

impl Decision {
    fn of(word: &str, field: &str) -> Result<Self, Failure> {
        match word {
            "allow" | "approve" => Ok(Self::Allow),
            "ask" => Ok(Self::Ask),
            "deny" => Ok(Self::Deny),
            other => {
                let shown = excerpt(other);
                Err(invalid(format!(
                    "`{field}` is {shown:?}; the decisions are \"allow\", \"deny\" and \"ask\""
                )))
            }
        }
    }
}
