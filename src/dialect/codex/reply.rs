//! Reads the answers of Codex's hooks. Codex takes an answer as a whole or not at all: one word that it does not know
//! makes the answer `invalid_output`.

use crate::{
    dialect::{
        event_table::{BlockEffect, EventRow, PlainText},
        output::{
            check_size, excerpt, exited, flag_of, invalid, no_object, object_of, printed_too_much,
            refused_by_server, text_in, text_of, value_of, whole_object,
        },
    },
    model::{
        EventKind, Failure, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Target, Verdict,
    },
};

/// The exit code of a block.
const BLOCK: i32 = 2;

/// The fields that every event with an answer has.
const UNIVERSAL: [&str; 4] = ["continue", "stopReason", "suppressOutput", "systemMessage"];

/// The field with the reason for the end of a turn.
pub(super) const STOP_REASON: &str = "stopReason";

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";

/// Reads the output of a handler; `rows` are the events whose names an answer may have.
///
/// Returns a failure if the dialect does not allow the answer.
pub(super) fn read(rows: &[EventRow], row: &EventRow, raw: RawReply) -> Result<Reply, Failure> {
    let mut reader = Reader { rows, row, reply: Reply::default() };
    match raw {
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => {
            return Err(printed_too_much(&stdout));
        }
        RawReply::Command { exit_code: 0, stdout, .. } => reader.printed(&stdout)?,
        RawReply::Command { exit_code: BLOCK, stderr, .. } if row.block != BlockEffect::Nothing => {
            let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
            if stderr.is_empty() {
                return Err(invalid(
                    "exit code 2 without a reason on standard error, which Codex does not take for a block",
                ));
            }
            reader.reply.decision = HookDecision::Block(Some(stderr));
        }
        RawReply::Command { exit_code, stderr, .. } => return Err(exited(exit_code, &stderr)),
        RawReply::Http { status: 200..=299, body } => reader.printed(&body)?,
        RawReply::Http { status, .. } => return Err(refused_by_server(status)),
        RawReply::Text(text) => reader.printed(text.as_bytes())?,
        RawReply::Native(reply) => return Ok(reply),
    }
    Ok(reader.reply)
}

/// The strictest decision of a reply and the earlier ones, for agents that show the model the reasons of all that block.
pub(in crate::dialect) fn combined_decision(
    earlier: &[Reply],
    last: HookDecision,
    separator: &str,
) -> HookDecision {
    let all: Vec<HookDecision> = earlier.iter().map(|reply| reply.decision.clone()).chain([last]).collect();
    let strictest = all.iter().map(HookDecision::verdict).max().unwrap_or(Verdict::Proceed);
    let mut equal = all.into_iter().filter(|decision| decision.verdict() == strictest);
    let first = equal.next().unwrap_or_default();
    match first {
        HookDecision::Block(reason) => {
            let others = equal.filter_map(|decision| decision.into_parts().1);
            let reasons: Vec<String> = reason.into_iter().chain(others).collect();
            HookDecision::Block((!reasons.is_empty()).then(|| reasons.join(separator)))
        }
        other => other,
    }
}

/// Reads one answer.
struct Reader<'a> {
    rows: &'a [EventRow],
    row: &'a EventRow,
    reply: Reply,
}

