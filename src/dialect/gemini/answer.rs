//! The answer for Gemini CLI: what is folded of all its hooks said, and what hooks of other dialects said in its words.
//! Refuses to be milder than the outcome.

use super::{
    parts,
    reply::changed,
    said::{Decision, Said},
};
use crate::{
    dialect::{answer, row::Row},
    model::{Event, EventKind, HostResponse, Json, NoteKind, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str =
    r#"{"continue":false,"decision":"deny","stopReason":"the answer could not be written"}"#;

/// Words that have a place of their own in an answer.
const PLACED: [&str; 5] = ["continue", "stopReason", "decision", "reason", "suppressOutput"];

/// Writes the answer to an event of this row.
pub(super) fn write(event: &Event, row: Option<&Row>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return answer::unread(outcome) };
    let mut said = decided(row, outcome);
    said.suppress_output =
        (outcome.suppress_output || word::<bool>(outcome, "suppressOutput") == Some(true)).then_some(true);
    said.system_message = lines(outcome, |kind| kind != NoteKind::AdditionalContext);
    let words = outcome.native.iter().filter(|(name, _)| !PLACED.contains(&&**name));
    said.hook_specific_output.0.extend(words.cloned());
    patched(&mut said, event, row, outcome);
    if let Some(context) = lines(outcome, |kind| kind == NoteKind::AdditionalContext) {
        set(&mut said, "additionalContext", Json::of(&context).ok());
    }
    answer::of(&said, STRICTEST)
}

/// What a hook of this dialect said under a name, if it is of the type.
fn word<T: serde::de::DeserializeOwned>(outcome: &Outcome, name: &str) -> Option<T> {
    answer::word(outcome, name).and_then(|value| value.read().ok())
}

fn lines(outcome: &Outcome, wanted: impl Fn(NoteKind) -> bool) -> Option<String> {
    let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
    let texts: Vec<&str> = notes.map(|note| &*note.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn set(said: &mut Said, name: &str, value: Option<Json>) {
    if let Some(value) = value {
        said.hook_specific_output.set(name, value);
    }
}

/// The verdict. A word that a hook of this dialect chose is repeated.
fn decided(row: &Row, outcome: &Outcome) -> Said {
    let chosen = word::<String>(outcome, "decision").and_then(|word| Decision::of(&word));
    let given = outcome.reason.as_deref().map(str::to_owned);
    let mut said = Said::default();
    match outcome.verdict {
        Verdict::Proceed => {
            (said.decision, said.reason) = (chosen, word(outcome, "reason"));
            said.r#continue = word(outcome, "continue");
            said.stop_reason = word(outcome, "stopReason");
        }
        Verdict::Allow => {
            let chosen = chosen.filter(|decision| *decision == Decision::Approve);
            (said.decision, said.reason) = (chosen.or(Some(Decision::Allow)), given);
        }
        // Only a tool call can be asked about; elsewhere the host would go on.
        Verdict::Ask if row.kind == EventKind::BeforeToolDispatch || chosen == Some(Decision::Ask) => {
            (said.decision, said.reason) = (Some(Decision::Ask), given);
        }
        Verdict::Ask | Verdict::Block => {
            let chosen = chosen.filter(|decision| decision.blocks());
            said.decision = chosen.or(Some(Decision::Deny));
            said.reason = answer::refusal(outcome).map(String::from);
        }
        Verdict::Halt => {
            (said.decision, said.reason) = (chosen, word(outcome, "reason"));
            said.r#continue = Some(false);
            said.stop_reason = Some(given.unwrap_or_else(|| "stopped by a hook".to_owned()));
        }
    }
    if row.kind == EventKind::BeforeToolSelection && outcome.verdict >= Verdict::Ask {
        set(&mut said, "toolConfig", parts::no_tools());
    }
    said
}

/// What hooks changed, in the words of the host; what it has no words for is denied.
fn patched(said: &mut Said, event: &Event, row: &Row, outcome: &Outcome) {
    let passes = outcome.verdict < Verdict::Block && !said.decision.is_some_and(Decision::blocks);
    for (target, value) in outcome.patched.iter() {
        let before = event.targets.get(target);
        match (changed(row).filter(|(_, known)| *known == target), target) {
            (Some((name, Target::ModelResponse)), _) => {
                set(said, name, Some(parts::response_home(before, value)));
            }
            (Some((name, Target::ToolInput)), _) => {
                set(said, name, Some(value.clone()));
                if let Some(gone) = before.and_then(|before| gone(before, value)).filter(|_| passes) {
                    deny(
                        said,
                        format!("a hook took `{gone}` out of the input, which cannot be told to this host"),
                    );
                }
            }
            (Some((_, Target::ToolConfig)), _) if outcome.verdict >= Verdict::Ask => {}
            (Some((name, _)), _) => set(said, name, Some(value.clone())),
            // The reason is told to the model in place of the output.
            (None, Target::ToolOutput) if passes => deny(said, parts::shown(value)),
            (None, Target::Prompt) if passes => {
                deny(said, "a hook changed the prompt, which cannot be told to this host".to_owned());
            }
            (None, _) if passes => {
                let message = format!("a hook changed `{target}`, which cannot be told to this host");
                let former = said.system_message.take();
                said.system_message =
                    Some(former.map_or(message.clone(), |text| format!("{text}\n{message}")));
            }
            (None, _) => {}
        }
    }
}

fn deny(said: &mut Said, reason: String) {
    (said.decision, said.reason) = (Some(Decision::Deny), Some(reason));
}

/// A key that a tool's input had. The host puts the new input over the old one, so it would have it still.
fn gone(before: &Json, after: &Json) -> Option<String> {
    let (before, after) = (before.fields()?, after.fields()?);
    before.iter().map(|(name, _)| name).find(|name| after.get(name).is_none()).map(str::to_owned)
}
