//! Reads the answers of Gemini CLI's hooks: JSON at any exit code, or text whose exit code is the decision.

use super::output::{FAILED, GeminiDecision, GeminiOutput};
use crate::{
    dialect::{
        event_table::EventRow,
        output::{default_reason, exited, invalid, printed_too_much, whole_object},
    },
    model::{
        EventKind, Failure, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Strategy,
        Target,
    },
};

/// The exit code of a warning.
const WARNING: i32 = 1;

/// Reads the output of a handler.
///
/// Returns a failure if the dialect does not allow the answer, or if a hook failed without any output.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    let RawReply::Command { exit_code, stdout, stderr, truncated } = raw else {
        return Err(invalid("only programs answer in this dialect"));
    };
    let text = [&stdout, &stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
        .into_iter()
        .find(|text| !text.is_empty());
    let failure = (exit_code != 0).then(|| exited(exit_code, &stderr));
    let (output, warnings) = match (text, &failure) {
        (None, None) => return Ok(Reply::proceed()),
        (None, Some(failure)) => return Err(failure.clone()),
        (Some(_), _) if truncated && exit_code <= WARNING => return Err(printed_too_much(&stdout)),
        (Some(_), _) if truncated => (plain(exit_code, printed_too_much(&stdout).message), Vec::new()),
        (Some(text), _) => match object_in(&text, GeminiOutput::read)? {
            Some(read) => read,
            None => (plain(exit_code, text), Vec::new()),
        },
    };
    let mut reply = reply_of(row, hook, output);
    reply.warnings.extend(warnings);
    if failure.is_some() {
        reply.native.extend(Json::of(&true).ok().map(|failed| (FAILED.into(), failed)));
    }
    reply.failure = failure.map(Box::new);
    Ok(reply)
}

/// The JSON object in a text, or in the JSON string that the text is; `None` if there is none.
pub(in crate::dialect) fn object_in<T>(
    text: &str,
    read: impl FnOnce(&JsonFields<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let inner = Json::parse(text).ok().and_then(|json| json.read::<String>().ok());
    let text = inner.as_deref().unwrap_or(text).trim();
    if !text.starts_with('{') || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Ok(None);
    }
    read(&whole_object(text, text)?).map(Some)
}

/// The meaning of text that is not JSON.
fn plain(exit_code: i32, text: String) -> GeminiOutput {
    match exit_code {
        0 => GeminiOutput {
            decision: Some(GeminiDecision::Allow),
            system_message: Some(text),
            ..GeminiOutput::default()
        },
        WARNING => {
            let message = Some(format!("Warning: {text}"));
            GeminiOutput {
                decision: Some(GeminiDecision::Allow),
                system_message: message,
                ..GeminiOutput::default()
            }
        }
        _ => GeminiOutput {
            decision: Some(GeminiDecision::Deny),
            reason: Some(text),
            ..GeminiOutput::default()
        },
    }
}

/// A hook's output as a canonical reply. Fields without a canonical form are kept unchanged.
fn reply_of(row: &EventRow, hook: &Hook, mut output: GeminiOutput) -> Reply {
    let mut reply = Reply::default();
    let specific = &mut output.hook_specific_output;
    if let Some((name, target)) = changed(row)
        && let Some(value) = specific.take(name)
    {
        reply.patches.push(Patch::Target(target, value));
    }
    let context = specific.take("additionalContext").and_then(|value| value.read::<String>().ok());
    let notes =
        [(NoteKind::SystemMessage, output.system_message.take()), (NoteKind::AdditionalContext, context)];
    let notes =
        notes.into_iter().filter_map(|(kind, text)| Some((kind, text.filter(|text| !text.is_empty())?)));
    reply.notes.extend(notes);
    reply.decision = match opinion(&output) {
        HookDecision::None => HookDecision::None,
        opinion if row.kind == EventKind::BeforeToolSelection => {
            let verdict = opinion.verdict();
            reply.warnings.push(format!("verdict `{verdict}` ignored: {} takes `toolConfig` only", row.name));
            HookDecision::None
        }
        HookDecision::Halt(None) => HookDecision::Halt(Some(default_reason(hook, "stopped"))),
        HookDecision::Block(None) => HookDecision::Block(Some(default_reason(hook, "blocked"))),
        // Text is always a decision, also where there is nothing to decide.
        HookDecision::Allow(_) if row.kind.strategy() == Strategy::Parallel => HookDecision::None,
        opinion => opinion,
    };
    output.keep_in(&mut reply);
    reply
}

/// The target that hooks on an event may change, and their name for it.
pub(super) fn changed(row: &EventRow) -> Option<(&'static str, Target)> {
    let target = row.kind.target()?;
    let name = match target {
        Target::ToolInput => "tool_input",
        Target::ModelRequest => "llm_request",
        Target::ModelResponse => "llm_response",
        Target::ToolConfig => "toolConfig",
        Target::Prompt | Target::Context | Target::ToolOutput => return None,
    };
    Some((name, target))
}

/// The output as an opinion.
pub(super) fn opinion(output: &GeminiOutput) -> HookDecision {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let reason = text(&output.reason);
    if output.r#continue == Some(false) {
        return HookDecision::Halt(text(&output.stop_reason).or(reason));
    }
    match output.decision {
        None => HookDecision::None,
        Some(GeminiDecision::Allow | GeminiDecision::Approve) => HookDecision::Allow(reason),
        Some(GeminiDecision::Ask) => HookDecision::Ask(reason),
        Some(GeminiDecision::Block | GeminiDecision::Deny) => HookDecision::Block(reason),
    }
}
