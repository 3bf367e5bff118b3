//! Lists and shows the last decisions, with its part of the route table.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State, http::StatusCode, routing::on};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    extract::{ApiQuery, PathParameter, workspace_id},
    operation::{
        BodySchema::{AnyObject, One},
        Operation, Parameter, RequestLimit, ResponseContent, Route, RouteMethod, ok,
    },
    shared::{INVALID_QUERY, NO_HISTORY, ONE_WORKSPACE, UNKNOWN_DECISION, list_limit, off_the_way},
    stream::verdict,
};
use crate::{
    daemon::{
        auth::AccessRight,
        error::ApiError,
        page::{
            DecisionDetails, DecisionEvent, DecisionFilter, DecisionHistory, DecisionPayload,
            DecisionSummary, DecisionTrace, FoundDecisions, HistoryScope, millis,
        },
        schema::{Component, object, unsigned},
        state::DaemonState,
    },
    model::{Verdict, WorkspaceId},
};

/// The largest `limit` of a list.
const MAX_LIMIT: usize = 4000;

/// The largest moment: up to here, all that reads JSON agrees about whole numbers.
const MAX_MOMENT: u64 = 9_007_199_254_740_991;

const RUN: Parameter = Parameter::query("run_id", "Only those of this run or session", any_string);
const TOOL: Parameter = Parameter::query("tool", "Only those about this tool", any_string);
const HOOK: Parameter = Parameter::query("hook", "Only those that this hook was asked for", any_string);
const VERDICT: Parameter = Parameter::query("verdict", "Only those that ended so", verdict_name);
const FAILED: Parameter =
    Parameter::query("failed", "Only those with a hook that failed", || json!({ "type": "boolean" }));
const NOTABLE: Parameter = Parameter::query(
    "notable",
    "Only those that asked, blocked, halted or had a hook that failed",
    || json!({ "type": "boolean" }),
);
const SINCE: Parameter =
    Parameter::query("since", "Only those since this moment, in milliseconds since 1970", moment);
const UNTIL: Parameter =
    Parameter::query("until", "Only those before this moment, in milliseconds since 1970", moment);
const LIMIT: Parameter = Parameter::query(
    "limit",
    "The maximum number of decisions, 100 by default",
    || json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT }),
);
const DECISION: Parameter = Parameter::path("id", "The ID of the decision", any_string);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionsQuery {
    workspace_id: Option<String>,
    run_id: Option<String>,
    tool: Option<String>,
    hook: Option<String>,
    verdict: Option<String>,
    failed: Option<bool>,
    notable: Option<bool>,
    since: Option<u64>,
    until: Option<u64>,
    limit: Option<usize>,
}

/// The last decisions.
#[derive(Debug, Serialize)]
struct DecisionsView {
    decisions: Vec<DecisionSummary>,
    left_out: usize,
    since: u64,
}

pub(super) static DECISIONS_VIEW: Component = Component::built("DecisionsView", || {
    let decisions = json!({ "type": "array", "items": { "type": "object" }, "description": "The decisions, newest first." });
    let left_out = unsigned("The number of decisions beyond the limit.");
    let since = unsigned(
        "The moment since which the daemon has forgotten none that it keeps, in milliseconds since 1970.",
    );
    let fields = [("decisions", decisions), ("left_out", left_out), ("since", since)];
    object("The last decisions.", fields, &[])
});

pub(super) const DECISIONS: Route = Route {
    path: "/v1/decisions",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "listDecisions",
        tag: "decisions",
        right: AccessRight::Read,
        summary: "List the last decisions, newest first.",
        description: "They are kept in memory: the last 2,000 that asked, blocked, halted or had a hook that failed, and, where the daemon has a TCP address, the payloads of these and the last 2,000 others, of at most 16 MiB each, those of more than 1 MiB without their payload. Those of before the start are from the end of the audit, if it is in a file, without their payload (`from_audit`). The audit has all.",
        parameters: &[ONE_WORKSPACE, RUN, TOOL, HOOK, VERDICT, FAILED, NOTABLE, SINCE, UNTIL, LIMIT],
        request: None,
        success: &[ok("The decisions", ResponseContent::Json(One(&DECISIONS_VIEW)))],
        errors: &[INVALID_QUERY],
        handler: |method| on(method, list),
    }],
};

pub(super) const DETAILS: Route = Route {
    path: "/v1/decisions/{id}",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "getDecision",
        tag: "decisions",
        right: AccessRight::Read,
        summary: "Show a decision with what each hook did, and when.",
        description: "",
        parameters: &[DECISION],
        request: None,
        success: &[ok("The decision", ResponseContent::Json(AnyObject))],
        errors: &[UNKNOWN_DECISION],
        handler: |method| on(method, details),
    }],
};

pub(super) const EVENT: Route = Route {
    path: "/v1/decisions/{id}/event",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "getDecisionEvent",
        tag: "decisions",
        right: AccessRight::Control,
        summary: "Show a decision's event in the canonical format, as `POST /v1/explain` takes it.",
        description: "Without the secrets of hooks. `gaps` says what of it is missing. As for payloads, it needs the right to control.",
        parameters: &[DECISION],
        request: None,
        success: &[ok("The event", ResponseContent::Json(AnyObject))],
        errors: &[UNKNOWN_DECISION, NO_HISTORY],
        handler: |method| on(method, event),
    }],
};

