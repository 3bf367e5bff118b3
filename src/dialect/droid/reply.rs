//! Reads the answers of Droid's hooks: JSON, which counts at any exit code, and two exit codes that decide.

use crate::{
    dialect::{
        event_table::{BlockEffect, ContextSupport, EventRow, PlainText},
        output::{
            check_size, default_reason, excerpt, exited, flag_of, invalid, object_of, printed_too_much,
            text_in, text_of, unknown_keys, unmarked, value_of, whole_object, wrong_type,
        },
    },
    model::{
        EventKind, Failure, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Target,
    },
};

/// The exit code by which a hook ends the run.
const END: i32 = 3;

/// The exit code of a block.
const BLOCK: i32 = 2;

const TOP_KEYS: [&str; 7] =
    ["continue", "stopReason", "decision", "reason", "suppressOutput", "systemMessage", "hookSpecificOutput"];

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";

/// Reads the output of a handler: JSON counts at any exit code, and two exit codes decide whatever was printed.
///
/// Returns a failure if the agent does not take the answer, or the hook failed.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    let (exit_code, stdout, stderr, truncated) = match raw {
        RawReply::Command { exit_code, stdout, stderr, truncated } => (exit_code, stdout, stderr, truncated),
        RawReply::Native(reply) => return Ok(reply),
        RawReply::Http { .. } | RawReply::Text(_) => {
            return Err(invalid("only programs answer in this dialect"));
        }
    };
    let failure = (exit_code != 0).then(|| exited(exit_code, &stderr));
    let decides = matches!(exit_code, BLOCK | END);
    let mut reader = Reader { row, hook, reply: Reply::default() };
    match reader.printed(&stdout, failure.is_none()) {
        // What is cut off is no JSON, or a text without its end.
        Ok(()) if truncated && failure.is_none() => return Err(printed_too_much(&stdout)),
        Ok(()) => {}
        Err(invalid) if !decides => return Err(failure.unwrap_or(invalid)),
        Err(_) => reader.reply = Reply::default(),
    }
    if decides {
        reader.decided(exit_code, String::from_utf8_lossy(&stderr).trim());
    } else if let Some(failure) = failure {
        reader.reply.failure = Some(Box::new(failure));
    }
    Ok(reader.reply)
}

/// Reads one answer.
struct Reader<'a> {
    row: &'a EventRow,
    hook: &'a Hook,
    reply: Reply,
}

