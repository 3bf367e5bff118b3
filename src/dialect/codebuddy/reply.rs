//! Reads the answers of CodeBuddy's hooks: an exit code, and JSON or text beside it.

use serde_json::value::RawValue;

use crate::{
    dialect::{
        claude::WORKTREE_PATH,
        event_table::{EventRow, PlainText},
        output::{
            check_size, default_reason, excerpt, exited, flag_of, goes_on_in_background, invalid,
            misspelt_key, object_in, object_of, printed_too_much, refused_by_server, text_in, text_of,
            unknown_keys, unmarked, value_of, whole_object, wrong_type,
        },
    },
    model::{
        EventKind, Failure, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Target,
    },
};

/// The exit code of a block.
const BLOCK: i32 = 2;

/// The field with the changed input of a tool, and the one that its documentation names.
pub(super) const CHANGED_INPUT: [&str; 2] = ["updatedInput", "modifiedInput"];

const TOP_KEYS: [&str; 7] =
    ["continue", "stopReason", "decision", "reason", "suppressOutput", "systemMessage", "hookSpecificOutput"];

/// The keys of `hookSpecificOutput` that mean something here.
const SPECIFIC_KEYS: [&str; 7] = [
    "hookEventName",
    "additionalContext",
    "permissionDecision",
    "permissionDecisionReason",
    "decision",
    CHANGED_INPUT[0],
    CHANGED_INPUT[1],
];

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";

/// Reads the output of a handler.
///
/// Returns a failure if the agent does not take the answer, or the hook failed.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    let mut reader = Reader { row, hook, said: Said::default(), reply: Reply::default() };
    match raw {
        // Its end says nothing more, whatever it is.
        RawReply::Command { stdout, .. } if goes_on_in_background(&stdout) => {}
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => {
            return Err(printed_too_much(&stdout));
        }
        RawReply::Command { exit_code: 0, stdout, .. } => {
            reader.printed(&stdout)?;
            reader.conclude();
        }
        RawReply::Command { exit_code: BLOCK, stdout, stderr, .. } => {
            reader.refused(&stdout, &stderr);
        }
        RawReply::Command { exit_code, stdout, stderr, truncated } => {
            let failure = exited(exit_code, &stderr);
            if truncated || reader.printed(&stdout).is_err() {
                return Err(failure);
            }
            // Only a decision about a permission counts beside it.
            reader.said.is_refusal = false;
            reader.conclude();
            reader.reply.failure = Some(Box::new(failure));
        }
        RawReply::Http { status: 200..=299, body } => {
            reader.printed(&body)?;
            reader.conclude();
        }
        RawReply::Http { status, .. } => return Err(refused_by_server(status)),
        RawReply::Text(text) => reader.judged(text.trim())?,
        RawReply::Native(reply) => return Ok(reply),
    }
    Ok(reader.reply)
}

/// What an answer says at its top.
#[derive(Default)]
struct Said {
    /// Whether it says that the agent must not go on.
    is_refusal: bool,
    /// The word of a hook about a permission, which counts before all others.
    permission: Option<HookDecision>,
    /// Why.
    message: Option<String>,
    /// What the model is told.
    context: Option<String>,
}

fn unknown_word(field: &str, word: &str, known: &str) -> Failure {
    invalid(format!("`{field}` is {:?}; the decisions are {known}", excerpt(word)))
}

/// Reads one answer.
struct Reader<'a> {
    row: &'a EventRow,
    hook: &'a Hook,
    said: Said,
    reply: Reply,
}

