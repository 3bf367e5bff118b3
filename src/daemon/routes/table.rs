//! The route table: every route is declared here once, with its rights, its limit, its handlers and its description.

use std::sync::LazyLock;

use super::{
    events::{self, EVENT, OUTCOME},
    health, hooks, native_events,
    native_response::PROCESS_ANSWER,
    openapi,
    operation::{
        BodySchema::{AnyObject, AnyObjects, List, One},
        ErrorResponse, Operation, RequestLimit,
        ResponseContent::{self, Empty, Json, Text},
        Route, RouteMethod, SuccessResponse,
    },
    parameters::{
        AS, DIALECT, EVENT_KIND, ONE_WORKSPACE, RUN_ID, RUN_LIMIT, VERDICT, WORKSPACE_ID, WORKSPACE_OF_RUN,
    },
    reload,
    runs::{self, CANCELLED_VIEW, RUNS_VIEW},
    status::{self, AUDIT_STATUS, BROKEN_WORKSPACE, POWERLESS_SWITCHES, REQUIRED_MISSING, STATUS},
    stream,
    workspaces::{self, CHANGES_VIEW, KIND, REGISTRATION, WORKSPACE_DETAILS, WORKSPACE_VIEW},
};
use crate::daemon::{
    auth::AccessRight,
    error::{ERROR_BODY, ERROR_TEXT},
    schema::Component,
};
use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::on,
};

/// The components of the document.
static COMPONENTS: [&Component; 17] = [
    &AUDIT_STATUS,
    &BROKEN_WORKSPACE,
    &CANCELLED_VIEW,
    &CHANGES_VIEW,
    &ERROR_BODY,
    &ERROR_TEXT,
    &EVENT,
    &KIND,
    &OUTCOME,
    &PROCESS_ANSWER,
    &REGISTRATION,
    &RUNS_VIEW,
    &POWERLESS_SWITCHES,
    &REQUIRED_MISSING,
    &STATUS,
    &WORKSPACE_DETAILS,
    &WORKSPACE_VIEW,
];

const PLAIN_TEXT: ResponseContent = Text("text/plain");

const BODY_ERRORS: &[ErrorResponse] =
    &[(408, "The body took too long"), (413, "The body is too large"), (415, "The body is not JSON")];
const EVENT_ERRORS: &[ErrorResponse] = &[
    (400, "The event is invalid"),
    (408, "The body took too long"),
    (413, "The event is too large"),
    (415, "The body is not JSON"),
    (500, "The event was lost"),
    (508, "The request comes from one of hookyard's own hooks"),
];
const INVALID_ID: &[ErrorResponse] = &[(400, "The ID is invalid")];
const INVALID_QUERY: &[ErrorResponse] = &[(400, "The query is invalid")];
const INVALID_REGISTRATION: &[ErrorResponse] = &[(400, "The ID, the body or the directory is invalid")];
const NO_METRICS: &[ErrorResponse] = &[(404, "The embedding program collects the metrics itself")];
const RUN_ERRORS: &[ErrorResponse] = &[
    (400, "An ID is invalid"),
    (404, "The run is unknown"),
    (409, "Several workspaces have a run with this ID"),
];
const SAME_ROOT: &[ErrorResponse] = &[(409, "The directory belongs to another workspace")];
const UNKNOWN_DIALECT_OR_WORKSPACE: &[ErrorResponse] = &[(404, "The dialect or the workspace is unknown")];
const UNKNOWN_WORKSPACE: &[ErrorResponse] = &[(404, "The workspace is unknown")];

