//! Reads the answers of Qwen Code's hooks: JSON at any exit code, or text whose exit code is the decision.

use std::str::Chars;

use crate::{
    dialect::{
        codex::combined_decision,
        event_table::{EventRow, PlainText},
        gemini::{self, GeminiDecision, GeminiOutput, PrintedAnswer},
        output::{exited, invalid, printed_too_much, refused_by_server, text_in, text_of, unmarked},
    },
    model::{
        Draft, EventKind, Failure, HookDecision, Json, NoteKind, Patch, RawReply, Reply, Target, Verdict,
        merge_one_level,
    },
};

/// The exit code of a block. Only standard error counts beside it.
const BLOCK: i32 = 2;

/// The place of standard output among what a program prints.
const STDOUT: usize = 0;

/// The message of a denied permission without one. The agent has one of its own, with the name of the tool.
pub(super) const NO_MESSAGE: &str = "Permission denied by hook";

/// The reason of a block without one.
pub(super) const NO_REASON: &str = "No reason provided";

/// Reads the output of a handler.
///
/// Returns a failure if the dialect does not allow the answer, or if a hook failed without any output.
pub(super) fn read(row: &EventRow, raw: RawReply) -> Result<Reply, Failure> {
    let (exit_code, stdout, stderr, truncated) = match raw {
        RawReply::Command { exit_code, stdout, stderr, truncated } => (exit_code, stdout, stderr, truncated),
        RawReply::Http { status: 200..=299, body } => {
            return match text_in(unmarked(&body))? {
                "" => Ok(Reply::proceed()),
                text => Ok(reply_of(row, text, |text| message(0, text))?.unwrap_or_else(Reply::proceed)),
            };
        }
        RawReply::Http { status, .. } => return Err(refused_by_server(status)),
        RawReply::Native(reply) => return Ok(reply),
        RawReply::Text(_) => return Err(invalid("only programs and servers answer in this dialect")),
    };
    let failure = (exit_code != 0).then(|| exited(exit_code, &stderr));
    let printed = [&stdout, &stderr].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let skipped = usize::from(exit_code == BLOCK);
    let mut counting = printed.into_iter().enumerate().skip(skipped);
    let Some((stream, text)) = counting.find(|(_, text)| !text.is_empty()) else {
        return failure.map_or_else(|| Ok(Reply::proceed()), Err);
    };
    if truncated && exit_code != BLOCK {
        return Err(printed_too_much(&stdout));
    }
    let is_context = exit_code == 0 && stream == STDOUT && row.plain_text == PlainText::Told;
    let plain = |text: &str| if is_context { context(text) } else { message(exit_code, text) };
    let Some(mut reply) = reply_of(row, &text, plain)? else {
        return failure.map_or_else(|| Ok(Reply::proceed()), Err);
    };
    // The next hook receives nothing of one that failed.
    reply.patches.retain(|patch| failure.is_none() || !matches!(patch, Patch::HooksOnly(..)));
    reply.failure = failure.map(Box::new).or(reply.failure);
    Ok(reply)
}

/// What a text says: JSON, or else what text means. `None` if the JSON says nothing.
fn reply_of(
    row: &EventRow,
    text: &str,
    plain: impl FnOnce(&str) -> GeminiOutput,
) -> Result<Option<Reply>, Failure> {
    let answer = match gemini::answer_in(text)? {
        PrintedAnswer::Text => plain(text).into(),
        answer => answer,
    };
    let PrintedAnswer::Output(read) = answer else { return Ok(None) };
    let output = read.output;
    let decision = decision(row, &output)?;
    let specific = output.hook_specific_output;
    let failure = read.mistake.map(Box::new);
    let mut reply = Reply { decision, warnings: read.warnings, failure, ..Reply::default() };
    let context = specific.get("additionalContext").and_then(|value| value.read::<String>().ok());
    let notes = [(NoteKind::SystemMessage, output.system_message), (NoteKind::AdditionalContext, context)];
    let notes =
        notes.into_iter().filter_map(|(kind, text)| Some((kind, text.filter(|text| !text.is_empty())?)));
    reply.notes.extend(notes);
    match row.kind {
        EventKind::BeforeToolDispatch => {
            let changed = specific.get("updatedInput").cloned();
            reply.patches.extend(changed.map(|input| Patch::Target(Target::ToolInput, input)));
            let next = specific.get("tool_input").cloned();
            reply.patches.extend(next.map(|input| Patch::HooksOnly(Target::ToolInput, input)));
        }
        EventKind::PermissionRequested if reply.decision.verdict() == Verdict::Allow => {
            let answer = specific.get("decision").and_then(Json::fields);
            let changed = answer.as_ref().and_then(|answer| answer.get("updatedInput"));
            let changed = changed.filter(|value| value.get() != "null").map(Json::checked);
            reply.patches.extend(changed.map(|input| Patch::Target(Target::ToolInput, input)));
        }
        _ => {}
    }
    Ok(Some(reply))
}

