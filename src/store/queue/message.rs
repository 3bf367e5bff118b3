//! An event as it is in the queue.

use std::sync::Arc;

use async_nats::jetstream::message::PublishMessage;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::{
    model::{Event, HookName, WorkspaceId},
    store::{DeliveryProgress, OutboxRow, RecordError, encode_event, event_record, record::check_version},
};

/// The version of the format.
const VERSION: u32 = 1;

/// An event on its way to a worker.
#[derive(Debug, Clone)]
pub(crate) struct QueuedEvent {
    pub(crate) workspace: WorkspaceId,
    pub(crate) event: Arc<Event>,
    /// Which time its hooks get it, if nobody has taken it out of the queue yet.
    pub(crate) delivery: u32,
    /// The hooks that have had it already.
    pub(crate) done: Vec<HookName>,
    /// The required hooks that wanted it when it was accepted.
    pub(crate) required: Vec<HookName>,
}

#[derive(Debug, Serialize)]
struct WrittenMessage<'a> {
    v: u32,
    workspace: &'a str,
    delivery: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    done: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'a str>,
    event: &'a RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadMessage<'a> {
    #[serde(rename = "v")]
    _version: u32,
    workspace: String,
    delivery: u32,
    #[serde(default)]
    done: Vec<String>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerReport {
    pub(crate) node: String,
    pub(crate) instance: String,
    pub(crate) version: String,
    /// Its machine and its process; none of a worker of an earlier version.
    #[serde(default)]
    pub(crate) machine: String,
    #[serde(default)]
    pub(crate) pid: u32,
    /// The events that it has.
    pub(crate) under_way: usize,
    /// It takes no further events, and ends.
    #[serde(default)]
    pub(crate) ending: bool,
    /// How long ago it has found that what waited in the queue was lost, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue_lost_ms: Option<u64>,
}

/// What a message is about, as far as it can be read.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MessageSummary {
    pub(crate) workspace: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) run: Option<String>,
}

#[cfg(feature = "cli")]
impl MessageSummary {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let read: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Self {
            workspace: text(&read["workspace"]),
            event: text(&read["event"]["kind"]),
            run: text(&read["event"]["run"]),
        }
    }
}

/// A message that was taken out of the queue so often, as it is put there again, and the kind of its event.
///
/// Returns an error if it cannot be read.
#[cfg(feature = "cli")]
pub(super) fn retried(bytes: &[u8], taken: u32) -> Result<(crate::model::EventKind, Vec<u8>), RecordError> {
    let kind = QueuedEvent::decode(bytes, 0, taken)?.event.kind;
    let read: ReadMessage<'_> = serde_json::from_slice(bytes).map_err(|_| RecordError::Damaged)?;
    let written = WrittenMessage {
        v: VERSION,
        workspace: &read.workspace,
        delivery: read.delivery.saturating_add(taken.max(1)),
        done: read.done.iter().map(String::as_str).collect(),
        required: read.required.iter().map(String::as_str).collect(),
        event: read.event,
    };
    Ok((kind, serde_json::to_vec(&written).expect("texts and JSON")))
}

/// Why an event is a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) reason: &'static str,
    pub(super) error: Option<String>,
    /// How often it was taken out of the queue.
    pub(super) taken: u32,
}

/// The headers of dead letters.
pub(super) const REASON: &str = "Hookyard-Reason";
pub(super) const ERROR: &str = "Hookyard-Error";
pub(super) const TAKEN: &str = "Hookyard-Taken";
pub(super) const WORKER: &str = "Hookyard-Worker";
pub(super) const CUT: &str = "Hookyard-Cut";

/// The longest error that a dead letter has, in bytes.
const LONGEST_ERROR: usize = 1024;

impl Death {
    /// The dead letter: the message as it was, as far as the servers keep so much, and why it is one.
    pub(super) fn message(&self, payload: &[u8], most: usize, worker: &str) -> PublishMessage {
        let kept = payload.get(..most).unwrap_or(payload);
        let message = PublishMessage::build()
            .payload(kept.to_vec().into())
            .header(REASON, self.reason)
            .header(ERROR, header_text(self.error.as_deref().unwrap_or_default()))
            .header(TAKEN, self.taken.to_string())
            .header(WORKER, header_text(worker));
        if kept.len() < payload.len() { message.header(CUT, payload.len().to_string()) } else { message }
    }
}

/// A text as a header can have it.
fn header_text(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_ERROR);
    text[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn texts(names: &[HookName]) -> Vec<&str> {
    names.iter().map(HookName::as_str).collect()
}

impl QueuedEvent {
    /// The message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let event = RawValue::from_string(encode_event(&self.event)).expect("a record is JSON");
        let written = WrittenMessage {
            v: VERSION,
            workspace: self.workspace.as_str(),
            delivery: self.delivery,
            done: texts(&self.done),
            required: texts(&self.required),
            event: &event,
        };
        serde_json::to_vec(&written).expect("texts and JSON")
    }

    /// What the queue recognises a repetition by. An event that its host has given an id has the same on all nodes, as long as its
    /// content is the same too: ids may come from a model.
    pub(super) fn id(&self) -> String {
        let arrival = self.event.arrival.map(|arrival| arrival.decision_id().to_string());
        if self.event.id.is_none()
            && let Some(decision) = arrival
        {
            return decision;
        }
        let mut content = Event::clone(&self.event);
        (content.arrival, content.trace, content.origin) = (None, None, None);
        let mut hash = Sha256::new();
        hash.update(self.workspace.as_str().as_bytes());
        hash.update([0]);
        hash.update(encode_event(&content).as_bytes());
        format!("{:x}", hash.finalize())
    }

    /// Reads a message that is taken out of the queue for the time `taken`, as a row with this id.
    ///
    /// Returns an error if it cannot be read.
    pub(super) fn decode(bytes: &[u8], id: u64, taken: u32) -> Result<OutboxRow, RecordError> {
        let text = std::str::from_utf8(bytes).map_err(|_| RecordError::Damaged)?;
        check_version(text, VERSION)?;
        let read: ReadMessage<'_> = serde_json::from_str(text).map_err(|_| RecordError::Damaged)?;
        let names = |names: Vec<String>| names.into_iter().map(HookName::new).collect::<Result<Vec<_>, _>>();
        let damaged = |_| RecordError::Damaged;
        let progress = DeliveryProgress {
            // The next one counts itself.
            deliveries: read.delivery.saturating_add(taken).saturating_sub(2),
            done: names(read.done).map_err(damaged)?,
            required: names(read.required).map_err(damaged)?,
            ..DeliveryProgress::default()
        };
        Ok(OutboxRow {
            id,
            workspace: WorkspaceId::new(read.workspace).map_err(|_| RecordError::Damaged)?,
            event: Arc::new(event_record::decode(read.event.get())?),
            // It is in the message already.
            text: "".into(),
            progress,
        })
    }
}
