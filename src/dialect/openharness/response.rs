//! Writes the response to an OpenHarness host: the unified output JSON.

use std::{borrow::Cow, sync::LazyLock};

use serde::Serialize;

use super::super::response;
use crate::model::{EventKind, HostResponse, Outcome, Targets, Verdict};

/// Printed if an answer has no JSON form.
const STRICTEST: &str = r#"{"continue":true,"decision":"block","reason":"the answer could not be written"}"#;

/// What a hook would have printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unified<'a> {
    r#continue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppress_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Targets::is_empty")]
    patch: &'a Targets,
}

pub(super) fn write(outcome: &Outcome) -> HostResponse {
    let given = outcome.reason.as_deref();
    let reason = response::refusal(outcome);
    let halted = outcome.verdict == Verdict::Halt;
    let output = Unified {
        r#continue: !halted,
        stop_reason: halted.then(|| given.unwrap_or("stopped by a hook")),
        decision: reason.is_some().then_some("block"),
        hook_specific_output: specific(outcome, halted || reason.is_some()),
        reason,
        suppress_output: outcome.suppress_output.then_some(true),
        system_message: response::user_message(outcome),
    };
    response::of(&output, STRICTEST)
}

/// The context and the patches. Beside a refusal there is no patch of what does not happen.
fn specific(outcome: &Outcome, is_refused: bool) -> Option<Specific<'_>> {
    static NO_PATCH: LazyLock<Targets> = LazyLock::new(Targets::default);
    let additional_context = response::model_context(outcome);
    let patch = if is_refused && !outcome.event.has_happened() { &*NO_PATCH } else { &outcome.patched };
    if additional_context.is_none() && patch.is_empty() {
        return None;
    }
    Some(Specific { hook_event_name: outcome.event, additional_context, patch })
}
