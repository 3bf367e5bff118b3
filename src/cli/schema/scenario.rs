//! Schema of a scenario of `hookyard bench`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{hook_file::HookFileSchema, shape};
use crate::model::EventKind;

/// Which events `hookyard bench` sends, with which hooks and how fast.
#[derive(JsonSchema)]
#[schemars(title = "Scenario of hookyard bench", deny_unknown_fields)]
pub(super) struct ScenarioSchema {
    /// What it is for. For people only, in reports.
    description: Option<String>,
    /// Sessions that are open at a time, which take turns. Default: 64.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 64))]
    sessions: Option<i64>,
    /// Events before a run completes, and its session begins another. Left out: runs stay open.
    #[schemars(range(min = 1, max = 1_000_000))]
    events_per_run: Option<i64>,
    /// The kinds of events that are sent.
    #[schemars(length(min = 1, max = 64))]
    events: Vec<EventShareSchema>,
    /// The workspace of a daemon that events name, by its id.
    workspace_id: Option<String>,
    /// The hooks. Default: those of the workspace that is found as by every command.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
    hooks: Option<ScenarioHooksSchema>,
    /// How fast events are sent, and for how long. Flags of the same names win.
    load: Option<ScenarioLoadSchema>,
}

/// One kind of event, and its part of all.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct EventShareSchema {
    /// The kind.
    #[schemars(schema_with = "kinds")]
    kind: String,
    /// Its part of all events, beside the weights of the others, which are not all 0. Default: 1.
    #[schemars(range(min = 0, max = 1_000_000), extend("default" = 1))]
    weight: Option<f64>,
    /// What matchers see of it, such as the name of a tool.
    #[schemars(rename = "match")]
    matched: Option<String>,
    /// Bytes of text in it, up to 15 MiB, or the least and the most. Default: 256B.
    #[schemars(extend("default" = "256B"))]
    payload: Option<PayloadSchema>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum PayloadSchema {
    Size(#[schemars(schema_with = "size")] String),
    Bounds(#[schemars(schema_with = "bounds")] Vec<String>),
}

/// Either a workspace or hooks of its own.
#[derive(JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct ScenarioHooksSchema {
    /// Directory of a workspace, from that of the scenario.
    workspace: Option<String>,
    /// Hooks as in hook files. They need `--trust-workspace`, and a daemon does not run them.
    #[schemars(length(max = 64))]
    inline: Option<Vec<HookFileSchema>>,
}

/// An open loop with a `rate`, or a closed one with `concurrency`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(extend("not" = { "required": ["rate", "concurrency"] }))]
#[schemars(extend("dependentRequired" = { "arrivals": ["rate"], "in_flight": ["rate"] }))]
struct ScenarioLoadSchema {
    /// Events per second, whatever the answers take.
    #[schemars(range(max = 1_000_000), extend("exclusiveMinimum" = 0))]
    rate: Option<f64>,
    /// How the events of an open loop are spread. Default: constant.
    #[schemars(extend("default" = "constant"))]
    arrivals: Option<shape::ArrivalName>,
    /// How many events of an open loop may be under way.
    #[schemars(range(min = 1, max = 10_000))]
    in_flight: Option<i64>,
    /// So many senders, each of which waits for its answer before its next event.
    #[schemars(range(min = 1, max = 10_000))]
    concurrency: Option<i64>,
    /// How long the load rises to its full height, up to an hour; not measured.
    ramp: Option<shape::WaitingTime>,
    /// How long the load lasts before it is measured, up to an hour.
    warm_up: Option<shape::WaitingTime>,
    /// How long it is measured, up to a day.
    duration: Option<shape::LastingTime>,
    /// How long an answer may take before it counts as none, up to an hour.
    timeout: Option<shape::LastingTime>,
    /// Number of parts of the measured time; with `--versus`, number of turns.
    #[schemars(range(min = 2, max = 1000))]
    rounds: Option<i64>,
    /// Number from which all that is random follows.
    #[schemars(range(min = 0))]
    seed: Option<i64>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let sent = EventKind::ALL.iter().filter(|kind| **kind != EventKind::HostEvent);
    shape::one_of(sent.map(|kind| kind.as_str()))
}

fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^(0B|(?=.*[1-9])\d+(\.\d*)?\s*([KMG]i)?B)$" })
}

fn bounds(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": size(generator), "minItems": 2, "maxItems": 2 })
}
