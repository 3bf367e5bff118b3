//! Reads the answers of Claude Code's hooks: exit codes, plain text, JSON, HTTP statuses and a model's judgement.
//! An answer that is almost a decision is `invalid_output`.

use serde_json::value::RawValue;

use crate::{
    dialect::{
        event_table::{BlockEffect, EventRow, PlainText},
        output::{
            check_size, default_reason, excerpt, exited, flag_of, goes_on_in_background, invalid,
            misspelt_key, no_object, object_in, object_of, printed_too_much, refused_by_server, text_in,
            text_of, unknown_keys, unmarked, value_of, whole_object, wrong_type,
        },
    },
    model::{
        EventKind, Failure, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Target,
    },
};

/// The exit code of a block.
const BLOCK: i32 = 2;

/// The field with the path of a worktree that a hook has made.
pub(in crate::dialect) const WORKTREE_PATH: &str = "worktreePath";

/// The field of an answer with a control sequence for the terminal.
pub(super) const TERMINAL_SEQUENCE: &str = "terminalSequence";

/// The field with the changed input of a tool.
pub(super) const UPDATED_INPUT: &str = "updatedInput";

/// The decision to leave a call for later.
pub(super) const DEFER: &str = "defer";

const TOP_KEYS: [&str; 8] = [
    "continue",
    "stopReason",
    "decision",
    "reason",
    "suppressOutput",
    "systemMessage",
    TERMINAL_SEQUENCE,
    "hookSpecificOutput",
];

/// Reads the output of a handler.
///
/// Returns a failure if the dialect does not allow the answer.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    let mut reader = Reader { row, hook, reply: Reply::default() };
    match raw {
        // Its end says nothing more, whatever it is.
        RawReply::Command { stdout, .. } if goes_on_in_background(&stdout) => {}
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => {
            return Err(printed_too_much(&stdout));
        }
        RawReply::Command { exit_code: 0, stdout, .. } => reader.printed(&stdout)?,
        RawReply::Command { exit_code: BLOCK, stdout, stderr, .. } => reader.refused(&stdout, &stderr),
        RawReply::Command { exit_code, stdout, stderr, truncated } => {
            if truncated || !json_in(&stdout) || reader.printed(&stdout).is_err() {
                return Err(exited(exit_code, &stderr));
            }
            reader
                .reply
                .warnings
                .push(format!("exit code {exit_code}, but the JSON on its standard output is used"));
        }
        RawReply::Http { status: 200..=299, body } => match text_in(unmarked(&body))? {
            "" => {}
            text if text.starts_with('{') => reader.top(&whole_object(text, text)?)?,
            text => return Err(no_object(text)),
        },
        RawReply::Http { status, .. } => return Err(refused_by_server(status)),
        RawReply::Text(text) => reader.judged(text.trim())?,
        RawReply::Native(reply) => return Ok(reply),
    }
    Ok(reader.reply)
}

/// Whether an output is meant as JSON.
fn json_in(stdout: &[u8]) -> bool {
    unmarked(stdout).trim_ascii_start().starts_with(b"{")
}

/// Reads one answer.
struct Reader<'a> {
    row: &'a EventRow,
    hook: &'a Hook,
    reply: Reply,
}