/// Every route of the daemon.
pub(super) static ROUTES: [Route; 14] = [
    Route {
        path: "/v1/events",
        limit: RequestLimit::Counted,
        operations: &[Operation {
            method: RouteMethod::Post,
            id: "sendEvent",
            tag: "events",
            right: AccessRight::Events,
            summary: "Run the hooks for an event.",
            description: "Takes a canonical event and answers with its outcome. `/v1/events/{dialect}` takes the events of agents.",
            parameters: &[],
            request: Some(One(&EVENT)),
            success: &[ok("The outcome", Json(One(&OUTCOME)))],
            errors: &[EVENT_ERRORS, UNKNOWN_WORKSPACE],
            handler: |method| on(method, events::send_event),
        }],
    },
    Route {
        path: "/v1/events/{dialect}",
        limit: RequestLimit::Counted,
        operations: &[Operation {
            method: RouteMethod::Post,
            id: "sendNativeEvent",
            tag: "events",
            right: AccessRight::Events,
            summary: "Run the hooks for an agent's event.",
            description: "Takes what the agent sends to its own hooks and answers what such a hook would answer. If the hooks cannot be asked, the answer is a block where a guard might have cared, or no opinion with a note to the person; the dialect `canonical` gets the error.",
            parameters: &[DIALECT, AS],
            request: Some(AnyObject),
            success: &[ok(
                "The answer in the format of the dialect, or a `ProcessAnswer` with `as=process`",
                Json(AnyObject),
            )],
            errors: &[EVENT_ERRORS, UNKNOWN_DIALECT_OR_WORKSPACE],
            handler: |method| on(method, native_events::send_native_event),
        }],
    },
    Route {
        path: "/v1/hooks",
        limit: RequestLimit::Counted,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "listHooks",
            tag: "hooks",
            right: AccessRight::Read,
            summary: "List the hooks of all workspaces, or of one, in the order in which they run.",
            description: "",
            parameters: &[ONE_WORKSPACE],
            request: None,
            success: &[ok("The hooks", Json(AnyObjects))],
            errors: &[INVALID_QUERY, UNKNOWN_WORKSPACE],
            handler: |method| on(method, hooks::list),
        }],
    },
    Route {
        path: "/v1/runs",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "listRuns",
            tag: "runs",
            right: AccessRight::Read,
            summary: "List the runs that have work in flight or had it recently.",
            description: "",
            parameters: &[ONE_WORKSPACE, RUN_LIMIT],
            request: None,
            success: &[ok("The runs", Json(One(&RUNS_VIEW)))],
            errors: &[INVALID_QUERY],
            handler: |method| on(method, runs::list),
        }],
    },
    Route {
        path: "/v1/runs/{id}",
        limit: RequestLimit::Exempt,
        operations: &[
            Operation {
                method: RouteMethod::Get,
                id: "getRun",
                tag: "runs",
                right: AccessRight::Read,
                summary: "Show a run.",
                description: "",
                parameters: &[RUN_ID, WORKSPACE_OF_RUN],
                request: None,
                success: &[ok("The run", Json(AnyObject))],
                errors: &[RUN_ERRORS],
                handler: |method| on(method, runs::show),
            },
            Operation {
                method: RouteMethod::Delete,
                id: "cancelRun",
                tag: "runs",
                right: AccessRight::Control,
                summary: "Cancel a run.",
                description: "Kills the processes of its hooks, answers its interceptor events with `halt`, and forgets the run.",
                parameters: &[RUN_ID, WORKSPACE_OF_RUN],
                request: None,
                success: &[ok("The run is cancelled", Json(One(&CANCELLED_VIEW)))],
                errors: &[RUN_ERRORS],
                handler: |method| on(method, runs::cancel),
            },
        ],
    },
    Route {
        path: "/v1/workspaces",
        limit: RequestLimit::Counted,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "listWorkspaces",
            tag: "workspaces",
            right: AccessRight::Read,
            summary: "List the workspaces in the order of their IDs.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("The workspaces", Json(List(&WORKSPACE_VIEW)))],
            errors: &[],
            handler: |method| on(method, workspaces::list),
        }],
    },
    Route {
        path: "/v1/workspaces/{id}",
        limit: RequestLimit::Counted,
        operations: &[
            Operation {
                method: RouteMethod::Put,
                id: "registerWorkspace",
                tag: "workspaces",
                right: AccessRight::Control,
                summary: "Register a workspace, or replace the one with this ID.",
                description: "Errors in its hook files do not fail the request: the answer lists them.",
                parameters: &[WORKSPACE_ID],
                request: Some(One(&REGISTRATION)),
                success: &[
                    ok("The workspace was registered before and is replaced", Json(One(&WORKSPACE_DETAILS))),
                    SuccessResponse {
                        status: 201,
                        description: "The workspace is registered",
                        body: Json(One(&WORKSPACE_DETAILS)),
                    },
                ],
                errors: &[BODY_ERRORS, INVALID_REGISTRATION, SAME_ROOT],
                handler: |method| on(method, workspaces::register),
            },
            Operation {
                method: RouteMethod::Get,
                id: "getWorkspace",
                tag: "workspaces",
                right: AccessRight::Read,
                summary: "Show a workspace and what is wrong with its files.",
                description: "",
                parameters: &[WORKSPACE_ID],
                request: None,
                success: &[ok("The workspace", Json(One(&WORKSPACE_DETAILS)))],
                errors: &[INVALID_ID, UNKNOWN_WORKSPACE],
                handler: |method| on(method, workspaces::show),
            },
            Operation {
                method: RouteMethod::Delete,
                id: "removeWorkspace",
                tag: "workspaces",
                right: AccessRight::Control,
                summary: "Remove a workspace: cancel its runs and stop its workers.",
                description: "",
                parameters: &[WORKSPACE_ID],
                request: None,
                success: &[SuccessResponse {
                    status: 204,
                    description: "The workspace is removed",
                    body: Empty,
                }],
                errors: &[INVALID_ID, UNKNOWN_WORKSPACE],
                handler: |method| on(method, workspaces::remove),
            },
        ],
    },
    Route {
        path: "/v1/reload",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Post,
            id: "reload",
            tag: "workspaces",
            right: AccessRight::Control,
            summary: "Read the hook files of all workspaces again, or of one.",
            description: "Events in flight keep the hooks they began with. A file that is broken now keeps its previous rules.",
            parameters: &[ONE_WORKSPACE],
            request: None,
            success: &[ok("The workspaces as they are now", Json(List(&WORKSPACE_VIEW)))],
            errors: &[INVALID_QUERY, UNKNOWN_WORKSPACE],
            handler: |method| on(method, reload::reload),
        }],
    },
    Route {
        path: "/v1/status",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "getStatus",
            tag: "operation",
            right: AccessRight::Read,
            summary: "Show the status of the daemon.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("The status", Json(One(&STATUS)))],
            errors: &[],
            handler: |method| on(method, status::show),
        }],
    },
    Route {
        path: "/v1/stream",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "followStream",
            tag: "operation",
            right: AccessRight::Read,
            summary: "Stream finished invocations and outcomes as server-sent events.",
            description: "Sends `invocation` and `outcome` events, and `dropped` with the number of those that a slow reader missed. Events without matching hooks are not sent.",
            parameters: &[ONE_WORKSPACE, EVENT_KIND, VERDICT],
            request: None,
            success: &[ok("A stream that does not end", Text("text/event-stream"))],
            errors: &[INVALID_QUERY],
            handler: |method| on(method, stream::follow),
        }],
    },
    Route {
        path: "/v1/openapi.json",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "getDescription",
            tag: "operation",
            right: AccessRight::Read,
            summary: "Describe the API as OpenAPI 3.1.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("This document", Json(AnyObject))],
            errors: &[],
            handler: |method| on(method, show_document),
        }],
    },
    Route {
        path: "/metrics",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "getMetrics",
            tag: "operation",
            right: AccessRight::Metrics,
            summary: "Export metrics for Prometheus.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("The metrics in the Prometheus text format", PLAIN_TEXT)],
            errors: &[NO_METRICS],
            handler: |method| on(method, health::metrics),
        }],
    },
    Route {
        path: "/healthz",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "isAlive",
            tag: "operation",
            right: AccessRight::Health,
            summary: "Check that the daemon is alive.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("The daemon is alive", PLAIN_TEXT)],
            errors: &[],
            handler: |method| on(method, health::alive),
        }],
    },
    Route {
        path: "/readyz",
        limit: RequestLimit::Exempt,
        operations: &[Operation {
            method: RouteMethod::Get,
            id: "isReady",
            tag: "operation",
            right: AccessRight::Health,
            summary: "Check that the daemon takes events.",
            description: "",
            parameters: &[],
            request: None,
            success: &[ok("The daemon takes events", PLAIN_TEXT)],
            errors: &[],
            handler: |method| on(method, health::ready),
        }],
    },
];

const fn ok(description: &'static str, body: ResponseContent) -> SuccessResponse {
    SuccessResponse { status: 200, description, body }
}

/// Answers with the document, which is made on first use.
async fn show_document() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| openapi::document(&ROUTES, &COMPONENTS).to_string());
    ([(CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}
