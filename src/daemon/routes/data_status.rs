//! The parts of the status about the agents that reach the daemon, and about what it writes: the state of runs, the last
//! good rules, and the audit.

use std::{
    sync::atomic::Ordering,
    time::{Duration, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    KeptFile,
    daemon::{
        agent_activity::LastAgentEvent,
        audit::Audit,
        schema::{Component, boolean, object, optional_string, string, unsigned, unsigned_as},
        ship::{Shipping, SpoolCounts},
        state::Observers,
    },
    run::OutboxCounts,
    store::StoreStatus,
};

/// An agent whose events have come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentStatus {
    /// The dialect of its events.
    pub agent: String,
    /// How many there were.
    pub events: u64,
    /// When the last one came, in seconds since 1970.
    pub last_at: u64,
    /// The kind of the last one.
    pub last_event: String,
}

pub(super) static AGENT_STATUS: Component = Component::built("AgentStatus", || {
    object(
        "An agent whose events have come.",
        [
            ("agent", string("The dialect of its events.")),
            ("events", unsigned("How many there were.")),
            ("last_at", unsigned_as("int64", "When the last one came, in seconds since 1970.")),
            ("last_event", string("The kind of the last one.")),
        ],
        &[],
    )
});

impl From<LastAgentEvent> for AgentStatus {
    fn from(last: LastAgentEvent) -> Self {
        Self {
            agent: last.dialect.to_string(),
            events: last.events,
            last_at: last.since_epoch.as_secs(),
            last_event: last.kind.to_string(),
        }
    }
}

/// The schema of a list of agents.
pub(super) fn agents_schema() -> Value {
    json!({
        "type": "array",
        "items": AGENT_STATUS.reference(),
        "description": "The agents whose events have come since the start, each with its last one.",
    })
}

/// The store of the state of runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DataStatus {
    /// Its directory.
    pub directory: String,
    /// The number of runs it had when the daemon started.
    pub restored: usize,
    /// Whether the file of a former daemon was gone when this one started, so that halts in it are forgotten.
    #[serde(default)]
    pub former_gone: bool,
    /// The number of runs whose latest state is not on disk yet.
    pub unsaved: usize,
    /// The number of halted runs among them.
    pub unsaved_halts: usize,
    /// Why the last write failed, if it did.
    pub error: Option<String>,
    /// How many events wait in the outbox for their delivery, or are being delivered.
    #[serde(default)]
    pub undelivered: usize,
    /// The age of the oldest of them, in milliseconds.
    #[serde(default)]
    pub oldest_undelivered_ms: Option<u64>,
    /// How many events of the outbox are not tried any more.
    #[serde(default)]
    pub dead_letters: usize,
}

pub(super) static DATA_STATUS: Component = Component::built("DataStatus", || {
    let mut oldest = unsigned_as("int64", "The age of the oldest of them, in milliseconds.");
    oldest["type"] = json!(["integer", "null"]);
    object(
        "The store of the state of runs.",
        [
            ("directory", string("Its directory.")),
            ("restored", unsigned("The number of runs it had when the daemon started.")),
            (
                "former_gone",
                boolean(
                    "Whether the file of a former daemon was gone when this one started, so that halts in it are forgotten.",
                ),
            ),
            ("unsaved", unsigned("The number of runs whose latest state is not on disk yet.")),
            ("unsaved_halts", unsigned("The number of halted runs among them.")),
            ("error", optional_string("Why the last write failed, if it did.")),
            (
                "undelivered",
                unsigned("How many events wait in the outbox for their delivery, or are being delivered."),
            ),
            ("oldest_undelivered_ms", oldest),
            ("dead_letters", unsigned("How many events of the outbox are not tried any more.")),
        ],
        &["error", "oldest_undelivered_ms"],
    )
});

/// Its place in the status.
pub(super) fn nullable_data_status() -> Value {
    let data = DATA_STATUS.described("Where the state of runs is kept, unless it is kept in memory only.");
    json!({ "oneOf": [data, { "type": "null" }] })
}

impl DataStatus {
    pub(super) fn of(store: StoreStatus, outbox: OutboxCounts) -> Self {
        let StoreStatus { directory, restored, former_gone, unsaved, unsaved_halts, error } = store;
        let OutboxCounts { under_way, waiting, dead, oldest } = outbox;
        let in_milliseconds = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Self {
            directory: directory.display().to_string(),
            restored,
            former_gone,
            unsaved,
            unsaved_halts,
            error,
            undelivered: under_way + waiting,
            oldest_undelivered_ms: oldest.map(in_milliseconds),
            dead_letters: dead,
        }
    }
}

/// A broken file, and what becomes of the rules that it last had.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LastGoodFile {
    /// The file.
    pub file: String,
    /// `keep`: the rules stay in force; `deny`: their events are blocked.
    pub policy: String,
    /// The SHA-256 of the content with those rules; none if the file always had some mistake.
    pub sha256: Option<String>,
    /// Since when the file had that content, in seconds since 1970.
    pub since: Option<u64>,
}

