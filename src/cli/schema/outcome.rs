//! Schema of a canonical outcome.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::shape;

/// The answer of hookyard to one event.
#[derive(JsonSchema)]
#[schemars(title = "Canonical outcome", deny_unknown_fields)]
pub(super) struct OutcomeSchema {
    /// Id of this answer, also used in logs.
    decision_id: String,
    /// The kind of the event.
    event: shape::AnyEvent,
    /// What the host should do. `proceed`: no hook has an opinion; `allow`: proceed without asking a person; `ask`: ask
    /// a person; `block`: do not proceed; `halt`: end the run.
    verdict: shape::AnyVerdict,
    /// The reason, for a person or a model.
    reason: Option<String>,
    /// The hook that decided.
    by: Option<shape::HookName>,
    /// The parts of the payload that hooks changed, with their final values. Use these.
    #[schemars(extend("propertyNames" = shape::one_of(crate::model::Target::ALL.map(crate::model::Target::as_str))))]
    patched: Option<BTreeMap<String, shape::Anything>>,
    /// Notes of hooks, in the order of the plan.
    notes: Option<Vec<NoteSchema>>,
    /// Whether to hide the tool's output.
    suppress_output: bool,
    /// Fields without a canonical meaning, from hooks of the host's own dialect.
    native: Option<BTreeMap<String, shape::Anything>>,
    /// How each hook ended, in the order of the plan.
    hooks: Vec<HookReportSchema>,
    /// The version of the hook registry; it grows with each reload.
    snapshot_version: u64,
}

/// A note of a hook.
#[derive(JsonSchema)]
#[schemars(rename = "Note", deny_unknown_fields)]
struct NoteSchema {
    /// The hook.
    hook: shape::HookName,
    /// For whom: `system_message` and `loop_broken` are for the person at the host, `additional_context` is for the
    /// model.
    kind: NoteKindSchema,
    /// The text.
    text: String,
}

/// Whom a note is for.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
enum NoteKindSchema {
    SystemMessage,
    AdditionalContext,
    LoopBroken,
}

/// How one hook ended.
#[derive(JsonSchema)]
#[schemars(rename = "Report", deny_unknown_fields)]
struct HookReportSchema {
    /// The hook.
    hook: shape::HookName,
    /// The type of its handler.
    handler: HandlerKindSchema,
    /// How the invocation ended.
    ended: shape::AnyEnd,
    /// Its verdict, after its policies; left out for `proceed`.
    verdict: Option<shape::AnyVerdict>,
    /// What it changed.
    patched: Option<Vec<shape::AnyTarget>>,
    /// How long it ran, in milliseconds.
    #[schemars(range(min = 0))]
    duration_ms: f64,
    /// How long it waited before it ran, in milliseconds: for a place in its pool, at the hook's own limit, or for its
    /// workers. Left out below 10 ms.
    #[schemars(range(min = 10))]
    queued_ms: Option<f64>,
    /// The tokens that a model used, if it reported them.
    tokens: Option<TokensSchema>,
    /// Why it failed.
    error: Option<String>,
    /// Warnings about the invocation and its answer.
    warnings: Option<Vec<String>>,
}

/// The type of a handler.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum HandlerKindSchema {
    Command,
    Http,
    Prompt,
    Agent,
    Rule,
    Rego,
    Native,
}

/// The tokens of model calls.
#[derive(JsonSchema)]
#[schemars(rename = "Tokens", deny_unknown_fields)]
struct TokensSchema {
    /// Tokens read.
    input: u64,
    /// Tokens written.
    output: u64,
}
