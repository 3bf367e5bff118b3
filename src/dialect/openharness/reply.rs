//! How the answer of an OpenHarness hook is read: exit codes, statuses and the unified output JSON. Refuses
//! to guess: an answer that is almost right is `invalid_output`, and the hook's policy decides.

use serde_json::value::RawValue;

use super::super::{
    fields::unquoted,
    near::{nearest, shorten},
};
use crate::model::{
    Ended, EventKind, Failure, Fields, Hook, Json, NoteKind, Opinion, Patch, RawReply, Reply, Target,
    check_json,
};

/// The largest patch, in bytes.
const LARGEST_PATCH: usize = 8 << 20;

/// How much of an answer a message repeats, in characters: enough to recognise it, too little to leak it.
const EXCERPT: usize = 80;

/// How much of an error message a message repeats, in characters.
const LONGEST_MESSAGE: usize = 200;

/// How many unknown keys of one object are named.
const MOST_WARNINGS: usize = 8;

/// The exit code of a block.
const BLOCK: i32 = 2;

const TOP_KEYS: [&str; 7] =
    ["continue", "stopReason", "decision", "reason", "suppressOutput", "systemMessage", "hookSpecificOutput"];

const SPECIFIC_KEYS: [&str; 3] = ["hookEventName", "additionalContext", "patch"];

/// Whether an answer may be empty.
#[derive(Clone, Copy, PartialEq)]
enum Empty {
    /// It is no opinion.
    NoOpinion,
    /// It is a mistake: a model that was asked has to say something.
    Invalid,
}

/// Reads what a handler brought back.
///
/// Returns a failure if the dialect does not allow the answer.
pub(super) fn read(hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
    match raw {
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => {
            let message = format!("the hook printed more than the {} bytes it may", stdout.len());
            Err(Failure::new(Ended::OutputTooLarge, message))
        }
        RawReply::Command { exit_code: 0, stdout, .. } => output(hook, kind, &stdout, Empty::NoOpinion),
        RawReply::Command { exit_code: BLOCK, stderr, .. } => {
            let reason = String::from_utf8_lossy(&stderr).trim().to_owned();
            let given = (!reason.is_empty()).then_some(reason);
            Ok(Reply::block(given.unwrap_or_else(|| default_reason(hook, "blocked"))))
        }
        RawReply::Command { exit_code, stderr, .. } => Err(exited(exit_code, &stderr)),
        RawReply::Http { status: 200..=299, body } => output(hook, kind, &body, Empty::NoOpinion),
        RawReply::Http { status, .. } => {
            Err(Failure::new(Ended::Failed, format!("the server answered with status {status}")))
        }
        RawReply::Text(text) => output(hook, kind, text.as_bytes(), Empty::Invalid),
        RawReply::Native(reply) => Ok(reply),
    }
}

fn exited(exit_code: i32, stderr: &[u8]) -> Failure {
    let (ended, what) = match exit_code {
        126 => (Ended::SpawnFailed, "exit code 126, cannot be executed".to_owned()),
        127 => (Ended::SpawnFailed, "exit code 127, command not found".to_owned()),
        _ => (Ended::Failed, format!("exit code {exit_code}")),
    };
    let stderr = String::from_utf8_lossy(stderr);
    match stderr.trim().lines().next_back() {
        Some(last) => Failure::new(ended, format!("{what}: {}", shorten(last.trim(), LONGEST_MESSAGE))),
        None => Failure::new(ended, what),
    }
}

fn default_reason(hook: &Hook, verb: &str) -> String {
    format!("{verb} by hook `{}`", hook.name)
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Ended::InvalidOutput, message)
}

fn output(hook: &Hook, kind: EventKind, bytes: &[u8], empty: Empty) -> Result<Reply, Failure> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| invalid(format!("the answer is not UTF-8: invalid byte at offset {}", e.valid_up_to())))?
        .trim();
    if text.is_empty() {
        return match empty {
            Empty::NoOpinion => Ok(Reply::proceed()),
            Empty::Invalid => Err(invalid("the answer is empty; it must be a JSON object")),
        };
    }
    let object = object_in(text)?;
    let fields: Fields<'_> = serde_json::from_str(object).map_err(|_| no_object(text))?;
    let mut reader = Reader { hook, kind, reply: Reply::default() };
    reader.top(&fields)?;
    Ok(reader.reply)
}

/// The JSON object in a text: all of it, or what stands between its first and its last brace, so that log
/// lines, colours and code fences around the object do no harm.
fn object_in(text: &str) -> Result<&str, Failure> {
    if !text.starts_with('{') && check_json(text).is_ok() {
        return Err(no_object(text));
    }
    let first = text.find('{').ok_or_else(|| no_object(text))?;
    let end = text.rfind('}').map_or(text.len(), |last| last + 1);
    let object = text.get(first..end).ok_or_else(|| no_object(text))?;
    match check_json(object) {
        Ok(()) => Ok(object),
        Err(e) if e.message.contains("trailing characters") => {
            Err(invalid("the answer has more than one JSON object, or text with braces around it"))
        }
        Err(e) => {
            let what = excerpt(&e.to_string());
            Err(invalid(format!("the answer is not valid JSON: {what}: {}", excerpt(text))))
        }
    }
}

fn no_object(text: &str) -> Failure {
    invalid(format!("the answer has no JSON object: {}", excerpt(text)))
}

