//! Shows which hooks an event would run, and why the others are left out, with its part of the route table. Runs nothing but
//! rules.

use std::{path::Path, time::SystemTime};

use axum::{Json, body::Body, extract::State, http::HeaderMap, routing::on};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    extract::{ApiQuery, absent_workspace, workspace_id},
    native_response::parse_dialect,
    operation::{
        BodySchema::AnyObject, Operation, Parameter, RequestLimit, ResponseContent, Route, RouteMethod, ok,
    },
    shared::{EVENT_ERRORS, UNKNOWN_DIALECT_OR_WORKSPACE, dialect, off_the_way},
};
use crate::{
    DispatchError,
    daemon::{
        auth::AccessRight,
        error::ApiError,
        request_body,
        state::{DaemonState, RequestContext},
    },
    model::{
        Arrival, Delivery, DialectName, Draft, Event, EventKind, HandlerKind, Hook, Redactor,
        TracedExpression, WorkspaceId,
    },
    orchestrator::RuleTracer,
    registry::Snapshot,
    run::next_decision_id,
};

/// The largest event that is explained, in bytes.
const LARGEST_EVENT: usize = 1 << 20;

/// The most expressions of all hooks that are shown.
const MOST_EXPRESSIONS: usize = 500;

const FORMAT: Parameter =
    Parameter::query("dialect", "The format of the event, `canonical` by default", dialect);
const WORKSPACE: Parameter = Parameter::query(
    "workspace_id",
    "The workspace whose hooks are asked; by default that of the event, or the one around its `cwd`",
    || json!({ "type": "string" }),
);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    dialect: Option<String>,
    workspace_id: Option<String>,
}

/// Which hooks an event would run.
#[derive(Debug, Serialize)]
struct EventPlanView {
    workspace_id: WorkspaceId,
    event: EventKind,
    /// What matchers look at.
    matched: Option<String>,
    /// Why it would be blocked whatever its hooks say.
    blocked: Option<String>,
    stages: Vec<Vec<PlannedHook>>,
    skipped: Vec<LeftOutHook>,
}

#[derive(Debug, Serialize)]
struct PlannedHook {
    hook: String,
    handler: HandlerKind,
    /// Whether the host waits for it.
    awaited: bool,
    /// Why it would not run all the same.
    refused: Option<String>,
    expressions: Vec<TracedExpression>,
}

#[derive(Debug, Serialize)]
struct LeftOutHook {
    hook: String,
    why: String,
}

pub(super) const EXPLAIN: Route = Route {
    path: "/v1/explain",
    limit: RequestLimit::Counted,
    operations: &[Operation {
        method: RouteMethod::Post,
        id: "explainEvent",
        tag: "events",
        right: AccessRight::Read,
        summary: "Show which hooks an event would run, and why the others are left out.",
        description: "As `hookyard explain` does. It evaluates rules, in a run that has counted nothing and as if no other hook had changed the payload, and runs nothing. Values that expressions read are left out: they may be those of files. An event has at most 1 MiB.",
        parameters: &[FORMAT, WORKSPACE],
        request: Some(AnyObject),
        success: &[ok("The plan", ResponseContent::Json(AnyObject))],
        errors: &[EVENT_ERRORS, UNKNOWN_DIALECT_OR_WORKSPACE],
        handler: |method| on(method, explain),
    }],
};

async fn explain(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    ApiQuery(query): ApiQuery<ExplainQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<EventPlanView>, ApiError> {
    let dialect = query.dialect.as_deref().map_or(Ok(DialectName::Canonical), parse_dialect)?;
    let bounds = share.body_bounds(state.settings.limits.payload.min(LARGEST_EVENT));
    let body = request_body::read(&headers, body, bounds).await?;
    let event = state.orchestrator.read(dialect, &body)?;
    let id = match query.workspace_id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => workspace_id(id)?,
        None => workspace_of(&state, &event)?,
    };
    let snapshot = state.orchestrator.snapshot(Some(&id)).ok_or_else(|| absent_workspace(&state, &id))?;
    // Rules may take a while, and ask the disk where links lead.
    off_the_way(move || EventPlanView::of(&snapshot, event)).await.map(Json)
}

/// The workspace that an event would be sent to, if it is known already.
fn workspace_of(state: &DaemonState, event: &Event) -> Result<WorkspaceId, ApiError> {
    let around = || Some(state.orchestrator.workspace_above(Path::new(&**event.cwd.as_ref()?))?.0);
    event.workspace_id.clone().or_else(around).ok_or_else(|| DispatchError::NoWorkspace.into())
}

impl EventPlanView {
    fn of(snapshot: &Snapshot, mut event: Event) -> Self {
        event.arrival.get_or_insert_with(|| Arrival::new(SystemTime::now(), next_decision_id()));
        let redactor = snapshot.redactor();
        let shown = |text: &str| redactor.text(text).into_owned();
        let explanation = snapshot.explain(&event);
        let (kind, matched) = (event.kind, event.match_text().map(shown));
        let blocked = snapshot.missing_for(&event).map(|missing| shown(&missing.reason()));
        let draft = Draft::new(event.into());
        let mut tracer = RuleTracer::new(snapshot, &explanation.plan, &draft);
        let mut room = MOST_EXPRESSIONS;
        let mut planned = |hook: &Hook| {
            let expressions = tracer.expressions(hook).unwrap_or_default();
            let expressions: Vec<_> =
                expressions.into_iter().take(room).map(|one| without_values(one, redactor)).collect();
            room -= expressions.len();
            PlannedHook {
                hook: shown(hook.name.as_str()),
                handler: hook.handler.kind(),
                awaited: hook.execution.delivery == Delivery::Awaited,
                refused: hook.trust.refusal().map(shown),
                expressions,
            }
        };
        let stages = explanation.plan.stages();
        let stages = stages.map(|stage| stage.iter().map(|step| planned(&step.hook)).collect()).collect();
        let skipped = explanation.skipped.iter().map(|skipped| LeftOutHook {
            hook: shown(skipped.hook.hook.name.as_str()),
            why: shown(&skipped.why.to_string()),
        });
        Self {
            workspace_id: snapshot.workspace().id.clone(),
            event: kind,
            matched,
            blocked,
            stages,
            skipped: skipped.collect(),
        }
    }
}

fn without_values(traced: TracedExpression, redactor: &Redactor) -> TracedExpression {
    TracedExpression {
        rule: traced.rule.map(|rule| redactor.string(rule)),
        expression: redactor.string(traced.expression),
        result: redactor.string(traced.result),
        values: Vec::new(),
        ..traced
    }
}