impl Reader<'_> {
    /// The output of a hook that succeeded: JSON if it looks like it, or else plain text.
    fn printed(&mut self, stdout: &[u8]) -> Result<(), Failure> {
        let looks_like_json = matches!(stdout.trim_ascii_start().first(), Some(b'{' | b'['));
        if !looks_like_json {
            if self.row.plain_text == PlainText::Told {
                let text = String::from_utf8_lossy(stdout).trim().to_owned();
                self.note(NoteKind::AdditionalContext, Some(text));
            }
            return Ok(());
        }
        // It does not read what hooks on these events print.
        if self.row.kind == EventKind::SessionEnded
            || (self.row.kind == EventKind::HostEvent && self.row.name != "Interrupt")
        {
            return Ok(());
        }
        let text = text_in(stdout)?;
        if !text.starts_with('{') {
            return Err(no_object(text));
        }
        self.top(&whole_object(text, text)?)
    }

    fn top(&mut self, fields: &JsonFields<'_>) -> Result<(), Failure> {
        let decides = self.row.block != BlockEffect::Nothing && self.row.block != BlockEffect::Denies;
        let is_compaction =
            matches!(self.row.kind, EventKind::BeforeContextCompact | EventKind::AfterContextCompact);
        let is_stop = matches!(self.row.kind, EventKind::AgentStopping | EventKind::SubagentStopping);
        let mut known =
            if self.row.kind == EventKind::HostEvent { vec!["systemMessage"] } else { UNIVERSAL.to_vec() };
        if decides {
            known.extend(["decision", "reason"]);
        }
        if !is_compaction && !is_stop && self.row.kind != EventKind::HostEvent {
            known.push("hookSpecificOutput");
        }
        refuse_unknown(fields, &known, "")?;
        let stop_reason = text_of(fields, "", "stopReason")?;
        let continues = flag_of(fields, "", "continue")?.unwrap_or(true);
        let suppresses = flag_of(fields, "", "suppressOutput")? == Some(true);
        self.refuse_unsupported(continues, stop_reason.is_some(), suppresses)?;
        self.note(NoteKind::SystemMessage, text_of(fields, "", "systemMessage")?);
        let specific = value_of(fields, "hookSpecificOutput");
        let specific = specific.map(|value| object_of("hookSpecificOutput", value)).transpose()?;
        let is_permission = match &specific {
            Some(specific) => self.specific(specific)?,
            None => false,
        };
        let reason = text_of(fields, "", "reason")?;
        let decision = text_of(fields, "", "decision")?;
        if !is_permission {
            self.decision(decision.as_deref(), reason.as_deref(), continues)?;
        }
        if !continues {
            self.stop(stop_reason, reason);
        }
        Ok(())
    }

    /// Words that Codex refuses on some events, with the whole answer.
    fn refuse_unsupported(
        &self,
        continues: bool,
        has_stop_reason: bool,
        suppresses: bool,
    ) -> Result<(), Failure> {
        let is_call = matches!(self.row.kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested);
        let word = match () {
            () if is_call && !continues => "continue: false",
            () if is_call && has_stop_reason => "stopReason",
            () if suppresses && (is_call || self.row.kind == EventKind::AfterToolDispatch) => {
                "suppressOutput"
            }
            () => return Ok(()),
        };
        Err(self.unsupported(word))
    }

    fn unsupported(&self, word: &str) -> Failure {
        invalid(format!("`{word}` means nothing to Codex on {}, which ignores the answer", self.row.name))
    }

    /// `continue: false`: after a tool, its reason replaces the tool's output; elsewhere, the turn ends.
    fn stop(&mut self, stop_reason: Option<String>, reason: Option<String>) {
        let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let default = || format!("{} hook stopped execution", self.row.name);
        if self.row.kind == EventKind::AfterToolDispatch {
            let reason = text(reason).or(text(stop_reason)).unwrap_or_else(default);
            self.reply.decision = HookDecision::Block(Some(reason));
            return;
        }
        let reason = text(stop_reason).unwrap_or_else(default);
        if self.row.kind.is_interceptor() {
            self.reply.decision = HookDecision::Halt(Some(reason));
        } else if let Ok(reason) = Json::of(&reason) {
            // Hooks on other events only watch; Codex stops all the same.
            self.reply.native.push((STOP_REASON.into(), reason));
        }
    }

    /// The decision at the top of an answer.
    fn decision(&mut self, word: Option<&str>, reason: Option<&str>, continues: bool) -> Result<(), Failure> {
        let kind = self.row.kind;
        let needs_word = matches!(kind, EventKind::BeforeToolDispatch | EventKind::AfterToolDispatch);
        match word {
            Some("block") => {
                let reason = given(reason).ok_or_else(|| needs_reason("decision: block", "reason"))?;
                self.reply.decision = HookDecision::Block(Some(reason));
                Ok(())
            }
            Some("approve") if kind == EventKind::BeforeToolDispatch => {
                Err(self.unsupported("decision: approve"))
            }
            Some(other) => Err(invalid(format!("`decision` is {:?}; it is \"block\"", excerpt(other)))),
            None if reason.is_some() && needs_word && continues => {
                Err(invalid("`reason` without `decision`; write `\"decision\": \"block\"` beside it"))
            }
            None => Ok(()),
        }
    }

    /// Reads `hookSpecificOutput`. Returns whether it decides about a tool call, so that nothing else does.
    fn specific(&mut self, fields: &JsonFields<'_>) -> Result<bool, Failure> {
        let mut known = vec!["hookEventName"];
        match self.row.kind {
            EventKind::BeforeToolDispatch => known.extend([
                "additionalContext",
                "permissionDecision",
                "permissionDecisionReason",
                "updatedInput",
            ]),
            EventKind::PermissionRequested => known.push("decision"),
            EventKind::AfterToolDispatch => known.extend(["additionalContext", "updatedMCPToolOutput"]),
            _ => known.push("additionalContext"),
        }
        refuse_unknown(fields, &known, WITHIN)?;
        let named = text_of(fields, WITHIN, "hookEventName")?;
        match named {
            Some(name) if self.rows.iter().any(|row| row.name == name) => {}
            Some(other) => return Err(invalid(format!("`{WITHIN}hookEventName` is {:?}", excerpt(&other)))),
            None => {
                return Err(invalid(format!(
                    "`{WITHIN}hookEventName` is missing; write {:?}",
                    self.row.name
                )));
            }
        }
        if value_of(fields, "updatedMCPToolOutput").is_some() {
            return Err(self.unsupported("updatedMCPToolOutput"));
        }
        let decides = match self.row.kind {
            EventKind::BeforeToolDispatch => self.permission(fields)?,
            EventKind::PermissionRequested => {
                let decision = value_of(fields, "decision");
                decision
                    .map(|decision| self.answered(&object_of("hookSpecificOutput.decision", decision)?))
                    .transpose()?;
                false
            }
            _ => false,
        };
        self.note(NoteKind::AdditionalContext, text_of(fields, WITHIN, "additionalContext")?);
        Ok(decides)
    }

    /// The decision of a hook about a tool call. Returns whether there is one.
    fn permission(&mut self, fields: &JsonFields<'_>) -> Result<bool, Failure> {
        let decision = text_of(fields, WITHIN, "permissionDecision")?;
        let reason = text_of(fields, WITHIN, "permissionDecisionReason")?;
        let input = value_of(fields, "updatedInput");
        match (decision.as_deref(), input) {
            // It changes the input and leaves the decision to whoever decides without hooks.
            (Some("allow"), Some(value)) => {
                check_size(value)?;
                self.reply.patches.push(Patch::Target(Target::ToolInput, Json::checked(value)));
            }
            (_, Some(_)) => {
                return Err(invalid("`updatedInput` needs `\"permissionDecision\": \"allow\"` beside it"));
            }
            (Some("deny"), None) => {
                let reason = given(reason.as_deref());
                let reason = reason
                    .ok_or_else(|| needs_reason("permissionDecision: deny", "permissionDecisionReason"))?;
                self.reply.decision = HookDecision::Block(Some(reason));
            }
            (Some(word @ ("allow" | "ask")), None) => {
                return Err(self.unsupported(&format!("permissionDecision: {word}")));
            }
            (Some(other), None) => {
                return Err(invalid(format!("`permissionDecision` is {:?}; it is \"deny\"", excerpt(other))));
            }
            (None, None) if reason.is_some() => {
                return Err(invalid("`permissionDecisionReason` without `permissionDecision`"));
            }
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    /// The answer of a hook in place of the person who would be asked.
    fn answered(&mut self, decision: &JsonFields<'_>) -> Result<(), Failure> {
        const WITHIN_DECISION: &str = "hookSpecificOutput.decision.";
        let known = ["behavior", "message", "updatedInput", "updatedPermissions", "interrupt"];
        refuse_unknown(decision, &known, WITHIN_DECISION)?;
        let message = text_of(decision, WITHIN_DECISION, "message")?;
        for word in ["updatedInput", "updatedPermissions"] {
            if value_of(decision, word).is_some() {
                return Err(self.unsupported(word));
            }
        }
        if flag_of(decision, WITHIN_DECISION, "interrupt")? == Some(true) {
            return Err(self.unsupported("interrupt"));
        }
        self.reply.decision = match text_of(decision, WITHIN_DECISION, "behavior")?.as_deref() {
            Some("allow") => HookDecision::Allow(None),
            Some("deny") => HookDecision::Block(Some(
                given(message.as_deref())
                    .unwrap_or_else(|| "PermissionRequest hook denied approval".to_owned()),
            )),
            other => {
                let shown = excerpt(other.unwrap_or_default());
                return Err(invalid(format!(
                    "`{WITHIN_DECISION}behavior` is {shown:?}; it is \"allow\" or \"deny\""
                )));
            }
        };
        Ok(())
    }

    fn note(&mut self, kind: NoteKind, text: Option<String>) {
        self.reply.notes.extend(text.filter(|text| !text.is_empty()).map(|text| (kind, text)));
    }
}

/// A reason, if it says something.
fn given(reason: Option<&str>) -> Option<String> {
    reason.map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned)
}

fn needs_reason(decision: &str, field: &str) -> Failure {
    invalid(format!("`{decision}` without a `{field}`, which Codex does not take for a block"))
}

fn refuse_unknown(fields: &JsonFields<'_>, known: &[&str], within: &str) -> Result<(), Failure> {
    match fields.iter().map(|(name, _)| name).find(|name| !known.contains(name)) {
        Some(name) => Err(invalid(format!(
            "unknown field `{within}{}`, for which Codex ignores the answer",
            excerpt(name)
        ))),
        None => Ok(()),
    }
}