fn excerpt(text: &str) -> String {
    shorten(text, EXCERPT)
}

/// Reads one output object.
struct Reader<'a> {
    hook: &'a Hook,
    kind: EventKind,
    reply: Reply,
}

impl Reader<'_> {
    fn top(&mut self, fields: &Fields<'_>) -> Result<(), Failure> {
        self.warn_about_unknown(fields, &TOP_KEYS, "");
        let stop_reason = text_of(fields, "", "stopReason")?;
        let reason = text_of(fields, "", "reason")?;
        let blocks = blocks(text_of(fields, "", "decision")?.as_deref())?;
        let goes_on = flag_of(fields, "continue")?.unwrap_or(true);
        self.reply.suppress_output = flag_of(fields, "suppressOutput")?.unwrap_or(false);
        self.note(NoteKind::SystemMessage, text_of(fields, "", "systemMessage")?);
        if let Some(specific) = value_of(fields, "hookSpecificOutput") {
            self.specific(&object_of("hookSpecificOutput", specific)?)?;
        }
        let given = stop_reason.or(reason).filter(|text| !text.trim().is_empty());
        let message = |verb| Some(given.clone().unwrap_or_else(|| default_reason(self.hook, verb)));
        self.reply.opinion = match (goes_on, blocks) {
            (false, _) => Opinion::Halt(message("stopped")),
            (true, true) => Opinion::Block(message("blocked")),
            (true, false) => Opinion::None,
        };
        Ok(())
    }

    fn specific(&mut self, fields: &Fields<'_>) -> Result<(), Failure> {
        let named = text_of(fields, "hookSpecificOutput.", "hookEventName")?;
        if let Some(other) = named.filter(|name| name != self.kind.as_str()) {
            self.reply.warnings.push(format!(
                "hookSpecificOutput is for `{}`, not for `{}`, and was discarded",
                shorten(&other, EXCERPT),
                self.kind
            ));
            return Ok(());
        }
        self.warn_about_unknown(fields, &SPECIFIC_KEYS, "hookSpecificOutput.");
        self.note(NoteKind::AdditionalContext, text_of(fields, "hookSpecificOutput.", "additionalContext")?);
        match value_of(fields, "patch") {
            Some(patch) => self.patch(patch),
            None => Ok(()),
        }
    }

    fn patch(&mut self, patch: &RawValue) -> Result<(), Failure> {
        let size = patch.get().len();
        if size > LARGEST_PATCH {
            let message = format!("the patch is {size} bytes long; at most {LARGEST_PATCH} are allowed");
            return Err(Failure::new(Ended::OutputTooLarge, message));
        }
        for (name, value) in object_of("hookSpecificOutput.patch", patch)?.iter() {
            self.reply.patches.push(match Target::from_name(name) {
                Some(target) => Patch::Target(target, Json::checked(value)),
                None => Patch::Foreign(shorten(name, EXCERPT)),
            });
        }
        Ok(())
    }

    fn note(&mut self, kind: NoteKind, text: Option<String>) {
        self.reply.notes.extend(text.filter(|text| !text.is_empty()).map(|text| (kind, text)));
    }

    fn warn_about_unknown(&mut self, fields: &Fields<'_>, known: &[&str], prefix: &str) {
        let unknown: Vec<&str> =
            fields.iter().map(|(key, _)| key).filter(|key| !known.contains(key)).collect();
        for key in unknown.iter().take(MOST_WARNINGS) {
            let hint = nearest(key, known).map(|near| format!("; did you mean `{prefix}{near}`?"));
            let shown = shorten(key, EXCERPT);
            let hint = hint.unwrap_or_default();
            self.reply.warnings.push(format!("unknown key `{prefix}{shown}` in the answer{hint}"));
        }
        if unknown.len() > MOST_WARNINGS {
            self.reply.warnings.push(format!("{} more unknown keys", unknown.len() - MOST_WARNINGS));
        }
    }
}

fn blocks(decision: Option<&str>) -> Result<bool, Failure> {
    match decision {
        Some("block") => Ok(true),
        None | Some("allow" | "approve") => Ok(false),
        Some(other) => Err(invalid(format!(
            "`decision` is {:?}; the only decision is \"block\"",
            shorten(other, EXCERPT)
        ))),
    }
}

/// A field; `null` counts as left out, as many languages write what is not set.
fn value_of<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.get(name).filter(|value| value.get() != "null")
}

/// A text; `within` is what stands before its name in messages.
fn text_of(fields: &Fields<'_>, within: &str, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = value_of(fields, name) else { return Ok(None) };
    match unquoted(value) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(wrong_type(&format!("{within}{name}"), "a string", value)),
    }
}

fn flag_of(fields: &Fields<'_>, name: &str) -> Result<Option<bool>, Failure> {
    match value_of(fields, name).map(|value| (value, value.get())) {
        None => Ok(None),
        Some((_, "true")) => Ok(Some(true)),
        Some((_, "false")) => Ok(Some(false)),
        Some((value, _)) => Err(wrong_type(name, "a boolean", value)),
    }
}

fn object_of<'a>(name: &str, value: &'a RawValue) -> Result<Fields<'a>, Failure> {
    serde_json::from_str(value.get()).map_err(|_| wrong_type(name, "an object", value))
}

fn wrong_type(name: &str, expected: &str, value: &RawValue) -> Failure {
    invalid(format!("`{name}` must be {expected}, not {}", Json::checked(value).kind()))
}