impl Reader<'_> {
    /// The output of a hook that succeeded: JSON if it looks like it, or else plain text.
    fn printed(&mut self, stdout: &[u8]) -> Result<(), Failure> {
        let stdout = unmarked(stdout);
        if self.row.plain_text == PlainText::Path && !json_in(stdout) {
            return self.path(&String::from_utf8_lossy(stdout));
        }
        if json_in(stdout) {
            let text = text_in(stdout)?;
            match whole_object(text, text) {
                Ok(fields) => return self.top(&fields),
                // Text for the model may begin with a brace.
                Err(failure) if self.row.plain_text == PlainText::Told => {
                    self.reply.warnings.push(format!("{}; it is context for the model", failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        if self.row.plain_text == PlainText::Told {
            self.note(NoteKind::AdditionalContext, Some(String::from_utf8_lossy(stdout).trim().to_owned()));
        }
        Ok(())
    }

    /// The path on the last line of a text.
    fn path(&mut self, text: &str) -> Result<(), Failure> {
        match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            Some(path) => self.keep_word(WORKTREE_PATH, &path),
            None => Ok(()),
        }
    }

    /// A hook that ended with the exit code of a block. Of its output, only decisions that are no milder count.
    fn refused(&mut self, stdout: &[u8], stderr: &[u8]) {
        if !json_in(stdout) || self.printed(stdout).is_err() {
            self.reply = Reply::default();
        }
        self.reply.patches.clear();
        self.reply.native.retain(|(name, _)| **name == *"suppressOutput");
        let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
        let message = (!stderr.is_empty()).then_some(stderr);
        self.reply.decision = match std::mem::take(&mut self.reply.decision) {
            HookDecision::Halt(reason) => HookDecision::Halt(reason),
            HookDecision::Block(reason) if message.is_none() => HookDecision::Block(reason),
            _ if self.row.prevents() || self.tells_by_exit() => {
                HookDecision::Block(Some(message.unwrap_or_else(|| self.reason("blocked"))))
            }
            _ => {
                self.aside(message);
                HookDecision::None
            }
        };
    }

    /// Whether the exit code of a block is one although the tool has run.
    fn tells_by_exit(&self) -> bool {
        self.row.kind == EventKind::AfterToolDispatch
    }

    /// The judgement of a model.
    fn judged(&mut self, text: &str) -> Result<(), Failure> {
        let fields = object_in(text)?;
        let reason = text_of(&fields, "", "reason")?.filter(|reason| !reason.trim().is_empty());
        let consents = flag_of(&fields, "", "ok")?;
        match consents
            .ok_or_else(|| invalid("`ok` is missing; a model answers `{\"ok\": true}` or `false`"))?
        {
            true => {}
            false if self.row.block == BlockEffect::Nothing => self.aside(reason),
            false => self.opine(HookDecision::Block(Some(reason.unwrap_or_else(|| self.reason("blocked"))))),
        }
        Ok(())
    }

    fn top(&mut self, fields: &JsonFields<'_>) -> Result<(), Failure> {
        self.reply.warnings.extend(unknown_keys(fields, &TOP_KEYS, ""));
        let has_text = |text: &String| !text.trim().is_empty();
        let stop_reason = text_of(fields, "", "stopReason")?.filter(has_text);
        let reason = text_of(fields, "", "reason")?.filter(has_text);
        self.note(NoteKind::SystemMessage, text_of(fields, "", "systemMessage")?);
        if flag_of(fields, "", "suppressOutput")? == Some(true) {
            self.suppress();
        }
        if let Some(sequence) = text_of(fields, "", TERMINAL_SEQUENCE)? {
            self.keep_word(TERMINAL_SEQUENCE, &sequence)?;
        }
        let decision = text_of(fields, "", "decision")?;
        if let Some(specific) = value_of(fields, "hookSpecificOutput") {
            self.specific(&object_of("hookSpecificOutput", specific)?, reason.as_ref())?;
        }
        self.decision(decision.as_deref(), reason.clone())?;
        if flag_of(fields, "", "continue")? == Some(false) {
            let reason = stop_reason.or(reason).unwrap_or_else(|| self.reason("stopped"));
            self.opine(HookDecision::Halt(Some(reason)));
        }
        Ok(())
    }

    fn decision(&mut self, decision: Option<&str>, reason: Option<String>) -> Result<(), Failure> {
        match decision {
            Some("approve") if self.row.kind == EventKind::BeforeToolDispatch => {
                self.opine(HookDecision::Allow(reason));
            }
            None | Some("approve") => {}
            Some("block") if self.row.block == BlockEffect::Nothing => {
                self.reply.warnings.push(format!("`decision` ignored: {} cannot be blocked", self.row.name));
                self.aside(reason);
            }
            Some("block") => {
                self.opine(HookDecision::Block(Some(reason.unwrap_or_else(|| self.reason("blocked")))));
            }
            Some(other) => {
                let shown = excerpt(other);
                return Err(invalid(format!(
                    "`decision` is {shown:?}; the decisions are \"approve\" and \"block\""
                )));
            }
        }
        Ok(())
    }

    fn specific(&mut self, fields: &JsonFields<'_>, reason: Option<&String>) -> Result<(), Failure> {
        let named = text_of(fields, WITHIN, "hookEventName")?;
        if let Some(other) = named.filter(|name| name != self.row.name) {
            self.reply.warnings.push(format!(
                "hookSpecificOutput is for `{}`, not for `{}`, and was discarded",
                excerpt(&other),
                self.row.name
            ));
            return Ok(());
        }
        self.note(NoteKind::AdditionalContext, text_of(fields, WITHIN, "additionalContext")?);
        let mut known = vec!["hookEventName", "additionalContext"];
        match self.row.kind {
            EventKind::BeforeToolDispatch => {
                known.extend(["permissionDecision", "permissionDecisionReason", UPDATED_INPUT]);
                self.permission(fields, reason)?;
            }
            EventKind::PermissionRequested => {
                known.push("decision");
                if let Some(decision) = value_of(fields, "decision") {
                    self.answered(&object_of("hookSpecificOutput.decision", decision)?)?;
                }
            }
            EventKind::AfterToolDispatch => {
                known.push("updatedToolOutput");
                if let Some(output) = value_of(fields, "updatedToolOutput") {
                    self.patch(Target::ToolOutput, output)?;
                }
            }
            _ => {}
        }
        self.keep(fields, &known);
        Ok(())
    }

    /// The decision of a hook about a tool call.
    fn permission(&mut self, fields: &JsonFields<'_>, reason: Option<&String>) -> Result<(), Failure> {
        let given = text_of(fields, WITHIN, "permissionDecisionReason")?;
        let given = given.filter(|text| !text.trim().is_empty()).or_else(|| reason.cloned());
        let decision = text_of(fields, WITHIN, "permissionDecision")?;
        let input = value_of(fields, UPDATED_INPUT);
        match decision.as_deref() {
            None => {}
            Some("allow") => self.opine(HookDecision::Allow(given)),
            Some("ask") => self.opine(HookDecision::Ask(given)),
            Some("deny") => {
                self.opine(HookDecision::Block(Some(given.unwrap_or_else(|| self.reason("blocked")))));
            }
            Some(DEFER) => {
                self.opine(HookDecision::Ask(given));
                return self.keep_word("permissionDecision", &DEFER);
            }
            Some(other) => {
                let shown = excerpt(other);
                return Err(invalid(format!(
                    "`permissionDecision` is {shown:?}; the decisions are \"allow\", \"deny\" and \"ask\""
                )));
            }
        }
        match input {
            Some(value) if value.get().starts_with('{') => self.patch(Target::ToolInput, value),
            Some(value) => Err(wrong_type(&format!("{WITHIN}{UPDATED_INPUT}"), "an object", value)),
            None => Ok(()),
        }
    }

    /// The answer of a hook in place of the person who would be asked.
    fn answered(&mut self, decision: &JsonFields<'_>) -> Result<(), Failure> {
        const WITHIN_DECISION: &str = "hookSpecificOutput.decision.";
        let message = text_of(decision, WITHIN_DECISION, "message")?.filter(|text| !text.trim().is_empty());
        match text_of(decision, WITHIN_DECISION, "behavior")?.as_deref() {
            Some("allow") => {
                self.opine(HookDecision::Allow(message));
                if let Some(input) = value_of(decision, UPDATED_INPUT) {
                    self.patch(Target::ToolInput, input)?;
                }
            }
            Some("deny") => {
                self.opine(HookDecision::Block(Some(message.unwrap_or_else(|| self.reason("blocked")))));
            }
            other => {
                let shown = excerpt(other.unwrap_or_default());
                return Err(invalid(format!(
                    "`hookSpecificOutput.decision.behavior` is {shown:?}; it is \"allow\" or \"deny\""
                )));
            }
        }
        self.keep(decision, &["behavior", "message", UPDATED_INPUT]);
        Ok(())
    }

    fn patch(&mut self, target: Target, value: &RawValue) -> Result<(), Failure> {
        check_size(value)?;
        self.reply.patches.push(Patch::Target(target, Json::checked(value)));
        Ok(())
    }

    /// Keeps the fields that only hosts of the same dialect understand, and warns of likely mistakes.
    fn keep(&mut self, fields: &JsonFields<'_>, known: &[&str]) {
        for (name, value) in fields.iter().filter(|(name, _)| !known.contains(name)) {
            self.reply.warnings.extend(misspelt_key(name, known, WITHIN));
            self.reply.native.push((name.into(), Json::checked(value)));
        }
    }

    fn keep_word<T: serde::Serialize>(&mut self, name: &str, value: &T) -> Result<(), Failure> {
        let value = Json::of(value).map_err(|error| invalid(error.to_string()))?;
        self.reply.native.push((name.into(), value));
        Ok(())
    }

    /// Of a tool's output, it is for every host; of anything else, only this family knows what it means.
    fn suppress(&mut self) {
        if self.row.kind == EventKind::AfterToolDispatch {
            self.reply.suppress_output = true;
        } else if let Ok(value) = Json::of(&true) {
            self.reply.native.push(("suppressOutput".into(), value));
        }
    }

    /// The message of a hook that may not block: for the model if it sees the event, or else for the person.
    fn aside(&mut self, text: Option<String>) {
        let kind = if self.row.block == BlockEffect::Tells {
            NoteKind::AdditionalContext
        } else {
            NoteKind::SystemMessage
        };
        self.note(kind, text);
    }

    fn note(&mut self, kind: NoteKind, text: Option<String>) {
        self.reply.notes.extend(text.filter(|text| !text.is_empty()).map(|text| (kind, text)));
    }

    /// Of several opinions in one answer, the strictest counts.
    fn opine(&mut self, opinion: HookDecision) {
        let strictness = |opinion: &HookDecision| opinion.clone().into_parts().0;
        if strictness(&opinion) > strictness(&self.reply.decision) {
            self.reply.decision = opinion;
        }
    }

    fn reason(&self, verb: &str) -> String {
        default_reason(self.hook, verb)
    }
}

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";
