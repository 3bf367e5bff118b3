//! Shared pieces for writing responses to hosts.

use std::borrow::Cow;

use serde::Serialize;

use crate::model::{
    Dialect, Ended, Event, HookReport, HostResponse, Json, NoteKind, Outcome, Target, Verdict,
};

/// The exit code of a block.
pub(super) const BLOCK: u8 = 2;

/// The answer of a program that prints one JSON value and succeeds. `strictest` is printed if the value has
/// no JSON form, so that a defect here can never read as consent.
pub(super) fn of<T: Serialize + ?Sized>(value: &T, strictest: &str) -> HostResponse {
    HostResponse {
        stdout: serde_json::to_string(value).unwrap_or_else(|_| strictest.to_owned()),
        ..HostResponse::default()
    }
}

/// The outcome as a host of the dialect can receive it. A host that merges a patch with its own value may get another
/// result, such as a tool call with an argument that a hook removed: then the outcome is a block.
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

/// Whether the host has this value after it has merged it.
fn arrives(dialect: &dyn Dialect, event: &Event, target: Target, value: &Json) -> bool {
    let Ok(joined) = dialect.apply_patch(target, event.targets.get(target), value) else { return false };
    let tree = |json: &Json| json.read::<serde_json::Value>().ok();
    joined == *value || tree(&joined) == tree(value)
}

/// The outcome as a block, because a patch would be lost.
pub(super) fn blocked_for(target: Target, outcome: &Outcome) -> Outcome {
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

/// Why a host must not go on, for hosts that know only yes and no: there `ask` is a no, because a host that went on
/// would not ask the person.
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

/// Why a host must not go on, if it must not.
pub(super) fn stopping_reason(outcome: &Outcome) -> Option<Cow<'_, str>> {
    let halted = (outcome.verdict == Verdict::Halt).then_some("stopped by a hook".into());
    refusal(outcome).or(halted)
}

/// The answer to an event of an unknown kind: a block is an exit code, which counts for every kind, and messages to the
/// person are in the field that the dialects share.
pub(super) fn unreadable_event(outcome: &Outcome) -> HostResponse {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct PersonalMessage {
        system_message: String,
    }
    if let Some(refusal) = stopping_reason(outcome) {
        let stderr = if refusal.is_empty() { "blocked by a hook".to_owned() } else { refusal.into_owned() };
        return HostResponse { stderr, exit_code: BLOCK, ..HostResponse::default() };
    }
    match user_message(outcome) {
        Some(system_message) => of(&PersonalMessage { system_message }, "{}"),
        None => HostResponse::default(),
    }
}

/// An answer as an HTTP body, without exit code and standard error: a refusal by exit code alone becomes JSON.
pub fn http_body(answer: &HostResponse) -> Cow<'_, str> {
    #[derive(Serialize)]
    struct RefusalBody<'a> {
        decision: &'static str,
        reason: &'a str,
    }
    if let Some(body) = &answer.body {
        return Cow::Borrowed(body);
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

/// A field that a hook of the host's dialect gave.
pub(super) fn native_field<'o>(outcome: &'o Outcome, name: &str) -> Option<&'o Json> {
    outcome.native.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
}

/// The messages of the hooks to the person at the host, with a blank line between them.
pub(super) fn user_message(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| matches!(kind, NoteKind::SystemMessage | NoteKind::LoopBroken))
}

/// The texts that say something, with a blank line between them.
pub(super) fn joined(texts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let texts: Vec<String> = texts.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// What failed without a verdict, for the person at the host: agents show the failures of the hooks that they run
/// themselves.
pub(super) fn failures(outcome: &Outcome) -> Option<String> {
    let is_silent = |report: &&HookReport| {
        report.verdict == Verdict::Proceed && !matches!(report.ended, Ended::Cancelled | Ended::Untrusted)
    };
    let failed = outcome.hooks.iter().filter(is_silent);
    let texts: Vec<String> = failed
        .filter_map(|report| Some(format!("hook `{}` failed: {}", report.hook, report.error.as_ref()?)))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The context from the hooks for the model, with a blank line between them.
pub(super) fn model_context(outcome: &Outcome) -> Option<String> {
    notes(outcome, |kind| kind == NoteKind::AdditionalContext)
}

fn notes(outcome: &Outcome, wanted: impl Fn(NoteKind) -> bool) -> Option<String> {
    let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
    let texts: Vec<&str> = notes.map(|note| &*note.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
