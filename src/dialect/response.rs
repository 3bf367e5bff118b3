//! Shared pieces for writing responses to hosts.

use std::borrow::Cow;

use serde::Serialize;

use crate::model::{Dialect, Event, HostResponse, Json, NoteKind, Outcome, Target, Verdict};

/// The exit code of a block.
pub(super) const BLOCK: u8 = 2;

/// The answer of a program that prints one JSON value and succeeds. `strictest` is printed if the value has
/// no JSON form, so that a defect here can never read as consent.
pub(super) fn of<T: Serialize + ?Sized>(value: &T, strictest: &str) -> HostResponse {
    HostResponse {
        stdout: serde_json::to_string(value).unwrap_or_else(|_| strictest.to_owned()),
        stderr: String::new(),
        exit_code: 0,
    }
}

/// The outcome as a host of the dialect can be told it. A host that joins what hooks changed with what it has may
/// come to something else, such as a tool call with an argument that a hook took out: then it is a block.
pub(super) fn expressible<'o>(
    dialect: &dyn Dialect,
    event: &Event,
    outcome: &'o Outcome,
) -> Cow<'o, Outcome> {
    let lost = |(target, value): &(Target, &Json)| !arrives(dialect, event, *target, value);
    match outcome.patched.iter().find(lost) {
        Some((target, _)) if outcome.verdict < Verdict::Block => Cow::Owned(blocked_for(target, outcome)),
        _ => Cow::Borrowed(outcome),
    }
}

/// Whether the host comes to this value if it is told this value.
fn arrives(dialect: &dyn Dialect, event: &Event, target: Target, value: &Json) -> bool {
    let Ok(joined) = dialect.apply_patch(target, event.targets.get(target), value) else { return false };
    let tree = |json: &Json| json.read::<serde_json::Value>().ok();
    joined == *value || tree(&joined) == tree(value)
}

/// The outcome as a block, because of a change that would be lost.
fn blocked_for(target: Target, outcome: &Outcome) -> Outcome {
    let reason = match outcome.reason.as_deref() {
        Some(reason) => format!("{}; {reason}", lost_change(target)),
        None => lost_change(target),
    };
    Outcome { verdict: Verdict::Block, reason: Some(reason.into()), ..outcome.clone() }
}

/// Why a host must not go on as if no hook had changed this.
pub(super) fn lost_change(target: Target) -> String {
    format!("a hook changed `{target}` in a way that this host cannot receive")
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

/// The answer to an event of an unknown kind: a block is told by exit code, which counts for every kind, and what there
/// is to say to the person in the field that the dialects share.
pub(super) fn unreadable_event(outcome: &Outcome) -> HostResponse {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct PersonalMessage {
        system_message: String,
    }
    let halted = (outcome.verdict == Verdict::Halt).then_some("stopped by a hook".into());
    if let Some(refusal) = refusal(outcome).or(halted) {
        let stderr = if refusal.is_empty() { "blocked by a hook".to_owned() } else { refusal.into_owned() };
        return HostResponse { stdout: String::new(), stderr, exit_code: BLOCK };
    }
    match user_message(outcome) {
        Some(system_message) => of(&PersonalMessage { system_message }, "{}"),
        None => HostResponse::default(),
    }
}

/// An answer as the body of one over HTTP, where there is neither an exit code nor standard error: what refuses by
/// its exit code alone has to say so in JSON.
pub fn http_body(answer: &HostResponse) -> Cow<'_, str> {
    #[derive(Serialize)]
    struct RefusalBody<'a> {
        decision: &'static str,
        reason: &'a str,
    }
    let printed = answer.stdout.trim();
    if answer.exit_code == 0 {
        return Cow::Borrowed(if printed.is_empty() { "{}" } else { printed });
    }
    let fields = Json::parse(printed).ok();
    let says_so = fields.and_then(|json| json.fields().map(|fields| fields.get("decision").is_some()));
    if says_so == Some(true) {
        return Cow::Borrowed(printed);
    }
    let reason = if answer.stderr.is_empty() { "blocked by a hook" } else { &answer.stderr };
    Cow::Owned(of(&RefusalBody { decision: "block", reason }, r#"{"decision":"block"}"#).stdout)
}

/// What a hook of the host's dialect said under a name.
pub(super) fn native_field<'o>(outcome: &'o Outcome, name: &str) -> Option<&'o Json> {
    outcome.native.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
}

/// What the hooks have to say to the person at the host, with a blank line between them.
pub(super) fn user_message(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| matches!(kind, NoteKind::SystemMessage | NoteKind::LoopBroken))
}

/// What the hooks have to say to the model, with a blank line between them.
pub(super) fn model_context(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| kind == NoteKind::AdditionalContext)
}

fn notes(outcome: &Outcome, wanted: impl Fn(NoteKind) -> bool) -> Option<String> {
    let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
    let texts: Vec<&str> = notes.map(|note| &*note.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
