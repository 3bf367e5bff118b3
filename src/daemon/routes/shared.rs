//! What several operations share: the parameters and the errors that they declare, each of them once, and how they wait for what
//! takes a while.

use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::operation::{ErrorResponse, Parameter};
use crate::{daemon::error::ApiError, model::DialectName};

/// Does what takes a while, or asks the disk, on a thread that no event waits for. It ends without a result only while the runtime
/// shuts down.
pub(super) async fn off_the_way<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work).await.map_err(|_| ApiError::shutting_down())
}

/// How much a list has at most by default, as the descriptions of the parameters say.
const DEFAULT_LIMIT: usize = 100;

/// The largest `limit` of a list of runs.
pub(super) const MAX_RUNS: usize = 10_000;

/// How much a list may have at most: what is asked for, of 1 to `max`.
pub(super) fn list_limit(asked: Option<usize>, max: usize) -> Result<usize, ApiError> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if (1..=max).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("the limit {limit} is out of range");
    Err(ApiError::bad_request("bad_query", message, format!("use 1 to {max}")))
}

/// The pattern of ids, as the schema of events has it.
const ID_PATTERN: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]{1,256}$";

pub(super) const AS: Parameter = Parameter::query(
    "as",
    "`body` answers like an http hook of the dialect; `process` answers with the output and the exit code of a command hook",
    || json!({ "type": "string", "enum": ["body", "process"] }),
);
pub(super) const DIALECT: Parameter = Parameter::path("dialect", "The format of the event", dialect);
pub(super) const EVENT_KIND: Parameter = Parameter::query("event", "Only events of this kind", any_string);
pub(super) const ONE_WORKSPACE: Parameter = Parameter::query("workspace_id", "Only this workspace", id);
pub(super) const RECORDED_DIALECT: Parameter =
    Parameter::query("dialect", "Only events in this format", dialect);
pub(super) const RECORDED_SESSION: Parameter =
    Parameter::query("session_id", "Only events of this session", any_string);
pub(super) const RUN_ID: Parameter = Parameter::path("id", "The ID of the run", id);
pub(super) const RUN_LIMIT: Parameter = Parameter::query(
    "limit",
    "The maximum number of runs, 100 by default",
    || json!({ "type": "integer", "minimum": 1, "maximum": MAX_RUNS }),
);
pub(super) const VERDICT: Parameter =
    Parameter::query("verdict", "Only what ends with this verdict", any_string);
pub(super) const WORKSPACE_ID: Parameter =
    Parameter::path("id", "The ID of the workspace, as events name it", id);
pub(super) const WORKSPACE_OF_RUN: Parameter =
    Parameter::query("workspace_id", "The workspace of the run, where several have a run with this ID", id);

pub(super) const BODY_ERRORS: &[ErrorResponse] =
    &[(408, "The body took too long"), (413, "The body is too large"), (415, "The body is not JSON")];
pub(super) const EVENT_ERRORS: &[ErrorResponse] = &[
    (400, "The event is invalid"),
    (408, "The body took too long"),
    (413, "The event is too large"),
    (415, "The body is not JSON"),
    (500, "The event was lost"),
    (508, "The request comes from one of hookyard's own hooks"),
];
pub(super) const HANDOVER_ERRORS: &[ErrorResponse] = &[
    (400, "The body is invalid"),
    (409, "Another daemon takes over already, or that socket cannot be used"),
];
pub(super) const INVALID_BODY: &[ErrorResponse] = &[(400, "The body is invalid")];
pub(super) const INVALID_ID: &[ErrorResponse] = &[(400, "The ID is invalid")];
pub(super) const INVALID_QUERY: &[ErrorResponse] = &[(400, "The query is invalid")];
pub(super) const INVALID_REGISTRATION: &[ErrorResponse] =
    &[(400, "The ID, the body or the directory is invalid")];
pub(super) const NO_METRICS: &[ErrorResponse] = &[(404, "The embedding program collects the metrics itself")];
pub(super) const NO_HISTORY: &[ErrorResponse] =
    &[(409, "The daemon keeps no events, as it has no TCP address")];
pub(super) const NO_PAGE: &[ErrorResponse] = &[(409, "The daemon has no TCP address")];
pub(super) const NO_PAGE_FILE: &[ErrorResponse] = &[(404, "The page has no such file")];
pub(super) const NO_SESSION: &[ErrorResponse] = &[(404, "The request has no session of the page")];
pub(super) const NO_OUTBOX: &[ErrorResponse] = &[(409, "The daemon keeps its state in memory only")];
pub(super) const RUN_ERRORS: &[ErrorResponse] = &[
    (400, "An ID is invalid"),
    (404, "The run is unknown"),
    (409, "Several workspaces have a run with this ID"),
];
pub(super) const MANAGED: &[ErrorResponse] =
    &[(409, "The daemon is a node of a cluster, whose workspaces are those of its settings")];
pub(super) const INVALID_REVIEW: &[ErrorResponse] = &[(400, "The ID, the query or the body is invalid")];
pub(super) const NO_TRUST: &[ErrorResponse] = &[(
    409,
    "The hooks are not what was shown, the record of trust cannot be used, or the daemon is a node of a cluster",
)];
pub(super) const NO_RULE_TEXT: &[ErrorResponse] = &[
    (400, "The ID or the query is invalid"),
    (409, "The hook is no rule, or its file is not as it was loaded"),
];
pub(super) const NO_TRIAL: &[ErrorResponse] =
    &[(409, "Another rule is being tried, or the daemon keeps no events, as it has no TCP address")];
pub(super) const NOT_REGISTERED: &[ErrorResponse] =
    &[(409, "The directory belongs to another workspace, or the daemon is a node of a cluster")];
pub(super) const UNKNOWN_DIALECT_OR_WORKSPACE: &[ErrorResponse] =
    &[(404, "The dialect or the workspace is unknown")];
pub(super) const SIGN_IN_ERRORS: &[ErrorResponse] = &[
    (400, "The body is invalid, or the request has no `Origin`"),
    (500, "The machine gives no random numbers"),
];
pub(super) const UNKNOWN_DECISION: &[ErrorResponse] =
    &[(400, "The ID is invalid"), (404, "The decision is not kept")];
pub(super) const UNKNOWN_RULE: &[ErrorResponse] = &[(404, "The workspace or the hook is unknown")];
pub(super) const UNREADABLE_RULE: &[ErrorResponse] =
    &[(400, "The ID or the body is invalid, the handler is of another type, or another hook has the name")];
pub(super) const UNKNOWN_TRUST: &[ErrorResponse] =
    &[(404, "The workspace is unknown, or no trusted hook has the name")];
pub(super) const UNKNOWN_WORKSPACE: &[ErrorResponse] = &[(404, "The workspace is unknown")];

/// The schema of a string that is not restricted.
fn any_string() -> Value {
    json!({ "type": "string" })
}

/// The schema of the id of a run or a workspace.
fn id() -> Value {
    json!({ "type": "string", "pattern": ID_PATTERN })
}

/// The schema of the name of a dialect.
pub(super) fn dialect() -> Value {
    let names: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
    json!({ "type": "string", "enum": names })
}
