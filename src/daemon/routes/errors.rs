//! The errors that operations declare, in groups that several operations share.

use super::operation::ErrorResponse;

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
pub(super) const NO_OUTBOX: &[ErrorResponse] = &[(409, "The daemon keeps its state in memory only")];
pub(super) const RUN_ERRORS: &[ErrorResponse] = &[
    (400, "An ID is invalid"),
    (404, "The run is unknown"),
    (409, "Several workspaces have a run with this ID"),
];
pub(super) const SAME_ROOT: &[ErrorResponse] = &[(409, "The directory belongs to another workspace")];
pub(super) const UNKNOWN_DIALECT_OR_WORKSPACE: &[ErrorResponse] =
    &[(404, "The dialect or the workspace is unknown")];
pub(super) const UNKNOWN_WORKSPACE: &[ErrorResponse] = &[(404, "The workspace is unknown")];
