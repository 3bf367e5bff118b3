//! The last event of each agent, for the status: which agents reach the daemon. And the events that hosts send, for who
//! records them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::broadcast::{self, error::RecvError};

use crate::model::{DialectName, Event, EventKind, SessionId};

/// How many bits of a record are the kind of the event.
const KIND_BITS: u32 = 8;

/// The last event of each dialect, and how many there were.
#[derive(Debug, Default)]
pub(super) struct AgentActivity {
    dialects: [DialectActivity; DialectName::ALL.len()],
}

#[derive(Debug, Default)]
struct DialectActivity {
    events: AtomicU64,
    /// The time in milliseconds since 1970, and the kind; one value, so that both are of one event.
    last: AtomicU64,
}

/// The last event of one dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastAgentEvent {
    pub(super) dialect: DialectName,
    pub(super) kind: EventKind,
    pub(super) since_epoch: Duration,
    pub(super) events: u64,
}

impl AgentActivity {
    /// Notes an event.
    pub(super) fn note(&self, dialect: DialectName, kind: EventKind, at: SystemTime) {
        let known = &self.dialects[dialect as usize];
        let since_epoch = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX >> KIND_BITS);
        known.last.store(millis << KIND_BITS | kind as u64, Ordering::Relaxed);
        known.events.fetch_add(1, Ordering::Relaxed);
    }

    /// How many events there were.
    #[cfg(feature = "cli")]
    pub(super) fn events(&self) -> u64 {
        self.dialects.iter().map(|known| known.events.load(Ordering::Relaxed)).sum()
    }

    /// The last events, in the order of the dialects.
    pub(super) fn last_events(&self) -> Vec<LastAgentEvent> {
        let known = DialectName::ALL.iter().zip(&self.dialects);
        let seen = known.filter_map(|(dialect, known)| {
            let events = known.events.load(Ordering::Relaxed);
            let last = known.last.load(Ordering::Relaxed);
            let kind = usize::try_from(last & ((1 << KIND_BITS) - 1)).ok()?;
            Some(LastAgentEvent {
                dialect: *dialect,
                kind: *EventKind::ALL.get(kind)?,
                since_epoch: Duration::from_millis(last >> KIND_BITS),
                events,
            })
        });
        seen.filter(|last| last.events > 0).collect()
    }
}

/// How many events a slow recorder may be behind.
const MOST_WAITING: usize = 64;

/// An event as its host sent it.
#[derive(Debug)]
pub(super) struct SentEvent {
    pub(super) dialect: DialectName,
    pub(super) session: SessionId,
    pub(super) bytes: Box<[u8]>,
}

/// The events that hosts send, for those who record them.
#[derive(Debug)]
pub(super) struct SentEvents {
    sender: broadcast::Sender<Arc<SentEvent>>,
    /// How many record, for each event to read.
    recorders: AtomicUsize,
}

impl Default for SentEvents {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(MOST_WAITING), recorders: AtomicUsize::new(0) }
    }
}

impl SentEvents {
    /// Tells those who record of an event.
    pub(super) fn note(&self, dialect: DialectName, event: &Event, bytes: &[u8]) {
        if self.recorders.load(Ordering::Relaxed) > 0 {
            let sent = SentEvent { dialect, session: event.session_id.clone(), bytes: bytes.into() };
            // An error means that nobody records any more.
            _ = self.sender.send(Arc::new(sent));
        }
    }

    /// Records all events from now on.
    pub(super) fn record(self: &Arc<Self>) -> EventRecorder {
        self.recorders.fetch_add(1, Ordering::Relaxed);
        EventRecorder { receiver: self.sender.subscribe(), events: Arc::clone(self) }
    }
}

/// Somebody who records events.
#[derive(Debug)]
pub(super) struct EventRecorder {
    receiver: broadcast::Receiver<Arc<SentEvent>>,
    events: Arc<SentEvents>,
}

impl EventRecorder {
    /// The next event; an error with the number of those that were lost because this recorder is slow. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Arc<SentEvent>, u64> {
        match self.receiver.recv().await {
            Ok(sent) => Ok(sent),
            Err(RecvError::Lagged(lost)) => Err(lost),
            // It keeps the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for EventRecorder {
    fn drop(&mut self) {
        self.events.recorders.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_each_agent_is_known() {
        let activity = AgentActivity::default();
        assert_eq!(activity.last_events(), []);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        activity.note(DialectName::Gemini, EventKind::SessionStarted, at(5));
        activity.note(DialectName::Claude, EventKind::BeforeToolDispatch, at(7));
        activity.note(DialectName::Gemini, EventKind::HostEvent, at(9));
        let last = activity.last_events();
        let shown: Vec<_> = last
            .iter()
            .map(|last| (last.dialect, last.kind, last.since_epoch.as_secs(), last.events))
            .collect();
        let expected = [
            (DialectName::Claude, EventKind::BeforeToolDispatch, 7, 1),
            (DialectName::Gemini, EventKind::HostEvent, 9, 2),
        ];
        assert_eq!(shown, expected);
    }
}