impl Reader<'_> {
    /// What a hook printed: JSON, or else a text, which only hooks that succeeded say.
    fn printed(&mut self, stdout: &[u8], succeeded: bool) -> Result<(), Failure> {
        let stdout = unmarked(stdout).trim_ascii();
        let is_told = self.row.plain_text == PlainText::Told && succeeded;
        if stdout.starts_with(b"{") {
            let text = text_in(stdout)?;
            match whole_object(text, text) {
                Ok(fields) => return self.object(&fields),
                // Text for the model may begin with a brace.
                Err(failure) if is_told => {
                    self.reply.warnings.push(format!("{}; it is context for the model", failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        if is_told && !stdout.is_empty() {
            let text = String::from_utf8_lossy(stdout).into_owned();
            self.reply.notes.push((NoteKind::AdditionalContext, text));
        }
        Ok(())
    }

    fn object(&mut self, fields: &JsonFields<'_>) -> Result<(), Failure> {
        self.reply.warnings.extend(unknown_keys(fields, &TOP_KEYS, ""));
        let given = |name| Ok(text_of(fields, "", name)?.filter(|text| !text.trim().is_empty()));
        let message = given("systemMessage")?;
        self.reply.notes.extend(message.map(|text| (NoteKind::SystemMessage, text)));
        let (stop_reason, reason) = (given("stopReason")?, given("reason")?);
        let blocks = match given("decision")?.as_deref() {
            Some("block") => true,
            // It says nothing about a tool call.
            Some("approve") | None => false,
            Some(other) => {
                let shown = excerpt(other);
                return Err(invalid(format!(
                    "`decision` is {shown:?}; the decisions are \"approve\" and \"block\""
                )));
            }
        };
        if let Some(specific) = value_of(fields, "hookSpecificOutput") {
            self.specific(&object_of("hookSpecificOutput", specific)?)?;
        }
        let is_free = matches!(self.reply.decision, HookDecision::None | HookDecision::Allow(_));
        match self.row.kind {
            // Without a reason, the agent does not go on working.
            EventKind::AgentStopping if blocks && reason.is_none() => {}
            _ if blocks && is_free && self.can_block() => self.block(reason.clone()),
            _ => {}
        }
        if flag_of(fields, "", "continue")? == Some(false) {
            self.end(stop_reason.or(reason));
        }
        Ok(())
    }

    fn specific(&mut self, fields: &JsonFields<'_>) -> Result<(), Failure> {
        let text = |name| text_of(fields, WITHIN, name);
        let context = text("additionalContext")?.filter(|text| !text.is_empty());
        if self.row.context == ContextSupport::Taken {
            self.reply.notes.extend(context.map(|text| (NoteKind::AdditionalContext, text)));
        }
        let input = value_of(fields, "updatedInput");
        if let Some(other) = input.filter(|value| !value.get().starts_with('{')) {
            return Err(wrong_type(&format!("{WITHIN}updatedInput"), "an object", other));
        }
        match self.row.kind {
            EventKind::BeforeToolDispatch => {
                let reason = text("permissionDecisionReason")?.filter(|text| !text.trim().is_empty());
                match text("permissionDecision")?.as_deref() {
                    Some("allow") => self.reply.decision = HookDecision::Allow(reason),
                    Some("ask") => self.reply.decision = HookDecision::Ask(reason),
                    Some("deny") => self.block(reason),
                    None => {}
                    Some(other) => {
                        let shown = excerpt(other);
                        return Err(invalid(format!(
                            "`permissionDecision` is {shown:?}; the decisions are \"allow\", \"deny\" and \"ask\""
                        )));
                    }
                }
                if let Some(value) = input {
                    check_size(value)?;
                    self.reply.patches.push(Patch::Target(Target::ToolInput, Json::checked(value)));
                }
            }
            EventKind::PromptSubmitted => {
                let fields = input.map(|input| object_of("hookSpecificOutput.updatedInput", input));
                let prompt =
                    fields.transpose()?.and_then(|fields| Some(Json::checked(fields.get("prompt")?)));
                let text = prompt.filter(|prompt| prompt.kind() == "a string");
                self.reply.patches.extend(text.map(|text| Patch::Target(Target::Prompt, text)));
            }
            _ => {}
        }
        Ok(())
    }

    /// An exit code that decides. The reason is what the hook wrote to standard error.
    fn decided(&mut self, exit_code: i32, stderr: &str) {
        let reason = (!stderr.is_empty()).then(|| stderr.to_owned());
        self.reply.patches.clear();
        if exit_code == END {
            self.end(reason);
        } else if self.can_block() && !matches!(self.reply.decision, HookDecision::Halt(_)) {
            self.block(reason);
        } else if let Some(text) = reason.filter(|_| !self.can_block()) {
            self.reply.notes.push((NoteKind::SystemMessage, text));
        }
    }

    fn can_block(&self) -> bool {
        self.row.block != BlockEffect::Nothing
    }

    fn block(&mut self, reason: Option<String>) {
        let reason = reason.unwrap_or_else(|| default_reason(self.hook, "blocked"));
        self.reply.decision = HookDecision::Block(Some(reason));
    }

    /// The end of the run, where the agent reads it. A prompt and a compaction are held back, no more.
    fn end(&mut self, reason: Option<String>) {
        use EventKind::{AfterToolDispatch, AgentStopping, BeforeToolDispatch};
        match self.row.kind {
            BeforeToolDispatch | AfterToolDispatch | AgentStopping => {
                let reason = reason.unwrap_or_else(|| default_reason(self.hook, "stopped"));
                self.reply.decision = HookDecision::Halt(Some(reason));
            }
            _ if self.can_block() => self.block(reason),
            _ => {}
        }
    }
}
