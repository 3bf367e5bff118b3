//! What a request says of its event beside the body, for balancers that read no bodies: its run, and the id of the event.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

use crate::model::{Event, EventError, EventId};

/// The run of the event, percent-encoded; of an agent's event, its session will do.
const RUN: HeaderName = HeaderName::from_static("x-hookyard-run");

/// The id of the event, percent-encoded.
const EVENT_ID: HeaderName = HeaderName::from_static("x-hookyard-event-id");

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

/// Compares an event with what its request says of it. One that has no id gets that of its request.
///
/// Returns an error if they disagree: a balancer has taken the event for one of another run.
pub(super) fn agree(headers: &HeaderMap, event: &mut Event) -> Result<(), EventError> {
    for said in headers.get_all(RUN) {
        let run = decoded(said);
        if run != event.run_id.as_str() && run != event.session_id.as_str() {
            let found = event.run_id.to_string();
            return Err(EventError::OtherRun { said: run.into_owned(), found });
        }
    }
    for said in headers.get_all(EVENT_ID) {
        let id = decoded(said);
        match &event.id {
            Some(own) if own.as_str() != id => {
                return Err(EventError::OtherId { said: id.into_owned(), found: own.to_string() });
            }
            Some(_) => {}
            None => {
                let id = EventId::new(&*id);
                event.id =
                    Some(id.map_err(|source| EventError::Id { field: "x-hookyard-event-id", source })?);
            }
        }
    }
    Ok(())
}

/// What a header says. Bytes that are no UTF-8 equal no id.
fn decoded(value: &HeaderValue) -> Cow<'_, str> {
    percent_decode(value.as_bytes()).decode_utf8_lossy()
}