/// Text that is not JSON, on standard output, where it is for the model.
fn context(text: &str) -> GeminiOutput {
    let mut output = GeminiOutput::default();
    if let Ok(text) = Json::of(&without_terminal_codes(text)) {
        output.hook_specific_output.set("additionalContext", text);
    }
    output
}

/// A text without the control characters of terminals, such as those for colours. Its lines stay.
fn without_terminal_codes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut rest),
            _ if c == '\n' || !c.is_control() => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// Goes behind the sequence that an escape character begins.
fn skip_sequence(rest: &mut Chars<'_>) {
    match rest.clone().next() {
        // Parameters, up to a letter.
        Some('[') => drop(rest.by_ref().skip(1).find(|c| ('@'..='~').contains(c))),
        // Such as the title of a window, up to a bell or another escape character and a backslash.
        Some(']') => {
            let end = rest.find(|c| ['\u{7}', '\u{1b}'].contains(c));
            if end == Some('\u{1b}') {
                rest.next();
            }
        }
        Some(c) if !c.is_control() => drop(rest.next()),
        _ => {}
    }
}

/// The meaning of other text that is not JSON.
fn message(exit_code: i32, text: &str) -> GeminiOutput {
    match exit_code {
        0 => GeminiOutput { system_message: Some(text.to_owned()), ..GeminiOutput::default() },
        BLOCK => GeminiOutput {
            decision: Some(GeminiDecision::Deny),
            reason: Some(text.to_owned()),
            ..GeminiOutput::default()
        },
        _ => GeminiOutput { system_message: Some(format!("Warning: {text}")), ..GeminiOutput::default() },
    }
}

/// The decision of an output. Where the agent reads `continue: false`, it means no more than a block: it goes on with
/// the next thing. Blocks count also after a tool and for permissions, where the agent has other words for them.
fn decision(row: &EventRow, output: &GeminiOutput) -> Result<HookDecision, Failure> {
    let stop_reason = given(output.stop_reason.as_deref());
    let reason = given(output.reason.as_deref());
    let effective = || stop_reason.or(reason).unwrap_or(NO_REASON).to_owned();
    let stops = output.r#continue == Some(false);
    let blocks = stops || output.decision.is_some_and(GeminiDecision::blocks);
    let block = || if blocks { HookDecision::Block(Some(effective())) } else { HookDecision::None };
    Ok(match row.kind {
        EventKind::BeforeToolDispatch => {
            let specific = &output.hook_specific_output;
            let text = |name| specific.get(name).and_then(|value| value.read::<String>().ok());
            let word = text("permissionDecision").and_then(|word| GeminiDecision::of(&word));
            let own = text("permissionDecisionReason");
            let reason = given(own.as_deref()).or(reason).map(str::to_owned);
            match word.or(output.decision) {
                Some(GeminiDecision::Deny | GeminiDecision::Block) => {
                    HookDecision::Block(Some(reason.unwrap_or_else(effective)))
                }
                Some(GeminiDecision::Ask) => {
                    HookDecision::Ask(Some(reason.unwrap_or_else(|| "User confirmation required".to_owned())))
                }
                _ if stops => HookDecision::Block(Some(effective())),
                Some(GeminiDecision::Allow | GeminiDecision::Approve) => HookDecision::Allow(reason),
                None => HookDecision::None,
            }
        }
        EventKind::PermissionRequested => match output.hook_specific_output.get("decision") {
            Some(answer) => answered(answer)?,
            None => block(),
        },
        EventKind::PromptSubmitted
        | EventKind::AfterToolDispatch
        | EventKind::AgentStopping
        | EventKind::SubagentStopping => block(),
        _ => HookDecision::None,
    })
}

/// The answer of a hook in place of the person who would be asked: anything but `allow` is a denial.
fn answered(answer: &Json) -> Result<HookDecision, Failure> {
    const NAME: &str = "hookSpecificOutput.decision";
    let fields = answer
        .fields()
        .ok_or_else(|| invalid(format!("`{NAME}` must be an object, not {}", answer.kind())))?;
    let text = |name| text_of(&fields, "hookSpecificOutput.decision.", name);
    let message = text("message")?.filter(|text| !text.trim().is_empty());
    Ok(match text("behavior")?.as_deref() {
        Some("allow") => HookDecision::Allow(message),
        _ => HookDecision::Block(Some(message.unwrap_or_else(|| NO_MESSAGE.to_owned()))),
    })
}

/// A text, if it says something.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// A reply with what the earlier ones decided. What the next of hooks that run one after the other receives is the
/// draft with the input or the context of this one.
pub(super) fn combine(row: &EventRow, draft: &Draft, earlier: &[Reply], mut reply: Reply) -> Reply {
    for patch in &mut reply.patches {
        if let Patch::HooksOnly(target, value) = patch
            && let Ok(next) = merge_one_level(draft.target(*target), value)
        {
            *value = next;
        }
    }
    reply.patches.extend(gemini::next_prompt(row, draft, &reply.notes));
    reply.decision = combined_decision(earlier, reply.decision, "\n");
    reply
}
