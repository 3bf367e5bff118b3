//! Reads the answers of Gemini CLI's hooks: JSON at any exit code, or text whose exit code is the decision.

use super::output::{FAILED, GeminiDecision, GeminiOutput, ReadOutput};
use crate::{
    dialect::{
        event_table::EventRow,
        output::{default_reason, exited, invalid, printed_too_much, whole_object},
    },
    model::{
        EventKind, Failure, Hook, HookDecision, Json, MergeRule, NoteKind, Patch, RawReply, Reply, Strategy,
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
        .map(|bytes| trimmed(&String::from_utf8_lossy(bytes)).to_owned())
        .into_iter()
        .find(|text| !text.is_empty());
    let failure = (exit_code != 0).then(|| exited(exit_code, &stderr));
    let answer = match text {
        None => PrintedAnswer::Nothing,
        Some(_) if truncated && exit_code <= WARNING => return Err(printed_too_much(&stdout)),
        Some(_) if truncated => plain(exit_code, printed_too_much(&stdout).message).into(),
        Some(text) => match answer_in(&text)? {
            PrintedAnswer::Text => plain(exit_code, text).into(),
            answer => answer,
        },
    };
    let PrintedAnswer::Output(read) = answer else {
        return failure.map_or_else(|| Ok(Reply::proceed()), Err);
    };
    let mut reply = reply_of(row, hook, read.output);
    reply.warnings.extend(read.warnings);
    if failure.is_some() {
        reply.native.extend(Json::of(&true).ok().map(|failed| (FAILED.into(), failed)));
    }
    reply.failure = failure.or(read.mistake).map(Box::new);
    Ok(reply)
}

/// What a hook printed.
pub(in crate::dialect) enum PrintedAnswer {
    /// A JSON object, or a list, which has none of its fields.
    Output(Box<ReadOutput>),
    /// Nothing, or JSON that the agent takes for nothing.
    Nothing,
    /// Text that is not JSON.
    Text,
}

impl From<GeminiOutput> for PrintedAnswer {
    fn from(output: GeminiOutput) -> Self {
        Self::Output(Box::new(ReadOutput { output, warnings: Vec::new(), mistake: None }))
    }
}

/// The answer in a text, or in the JSON string that the text is.
///
/// Returns a failure if a patch is too large, or if a JSON object cannot be read.
pub(in crate::dialect) fn answer_in(text: &str) -> Result<PrintedAnswer, Failure> {
    let inner = Json::parse(text).ok().and_then(|json| json.read::<String>().ok());
    let text = trimmed(inner.as_deref().unwrap_or(text));
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Ok(PrintedAnswer::Text);
    }
    Ok(match text.as_bytes().first() {
        Some(b'{') => PrintedAnswer::Output(Box::new(GeminiOutput::read(&whole_object(text, text)?)?)),
        Some(b'[') => GeminiOutput::default().into(),
        _ => PrintedAnswer::Nothing,
    })
}

/// A text without white space and byte order marks around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}')
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
    reply.decision = match opinion(row, &output) {
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

/// The output as an opinion. Where decisions are combined, the reason of a stop counts for a stop only.
pub(super) fn opinion(row: &EventRow, output: &GeminiOutput) -> HookDecision {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let reason = text(&output.reason);
    if output.r#continue == Some(false) {
        return HookDecision::Halt(text(&output.stop_reason).or(reason));
    }
    match output.decision {
        None => HookDecision::None,
        Some(GeminiDecision::Allow | GeminiDecision::Approve) => HookDecision::Allow(reason),
        Some(GeminiDecision::Ask) => HookDecision::Ask(reason),
        Some(GeminiDecision::Block | GeminiDecision::Deny) => {
            let stop_reason = Some(&output.stop_reason).filter(|_| row.merge_rule != MergeRule::Combined);
            HookDecision::Block(stop_reason.and_then(text).or(reason))
        }
    }
}