impl Reader<'_> {
    /// What a hook printed: JSON, or else a text.
    fn printed(&mut self, stdout: &[u8]) -> Result<(), Failure> {
        let stdout = unmarked(stdout);
        if !stdout.trim_ascii_start().starts_with(b"{") {
            let text = String::from_utf8_lossy(stdout).trim().to_owned();
            match self.row.plain_text {
                PlainText::Told => self.said.context = Some(text),
                PlainText::Path => self.path(&text)?,
                PlainText::Ignored => {}
            }
            return Ok(());
        }
        let text = text_in(stdout)?;
        self.object(&whole_object(text, text)?)
    }

    /// The path on the last line of a text.
    fn path(&mut self, text: &str) -> Result<(), Failure> {
        let Some(path) = text.lines().map(str::trim).rfind(|line| !line.is_empty()) else { return Ok(()) };
        let value = Json::of(&path).map_err(|error| invalid(error.to_string()))?;
        self.reply.native.push((WORKTREE_PATH.into(), value));
        Ok(())
    }

    fn object(&mut self, fields: &JsonFields<'_>) -> Result<(), Failure> {
        self.reply.warnings.extend(unknown_keys(fields, &TOP_KEYS, ""));
        let given = |name| Ok(text_of(fields, "", name)?.filter(|text| !text.is_empty()));
        let message = given("systemMessage")?;
        self.reply.notes.extend(message.map(|text| (NoteKind::SystemMessage, text)));
        self.said.message = given("stopReason")?.or(given("reason")?);
        let decision = given("decision")?;
        let goes_on = flag_of(fields, "", "continue")?;
        let permission = match value_of(fields, "hookSpecificOutput") {
            Some(specific) => self.specific(&object_of("hookSpecificOutput", specific)?)?,
            None => None,
        };
        // The first of these words counts.
        self.said.is_refusal = match (permission.as_deref(), decision.as_deref()) {
            (Some(word), _) => word == "deny",
            (None, Some("block")) => true,
            (None, Some("approve")) => false,
            (None, Some(other)) => {
                return Err(unknown_word("decision", other, "\"approve\" and \"block\""));
            }
            (None, None) => goes_on == Some(false),
        };
        Ok(())
    }

    /// Returns the word about a permission.
    fn specific(&mut self, fields: &JsonFields<'_>) -> Result<Option<String>, Failure> {
        let text = |name| Ok(text_of(fields, WITHIN, name)?.filter(|text| !text.is_empty()));
        let is_own = text("hookEventName")?.as_deref() == Some(self.row.name);
        let permission = text("permissionDecision")?;
        let reason = text("permissionDecisionReason")?;
        let context = text("additionalContext")?;
        self.said.context = context.filter(|_| is_own || self.row.plain_text == PlainText::Told);
        match self.row.kind {
            EventKind::BeforeToolDispatch => {
                let decision = match permission.as_deref() {
                    Some("allow") => Some(HookDecision::Allow(reason.clone())),
                    Some("ask") => Some(HookDecision::Ask(reason.clone())),
                    Some("deny") => Some(HookDecision::Block(reason.clone())),
                    Some(other) => {
                        let words = "\"allow\", \"deny\" and \"ask\"";
                        return Err(unknown_word("permissionDecision", other, words));
                    }
                    None => None,
                };
                self.said.permission = decision.filter(|_| is_own);
                let changed =
                    CHANGED_INPUT.into_iter().find_map(|name| Some((name, value_of(fields, name)?)));
                if let Some((name, input)) = changed {
                    self.changed_input(name, input)?;
                }
            }
            EventKind::PermissionRequested => {
                if let Some(decision) = value_of(fields, "decision") {
                    self.answered(&object_of("hookSpecificOutput.decision", decision)?)?;
                }
            }
            _ => {}
        }
        self.said.message = reason.or(self.said.message.take());
        for (name, value) in fields.iter().filter(|(name, _)| !SPECIFIC_KEYS.contains(name)) {
            self.reply.warnings.extend(misspelt_key(name, &SPECIFIC_KEYS, WITHIN));
            self.reply.native.push((name.into(), Json::checked(value)));
        }
        Ok(permission)
    }

    fn changed_input(&mut self, name: &str, input: &RawValue) -> Result<(), Failure> {
        if !input.get().starts_with('{') {
            return Err(wrong_type(&format!("{WITHIN}{name}"), "an object", input));
        }
        check_size(input)?;
        self.reply.patches.push(Patch::Target(Target::ToolInput, Json::checked(input)));
        Ok(())
    }

    /// The answer of a hook in place of the person who would be asked.
    fn answered(&mut self, decision: &JsonFields<'_>) -> Result<(), Failure> {
        const WITHIN_DECISION: &str = "hookSpecificOutput.decision.";
        let message = text_of(decision, WITHIN_DECISION, "message")?.filter(|text| !text.is_empty());
        match text_of(decision, WITHIN_DECISION, "behavior")?.as_deref() {
            Some("allow") => {
                self.said.permission = Some(HookDecision::Allow(message));
                if let Some(input) = value_of(decision, "updatedInput") {
                    self.changed_input("decision.updatedInput", input)?;
                }
            }
            Some("deny") => self.said.permission = Some(HookDecision::Block(message)),
            _ => {}
        }
        Ok(())
    }

    /// The judgement of a model.
    fn judged(&mut self, text: &str) -> Result<(), Failure> {
        let fields = object_in(text)?;
        self.said.message = text_of(&fields, "", "reason")?.filter(|reason| !reason.trim().is_empty());
        let consents = flag_of(&fields, "", "ok")?;
        self.said.is_refusal = !consents
            .ok_or_else(|| invalid("`ok` is missing; a model answers `{\"ok\": true}` or `false`"))?;
        self.conclude();
        Ok(())
    }

    /// A hook that ended with the exit code of a block, which counts whatever it printed. Its reason is what it printed, or
    /// else its standard error.
    fn refused(&mut self, stdout: &[u8], stderr: &[u8]) {
        let is_object = self.printed(stdout).is_ok() && unmarked(stdout).trim_ascii_start().starts_with(b"{");
        let printed = if is_object { &[] } else { stdout };
        let texts = [printed, stderr].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
        let said = self.said.message.take();
        let message = said.into_iter().chain(texts).find(|text| !text.is_empty());
        self.said = Said { is_refusal: true, message, ..Said::default() };
        self.reply.patches.clear();
        self.conclude();
    }

    /// Makes a decision of what was said.
    fn conclude(&mut self) {
        let Said { is_refusal, permission, message, context } = std::mem::take(&mut self.said);
        let message = message.filter(|text| !text.is_empty());
        let has_message = message.is_some();
        let context = context.filter(|text| !text.is_empty()).filter(|_| !is_refusal);
        self.reply.notes.extend(context.map(|text| (NoteKind::AdditionalContext, text)));
        let refusal = |reason: Option<String>| {
            HookDecision::Block(Some(reason.unwrap_or_else(|| default_reason(self.hook, "blocked"))))
        };
        self.reply.decision = match (permission, self.row.kind) {
            (Some(HookDecision::Block(reason)), _) => refusal(reason.or(message)),
            (Some(decision), _) => decision,
            (None, EventKind::BeforeToolDispatch | EventKind::PromptSubmitted) if is_refusal => {
                refusal(message)
            }
            // Without a reason, the agent does not go on working.
            (None, EventKind::AgentStopping | EventKind::SubagentStopping) if is_refusal && has_message => {
                refusal(message)
            }
            _ if is_refusal && self.row.plain_text == PlainText::Path => refusal(message),
            _ => {
                self.reply.notes.extend(message.map(|text| (NoteKind::SystemMessage, text)));
                HookDecision::None
            }
        };
    }
}
