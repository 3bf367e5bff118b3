//! Writes the response to a Gemini CLI host. It is never milder than the outcome.

use super::{
    output::{GeminiDecision, GeminiOutput},
    payload,
    reply::changed,
};
use crate::{
    dialect::{event_table::EventRow, response},
    model::{Event, EventKind, HostResponse, Json, NoteKind, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str =
    r#"{"continue":false,"decision":"deny","stopReason":"the answer could not be written"}"#;

/// Fields that have a place of their own in an answer.
const PLACED: [&str; 5] = ["continue", "stopReason", "decision", "reason", "suppressOutput"];

/// Writes the answer to an event of this row.
pub(super) fn write(event: &Event, row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let mut output = decided(row, outcome);
    output.suppress_output = (outcome.suppress_output
        || native_field::<bool>(outcome, "suppressOutput") == Some(true))
    .then_some(true);
    output.system_message = lines(outcome, |kind| kind != NoteKind::AdditionalContext);
    let words = outcome.native.iter().filter(|(name, _)| !PLACED.contains(&&**name));
    output.hook_specific_output.0.extend(words.cloned());
    patched(&mut output, event, row, outcome);
    if let Some(failures) = response::failures(outcome) {
        add_message(&mut output, &failures);
    }
    if let Some(context) = lines(outcome, |kind| kind == NoteKind::AdditionalContext) {
        set(&mut output, "additionalContext", Json::of(&context).ok());
    }
    if row.kind == EventKind::BeforeToolSelection && output.hook_specific_output.get("toolConfig").is_none() {
        // Of any answer to it, the host makes a configuration of its own.
        return HostResponse::default();
    }
    response::of(&output, STRICTEST)
}

/// A field that a hook of this dialect gave, if it has the type.
fn native_field<T: serde::de::DeserializeOwned>(outcome: &Outcome, name: &str) -> Option<T> {
    response::native_field(outcome, name).and_then(|value| value.read().ok())
}

fn lines(outcome: &Outcome, wanted: impl Fn(NoteKind) -> bool) -> Option<String> {
    let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
    let texts: Vec<&str> = notes.map(|note| &*note.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn set(output: &mut GeminiOutput, name: &str, value: Option<Json>) {
    if let Some(value) = value {
        output.hook_specific_output.set(name, value);
    }
}

/// The verdict. The name that a hook of this dialect chose for it is kept.
fn decided(row: &EventRow, outcome: &Outcome) -> GeminiOutput {
    let chosen = native_field::<String>(outcome, "decision").and_then(|word| GeminiDecision::of(&word));
    let given = outcome.reason.as_deref().map(str::to_owned);
    let mut output = GeminiOutput::default();
    match outcome.verdict {
        Verdict::Proceed => {
            (output.decision, output.reason) = (chosen, native_field(outcome, "reason"));
            output.r#continue = native_field(outcome, "continue");
            output.stop_reason = native_field(outcome, "stopReason");
        }
        Verdict::Allow => {
            let chosen = chosen.filter(|decision| *decision == GeminiDecision::Approve);
            (output.decision, output.reason) = (chosen.or(Some(GeminiDecision::Allow)), given);
        }
        // Only a tool call can be asked about; elsewhere the host would go on.
        Verdict::Ask if row.kind == EventKind::BeforeToolDispatch || chosen == Some(GeminiDecision::Ask) => {
            (output.decision, output.reason) = (Some(GeminiDecision::Ask), given);
        }
        Verdict::Ask | Verdict::Block => {
            let chosen = chosen.filter(|decision| decision.blocks());
            output.decision = chosen.or(Some(GeminiDecision::Deny));
            output.reason = response::refusal(outcome).map(String::from);
        }
        Verdict::Halt => {
            (output.decision, output.reason) = (chosen, native_field(outcome, "reason"));
            output.r#continue = Some(false);
            output.stop_reason = Some(given.unwrap_or_else(|| "stopped by a hook".to_owned()));
        }
    }
    if row.kind == EventKind::BeforeToolSelection && outcome.verdict >= Verdict::Ask {
        set(&mut output, "toolConfig", payload::no_tools());
    }
    output
}

/// The patches in the host's format; a patch that it cannot express becomes a denial.
fn patched(output: &mut GeminiOutput, event: &Event, row: &EventRow, outcome: &Outcome) {
    let passes = outcome.verdict < Verdict::Block && !output.decision.is_some_and(GeminiDecision::blocks);
    if !passes && !row.kind.has_happened() {
        // The host must not be given a change of what does not happen.
        return;
    }
    for (target, value) in outcome.patched.iter() {
        let before = event.targets.get(target);
        match (changed(row).filter(|(_, known)| *known == target), target) {
            (Some((name, Target::ModelResponse)), _) => {
                set(output, name, Some(payload::response_home(before, value)));
            }
            (Some((name, Target::ModelRequest)), _) => {
                set(output, name, Some(payload::changed_fields(before, value)));
            }
            (Some((_, Target::ToolConfig)), _) if outcome.verdict >= Verdict::Ask => {}
            (Some((name, _)), _) => set(output, name, Some(value.clone())),
            // The reason is told to the model in place of the output.
            (None, Target::ToolOutput) if passes => deny(output, payload::shown(value)),
            (None, Target::Prompt) if passes => {
                deny(output, "a hook changed the prompt, which this host cannot receive".to_owned());
            }
            (None, _) if passes => {
                let message = format!("a hook changed `{target}`, which this host cannot receive");
                add_message(output, &message);
            }
            (None, _) => {}
        }
    }
}

fn add_message(output: &mut GeminiOutput, message: &str) {
    let former = output.system_message.take();
    output.system_message = Some(former.map_or(message.to_owned(), |text| format!("{text}\n{message}")));
}

fn deny(output: &mut GeminiOutput, reason: String) {
    (output.decision, output.reason) = (Some(GeminiDecision::Deny), Some(reason));
}
