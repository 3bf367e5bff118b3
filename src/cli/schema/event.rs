//! Schema of a canonical event, with the fields that each kind requires.

use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::shape;
use crate::model::EventKind;

/// The schema. Optional fields may be `null`, as many hosts write them.
pub(super) fn schema() -> Schema {
    shape::with_nulls::<EventSchema>()
}

/// An event of a run, as a host sends it to hookyard. Unknown fields are kept as they are.
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
    /// Id of the conversation: 1 to 256 bytes without control characters.
    session_id: shape::Id,
    /// Id of the run within it. Hosts without run ids send the session's id.
    run_id: shape::Id,
    /// The host's id of this event. A second event with the same id gets the first answer; no hook runs twice.
    event_id: Option<shape::Id>,
    /// Id of the workspace.
    workspace_id: Option<shape::Id>,
    /// Id of the tool call. Two events of one kind with the same call are the same event sent twice.
    tool_call_id: Option<shape::Id>,
    /// The host's working directory.
    cwd: Option<String>,
    /// Whether the host waits for the outcome. With `false`, a lifecycle event is answered `proceed` at once.
    /// Default: true.
    #[schemars(transform = shape::without_null, extend("default" = true))]
    wait: Option<bool>,
    /// The agent of the run.
    agent_name: Option<String>,
    /// The acting agent, if it is another one (a subagent).
    effective_agent_name: Option<String>,
    /// The model that is called.
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
    /// The prompt.
    prompt: Option<shape::Anything>,
    /// The context, with its `messages`.
    context: Option<shape::Anything>,
    /// The request to a model.
    model_request: Option<shape::Anything>,
    /// The answer of a model.
    model_response: Option<shape::Anything>,
    /// The tools that the model may choose from.
    tool_config: Option<shape::Anything>,
    /// The input of a tool call.
    tool_input: Option<shape::Anything>,
    /// The output of a tool call.
    tool_output: Option<shape::Anything>,
}

/// Adds the fields that kinds require.
fn needs(schema: &mut Schema) {
    let rules = EventKind::ALL.iter().filter_map(|kind| {
        let (fact, target) = needed(*kind);
        let rule = |event: &str| rule(event, *kind, fact, target);
        (fact.is_some() || target.is_some()).then(|| ["event", "hook_event_name"].map(rule))
    });
    schema.insert("allOf".to_owned(), rules.flatten().collect());
}

/// The text field and the payload field that a kind requires.
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