/// The list of them.
pub(super) fn last_good_schema() -> Value {
    let mut since = unsigned_as("int64", "Since when the file had that content, in seconds since 1970.");
    since["type"] = json!(["integer", "null"]);
    let file = object(
        "A broken file, and what becomes of the rules that it last had.",
        [
            ("file", string("The file.")),
            ("policy", string("`keep`: the rules stay in force; `deny`: their events are blocked.")),
            ("sha256", optional_string("The SHA-256 of the content with those rules.")),
            ("since", since),
        ],
        &["sha256", "since"],
    );
    let description = "The broken files whose last good rules are known, with what becomes of these.";
    json!({ "type": "array", "items": file, "description": description })
}

impl From<&KeptFile> for LastGoodFile {
    fn from(kept: &KeptFile) -> Self {
        let since = kept.version.as_ref().map(|version| version.since.duration_since(UNIX_EPOCH));
        Self {
            file: kept.file.display().to_string(),
            policy: kept.policy.as_str().to_owned(),
            sha256: kept.version.as_ref().map(|version| version.sha256.to_string()),
            since: since.map(|since| since.unwrap_or_default().as_secs()),
        }
    }
}

/// The counters of the audit since the daemon started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditStatus {
    /// Where its lines go: a file, `stdout`, or only to the server of `ship.url`.
    pub to: String,
    /// The number of lines written.
    pub written: u64,
    /// The number of lines lost because the queue was full.
    pub dropped_queue: u64,
    /// The number of lines lost because they could not be written.
    pub dropped_write: u64,
    /// What is shipped of them, if anything is.
    #[serde(default)]
    pub shipping: Option<ShippingStatus>,
}

/// The audit lines, and lines with the state of the daemon, that are sent to a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShippingStatus {
    /// The server.
    pub to: String,
    /// The number of lines that it has taken since the start.
    pub shipped: u64,
    /// The number of lines that wait.
    pub waiting: u64,
    /// Their size, in bytes.
    pub waiting_bytes: u64,
    /// The number of lines lost since the start.
    pub dropped: u64,
    /// Why the last request failed, if it did.
    pub error: Option<String>,
}

pub(super) static AUDIT_STATUS: Component = Component::built("AuditStatus", || {
    let shipping = SHIPPING_STATUS.described("What is shipped of them, if anything is.");
    object(
        "The counters of the audit since the daemon started.",
        [
            ("to", string("Where its lines go: a file, `stdout`, or only to the server of `ship.url`.")),
            ("written", unsigned_as("int64", "The number of lines written.")),
            ("dropped_queue", unsigned_as("int64", "The number of lines lost because the queue was full.")),
            (
                "dropped_write",
                unsigned_as("int64", "The number of lines lost because they could not be written."),
            ),
            ("shipping", json!({ "oneOf": [shipping, { "type": "null" }] })),
        ],
        &["shipping"],
    )
});

pub(super) static SHIPPING_STATUS: Component = Component::built("ShippingStatus", || {
    object(
        "The audit lines, and lines with the state of the daemon, that are sent to a server.",
        [
            ("to", string("The server.")),
            ("shipped", unsigned_as("int64", "The number of lines that it has taken since the start.")),
            ("waiting", unsigned_as("int64", "The number of lines that wait.")),
            ("waiting_bytes", unsigned_as("int64", "Their size, in bytes.")),
            ("dropped", unsigned_as("int64", "The number of lines lost, those before the start among them.")),
            ("error", optional_string("Why the last request failed, if it did.")),
        ],
        &["error"],
    )
});

impl ShippingStatus {
    fn of(shipping: &Shipping) -> Self {
        let SpoolCounts { lines, bytes, shipped, dropped } = shipping.spool.counts();
        Self {
            to: shipping.server(),
            shipped,
            waiting: lines,
            waiting_bytes: bytes,
            dropped,
            error: shipping.error(),
        }
    }
}

impl AuditStatus {
    pub(super) fn of(audit: &Audit, shipping: Option<&Shipping>) -> Self {
        let counters = audit.counters();
        Self {
            to: audit.destination().to_owned(),
            written: counters.written.load(Ordering::Relaxed),
            dropped_queue: counters.dropped_queue.load(Ordering::Relaxed),
            dropped_write: counters.dropped_write.load(Ordering::Relaxed),
            shipping: shipping.map(ShippingStatus::of),
        }
    }
}

impl Observers {
    /// The counters of the audit, if it is on.
    pub(super) fn audit_status(&self) -> Option<AuditStatus> {
        self.audit.as_deref().map(|audit| AuditStatus::of(audit, self.shipping.as_deref()))
    }
}
