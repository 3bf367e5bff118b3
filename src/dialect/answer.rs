//! Writing answers, shared by the dialects. Refuses to choose their words.

use std::borrow::Cow;

use serde::Serialize;

use crate::model::{NativeAnswer, NoteKind, Outcome, Verdict};

/// The answer of a program that prints one JSON value and succeeds. `strictest` is printed if the value has
/// no JSON form, so that a defect here can never read as consent.
pub(super) fn of<T: Serialize + ?Sized>(value: &T, strictest: &str) -> NativeAnswer {
    NativeAnswer {
        stdout: serde_json::to_string(value).unwrap_or_else(|_| strictest.to_owned()),
        stderr: String::new(),
        exit_code: 0,
    }
}

/// Why a host must not go on, for one that can be told yes or no and nothing between: there a question is a no,
/// because a host that went on would leave the person out.
pub(super) fn refusal(outcome: &Outcome) -> Option<Cow<'_, str>> {
    let given = outcome.reason.as_deref();
    match outcome.verdict {
        Verdict::Block => Some(Cow::Borrowed(given.unwrap_or("blocked by a hook"))),
        Verdict::Ask => Some(match given {
            Some(reason) => Cow::Owned(format!("a person has to be asked first: {reason}")),
            None => Cow::Borrowed("a person has to be asked first"),
        }),
        Verdict::Proceed | Verdict::Allow | Verdict::Halt => None,
    }
}

/// What the hooks have to say to the person at the host, with a blank line between them.
pub(super) fn for_person(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| matches!(kind, NoteKind::SystemMessage | NoteKind::LoopBroken))
}

/// What the hooks have to say to the model, with a blank line between them.
pub(super) fn for_model(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| kind == NoteKind::AdditionalContext)
}

fn notes(outcome: &Outcome, wanted: impl Fn(NoteKind) -> bool) -> Option<String> {
    let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
    let texts: Vec<&str> = notes.map(|note| &*note.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
