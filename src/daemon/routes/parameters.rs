//! The parameters of the API, each declared once.

use serde_json::{Value, json};

use super::{operation::Parameter, runs::MAX_LIMIT};
use crate::model::DialectName;

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
pub(super) const RUN_ID: Parameter = Parameter::path("id", "The ID of the run", id);
pub(super) const RUN_LIMIT: Parameter = Parameter::query(
    "limit",
    "The maximum number of runs, 100 by default",
    || json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT }),
);
pub(super) const VERDICT: Parameter =
    Parameter::query("verdict", "Only what ends with this verdict", any_string);
pub(super) const WORKSPACE_ID: Parameter =
    Parameter::path("id", "The ID of the workspace, as events name it", id);
pub(super) const WORKSPACE_OF_RUN: Parameter =
    Parameter::query("workspace_id", "The workspace of the run, where several have a run with this ID", id);

/// The schema of a string that is not restricted.
fn any_string() -> Value {
    json!({ "type": "string" })
}

/// The schema of the id of a run or a workspace.
fn id() -> Value {
    json!({ "type": "string", "pattern": ID_PATTERN })
}

/// The schema of the name of a dialect.
fn dialect() -> Value {
    let names: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
    json!({ "type": "string", "enum": names })
}