pub(super) const PAYLOAD: Route = Route {
    path: "/v1/decisions/{id}/payload",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "getDecisionPayload",
        tag: "decisions",
        right: AccessRight::Control,
        summary: "Show the payload of a decision's event, as it was sent and as hooks have changed it.",
        description: "Without the secrets of hooks. `by_hook` has what each hook made of the parts that it changed, in the order of the reports, unless that is too large. As for recordings, it needs the right to control.",
        parameters: &[DECISION],
        request: None,
        success: &[ok("The payload", ResponseContent::Json(AnyObject))],
        errors: &[UNKNOWN_DECISION, NO_HISTORY],
        handler: |method| on(method, payload),
    }],
};

pub(super) const TRACE: Route = Route {
    path: "/v1/decisions/{id}/trace",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "traceDecision",
        tag: "decisions",
        right: AccessRight::Control,
        summary: "Show what each hook of a decision was told, and which expressions of its rules decided, from which values.",
        description: "It is found anew from the event that is kept, for hooks that are as they were: `gap` says what is missing and why. It evaluates rules and runs nothing else. Without the secrets of hooks. As for payloads, it needs the right to control.",
        parameters: &[DECISION],
        request: None,
        success: &[ok("What the hooks were told", ResponseContent::Json(AnyObject))],
        errors: &[UNKNOWN_DECISION, NO_HISTORY],
        handler: |method| on(method, trace),
    }],
};

async fn list(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<DecisionsQuery>,
) -> Result<Json<DecisionsView>, ApiError> {
    let limit = list_limit(query.limit, MAX_LIMIT)?;
    let filter = DecisionFilter {
        workspace: query.workspace_id.as_deref().map(workspace_id).transpose()?,
        run: query.run_id,
        tool: query.tool,
        hook: query.hook,
        verdict: query.verdict.as_deref().map(verdict).transpose()?,
        failed: query.failed.unwrap_or_default(),
        notable: query.notable.unwrap_or_default(),
        since: query.since.map(since_epoch).transpose()?,
        until: query.until.map(since_epoch).transpose()?,
    };
    let history = Arc::clone(&state.observers.history);
    let found = off_the_way(move || history.list(&filter, limit)).await?;
    let FoundDecisions { decisions, left_out, since } = found;
    Ok(Json(DecisionsView { decisions, left_out, since: millis(since) }))
}

fn since_epoch(moment: u64) -> Result<Duration, ApiError> {
    if moment > MAX_MOMENT {
        let hint = "use milliseconds since 1970";
        return Err(ApiError::bad_request("bad_query", format!("the moment {moment} is out of range"), hint));
    }
    Ok(Duration::from_millis(moment))
}

async fn details(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<DecisionDetails>, ApiError> {
    let history = Arc::clone(&state.observers.history);
    off_the_way(move || history.details(&id)).await?.map(Json).ok_or_else(unknown_decision)
}

async fn event(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<DecisionEvent>, ApiError> {
    ask(&state, move |history| history.event(&id)).await?.map(Json).ok_or_else(unknown_decision)
}

async fn payload(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<DecisionPayload>, ApiError> {
    ask(&state, move |history| history.payload(&id)).await?.map(Json).ok_or_else(unknown_decision)
}

async fn trace(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<DecisionTrace>, ApiError> {
    let orchestrator = state.orchestrator.clone();
    let snapshot = move |workspace: &WorkspaceId| orchestrator.snapshot(Some(workspace));
    let traced = ask(&state, move |history| history.trace(&id, snapshot)).await?;
    traced.map(Json).ok_or_else(unknown_decision)
}

/// Asks a history with events, which may have to free many texts of secrets.
async fn ask<T: Send + 'static>(
    state: &DaemonState,
    ask: impl FnOnce(&DecisionHistory) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let history = whole_history(state)?;
    off_the_way(move || ask(&history)).await
}

/// The history, if it has the events of its decisions.
pub(super) fn whole_history(state: &DaemonState) -> Result<Arc<DecisionHistory>, ApiError> {
    let history = &state.observers.history;
    if history.scope() == HistoryScope::All {
        return Ok(Arc::clone(history));
    }
    let message = "the daemon keeps no events, because it has no address for browsers";
    let hint = "set `listen.tcp`, or search the audit with `hookyard audit`";
    Err(ApiError::new(StatusCode::CONFLICT, "no_history", message, hint))
}

fn unknown_decision() -> ApiError {
    let hint =
        "only the last ones are kept; `hookyard audit --decision` finds it in the audit, if that is on";
    ApiError::not_found("unknown_decision", "unknown decision", hint)
}

fn verdict_name() -> Value {
    let names = Verdict::ALL.map(Verdict::as_str);
    json!({ "type": "string", "enum": names })
}

fn any_string() -> Value {
    json!({ "type": "string" })
}

fn moment() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": MAX_MOMENT })
}
