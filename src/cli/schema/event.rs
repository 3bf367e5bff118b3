//! The shape of a canonical event, and which fields a kind makes no sense without. Refuses native events: each
//! dialect's hosts have their own.

use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::shape;
use crate::model::EventKind;

/// The schema; what a host does not have, many write as `null`.
pub(super) fn schema() -> Schema {
    shape::with_nulls::<EventSchema>()
}

/// One occurrence in a run, as a host tells hookyard of it. Further fields are kept as they are.
#[derive(JsonSchema)]
#[schemars(title = "Canonical event", transform = needs)]
#[schemars(extend("anyOf" = [{ "required": ["event"] }, { "required": ["hook_event_name"] }]))]
struct EventSchema {
    /// What happened.
    #[schemars(transform = shape::without_null)]
    event: Option<shape::AnyEvent>,
    /// Another name of the field `event`.
    #[schemars(transform = shape::without_null)]
    hook_event_name: Option<shape::AnyEvent>,
    /// The conversation: 1 to 256 bytes without control characters.
    session_id: shape::Id,
    /// The piece of work in it; hosts without run ids say the session's.
    run_id: shape::Id,
    /// The host's id for this occurrence; the same id again runs no hook twice.
    event_id: Option<shape::Id>,
    /// The workspace it belongs to.
    workspace_id: Option<shape::Id>,
    /// The tool call it is about; the same call in two events of one kind is the same event sent twice.
    tool_call_id: Option<shape::Id>,
    /// The host's working directory.
    cwd: Option<String>,
    /// Whether the host waits for the outcome. An event that is only watched and has `false` here is answered
    /// `proceed` at once. Default: true.
    #[schemars(transform = shape::without_null, extend("default" = true))]
    wait: Option<bool>,
    /// The agent that the run belongs to.
    agent_name: Option<String>,
    /// The agent that acts, where it is another one (a subagent).
    effective_agent_name: Option<String>,
    /// The model that a call goes to.
    model_ref: Option<String>,
    /// The tool's name.
    tool_name: Option<String>,
    /// What triggered the run.
    trigger_type: Option<String>,
    /// How the run ended.
    run_status: Option<String>,
    /// Where the session came from.
    source: Option<String>,
    /// Why the session ended.
    reason: Option<String>,
    /// What triggered the compaction.
    trigger: Option<String>,
    /// The kind of notification.
    notification_type: Option<String>,
    /// The text of the notification.
    message: Option<String>,
    /// The kind of subagent.
    agent_type: Option<String>,
    /// The name of an event that has no canonical kind, with `event: host_event`.
    host_event: Option<String>,
    /// The prompt that a person or program sent.
    prompt: Option<shape::Anything>,
    /// The context, with its `messages`.
    context: Option<shape::Anything>,
    /// The request to a model.
    model_request: Option<shape::Anything>,
    /// The answer of a model.
    model_response: Option<shape::Anything>,
    /// Which tools a model may choose from.
    tool_config: Option<shape::Anything>,
    /// The input of a tool call.
    tool_input: Option<shape::Anything>,
    /// The output of a tool call.
    tool_output: Option<shape::Anything>,
}

/// The fields that kinds make no sense without.
fn needs(schema: &mut Schema) {
    let rules = EventKind::ALL.iter().filter_map(|kind| {
        let (fact, target) = needed(*kind);
        let rule = |event: &str| rule(event, *kind, fact, target);
        (fact.is_some() || target.is_some()).then(|| ["event", "hook_event_name"].map(rule))
    });
    schema.insert("allOf".to_owned(), rules.flatten().collect());
}

/// The text and the part of the payload that a kind needs.
fn needed(kind: EventKind) -> (Option<&'static str>, Option<&'static str>) {
    use EventKind as K;
    let target = kind.target().map(crate::model::Target::as_str);
    match kind {
        K::BeforeToolDispatch | K::PermissionRequested => (Some("tool_name"), target),
        K::AfterToolDispatch | K::ToolFailed => (Some("tool_name"), None),
        K::BeforeModelCall | K::AfterModelCall => (Some("model_ref"), None),
        K::PromptSubmitted => (None, target),
        _ => (None, None),
    }
}

fn rule(field: &str, kind: EventKind, fact: Option<&str>, target: Option<&str>) -> Value {
    let required: Vec<&str> = fact.into_iter().chain(target).collect();
    let texts = fact.map(|fact| (fact.to_owned(), json!({ "type": "string" }))).into_iter();
    json!({
        "if": { "required": [field], "properties": { field: { "const": kind.as_str() } } },
        "then": { "required": required, "properties": texts.collect::<serde_json::Map<_, _>>() },
    })
}
