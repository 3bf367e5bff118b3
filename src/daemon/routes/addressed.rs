//! What a request says of its event beside the body: its run and the id of the event, for balancers that read no bodies, and
//! its workspace, for agents, whose events name none.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

use crate::{
    dialect,
    model::{DialectName, Event, EventError, EventId, PartialEvent, WorkspaceId},
};

/// The run of the event, percent-encoded; of an agent's event, its session will do.
const RUN: HeaderName = HeaderName::from_static("x-hookyard-run");

/// The id of the event, percent-encoded.
const EVENT_ID: HeaderName = HeaderName::from_static("x-hookyard-event-id");

/// The workspace of the event, by its id, percent-encoded.
const WORKSPACE: HeaderName = HeaderName::from_static("x-hookyard-workspace");

/// The most that an error repeats of a header, in bytes.
const LONGEST_ECHO: usize = 256;

/// What is encoded: everything but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text percent-encoded for a path, a query or a header.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Says of a request which run its event has.
pub(super) fn name_run(headers: &mut HeaderMap, run: &str) {
    // Of ASCII letters, digits and signs only.
    if let Ok(value) = HeaderValue::try_from(percent_encoded(run)) {
        headers.append(RUN, value);
    }
}

/// Compares an event with what its request says of it. One that names no id or no workspace gets that of its request.
///
/// Returns an error if they disagree: a balancer has taken the event for one of another run.
pub(super) fn agree(headers: &HeaderMap, event: &mut Event) -> Result<(), EventError> {
    for said in headers.get_all(RUN) {
        let run = decoded(said);
        if run != event.run_id.as_str() && run != event.session_id.as_str() {
            let found = event.run_id.to_string();
            return Err(EventError::OtherRun { said: echo(&run), found });
        }
    }
    for said in headers.get_all(EVENT_ID) {
        let id = decoded(said);
        match &event.id {
            Some(own) if own.as_str() != id => {
                return Err(EventError::OtherId { said: echo(&id), found: own.to_string() });
            }
            Some(_) => {}
            None => {
                let id = EventId::new(&*id);
                event.id =
                    Some(id.map_err(|source| EventError::Id { field: "x-hookyard-event-id", source })?);
            }
        }
    }
    for said in headers.get_all(WORKSPACE) {
        let id = decoded(said);
        match &event.workspace_id {
            Some(own) if own.as_str() != id => {
                return Err(EventError::OtherWorkspace { said: echo(&id), found: own.to_string() });
            }
            Some(_) => {}
            None => {
                let id = WorkspaceId::new(&*id);
                event.workspace_id =
                    Some(id.map_err(|source| EventError::Id { field: "x-hookyard-workspace", source })?);
            }
        }
    }
    Ok(())
}

/// Whether a request says what a node of a cluster must know, after [`agree`].
///
/// Returns an error that says what is missing.
pub(super) fn suffice(headers: &HeaderMap, event: &Event) -> Result<(), EventError> {
    if !headers.contains_key(RUN) {
        return Err(EventError::NoRun);
    }
    if event.workspace_id.is_none() {
        return Err(EventError::NoWorkspaceId);
    }
    Ok(())
}

/// The workspace that a request names; none if it names several.
pub(in crate::daemon) fn workspace(headers: &HeaderMap) -> Option<WorkspaceId> {
    let mut named = headers.get_all(WORKSPACE).iter();
    let first = named.next()?;
    let agree = named.all(|other| other == first);
    agree.then(|| WorkspaceId::new(&*decoded(first)).ok()).flatten()
}

/// What is known of an event that cannot be handled, by its beginning and by the workspace that its request names.
pub(in crate::daemon) fn partial_event(
    dialect: DialectName,
    workspace_id: Option<WorkspaceId>,
    beginning: &[u8],
) -> PartialEvent {
    PartialEvent { workspace_id, ..dialect::read_partial(dialect, beginning) }
}

/// What an error repeats of a header.
fn echo(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_ECHO)].to_owned()
}

/// What a header says. Bytes that are no UTF-8 equal no id.
fn decoded(value: &HeaderValue) -> Cow<'_, str> {
    percent_decode(value.as_bytes()).decode_utf8_lossy()
}
