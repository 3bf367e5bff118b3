//! The shape of a canonical outcome, as it is written. Refuses to say what a host should make of one.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::shape;

/// The answer of hookyard to one event.
#[derive(JsonSchema)]
#[schemars(title = "Canonical outcome", deny_unknown_fields)]
pub(super) struct OutcomeSchema {
    /// Names this answer in logs.
    decision_id: String,
    /// The kind of the event that it answers.
    event: shape::AnyEvent,
    /// What the host should do. `proceed`: no hook had an opinion; `allow`: go on without asking a person; `ask` a
    /// person; `block`: don't; `halt`: end the run.
    verdict: shape::AnyVerdict,
    /// Why, for a person or a model to read.
    reason: Option<String>,
    /// The hook that decided.
    by: Option<shape::HookName>,
    /// The parts of the payload that hooks changed, with their final values: run these.
    #[schemars(extend("propertyNames" = shape::one_of(crate::model::Target::ALL.map(crate::model::Target::as_str))))]
    patched: Option<BTreeMap<String, shape::Anything>>,
    /// What hooks had to say, in the order of the plan.
    notes: Option<Vec<NoteSchema>>,
    /// Whether the tool's output should not be shown.
    suppress_output: bool,
    /// Words without a canonical meaning, said by hooks of the host's own dialect.
    native: Option<BTreeMap<String, shape::Anything>>,
    /// How each hook fared, in the order of the plan.
    hooks: Vec<HookReportSchema>,
    /// The version of the registry that was used; it grows with each reload.
    snapshot_version: u64,
}

/// Something a hook had to say.
#[derive(JsonSchema)]
#[schemars(rename = "Note", deny_unknown_fields)]
struct NoteSchema {
    /// Who says it.
    hook: shape::HookName,
    /// For whom: `system_message` and `loop_broken` are for the person at the host, `additional_context` is for the
    /// model.
    kind: NoteKindSchema,
    /// What it says.
    text: String,
}

/// For whom a note is.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
enum NoteKindSchema {
    SystemMessage,
    AdditionalContext,
    LoopBroken,
}

/// How one hook fared.
#[derive(JsonSchema)]
#[schemars(rename = "Report", deny_unknown_fields)]
struct HookReportSchema {
    /// The hook.
    hook: shape::HookName,
    /// What it runs.
    handler: HandlerKindSchema,
    /// How its invocation ended.
    ended: shape::AnyEnd,
    /// What it thought of the event, after its policies; left out for `proceed`.
    verdict: Option<shape::AnyVerdict>,
    /// What it changed.
    patched: Option<Vec<shape::AnyTarget>>,
    /// How long it ran, in milliseconds.
    #[schemars(range(min = 0))]
    duration_ms: f64,
    /// What it cost, if a model was asked and said so.
    tokens: Option<TokensSchema>,
    /// Why it brought no reply.
    error: Option<String>,
    /// What was odd about how it was run, and about its answer.
    warnings: Option<Vec<String>>,
}

/// What a hook runs.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum HandlerKindSchema {
    Command,
    Http,
    Prompt,
    Agent,
    Native,
}

/// How many tokens were read and written.
#[derive(JsonSchema)]
#[schemars(rename = "Tokens", deny_unknown_fields)]
struct TokensSchema {
    /// Read by the model.
    input: u64,
    /// Written by the model.
    output: u64,
}
