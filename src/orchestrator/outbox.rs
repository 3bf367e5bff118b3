//! What operators see of the outbox and do with it.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::time::Instant;

use super::handle::Orchestrator;
use crate::{
    model::{Event, EventId, EventKind, RunId, SessionId, Timestamp, WorkspaceId},
    run::{OutboxCounts, OutboxEntry, OutboxPhase},
};

/// An event in the outbox, without its payload.
#[derive(Debug, Serialize)]
pub(crate) struct OutboxEvent {
    id: u64,
    /// `under_way`, `waiting` or `dead`.
    state: &'static str,
    workspace_id: WorkspaceId,
    session_id: SessionId,
    run_id: RunId,
    event: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_id: Option<String>,
    accepted_at: Option<String>,
    #[serde(rename = "age_ms", serialize_with = "crate::model::milliseconds")]
    age: Duration,
    /// How often it has been given to its hooks.
    deliveries: u32,
    /// How long until it is tried again.
    #[serde(rename = "next_ms", skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Why its hooks failed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Why it is a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_since: Option<String>,
}

/// Which events of the outbox are meant.
#[derive(Debug, Clone)]
pub(crate) enum OutboxSelection {
    /// Those with these ids.
    Ids(Vec<u64>),
    /// All dead letters.
    DeadLetters,
}

fn timestamp(time: SystemTime) -> String {
    Timestamp::of(time).to_string()
}

impl OutboxEvent {
    fn of(id: u64, entry: &OutboxEntry, now: Instant) -> Self {
        let event = &entry.event;
        let next = match entry.phase {
            OutboxPhase::Waiting(at) => Some(at.saturating_duration_since(now)),
            OutboxPhase::UnderWay | OutboxPhase::Dead => None,
        };
        Self {
            id,
            state: entry.phase.as_str(),
            workspace_id: entry.workspace.clone(),
            session_id: event.session_id.clone(),
            run_id: event.run_id.clone(),
            event: event.kind,
            event_id: event.id.clone(),
            decision_id: event.arrival.map(|arrival| arrival.decision_id().to_string()),
            accepted_at: event.arrival.map(|arrival| timestamp(arrival.time())),
            age: entry.age(),
            deliveries: entry.progress.deliveries,
            next: next.map(|next| u64::try_from(next.as_millis()).unwrap_or(u64::MAX)),
            error: entry.progress.error.as_deref().map(str::to_owned),
            reason: entry.progress.dead.map(|dead| dead.reason.as_str()),
            dead_since: entry.progress.dead.map(|dead| timestamp(dead.at)),
        }
    }
}

impl Orchestrator {
    /// The events of the outbox in the order in which they were accepted, up to `most`, and how many more there are.
    /// `state` limits them to one state. Nothing without a store.
    pub(crate) fn outbox_events(
        &self,
        state: Option<&str>,
        most: usize,
    ) -> Option<(Vec<OutboxEvent>, usize)> {
        let outbox = self.0.context.outbox.load_full()?;
        let wanted = |entry: &OutboxEntry| state.is_none_or(|state| state == entry.phase.as_str());
        let (found, left_out) = outbox.list(most, wanted);
        let now = Instant::now();
        Some((found.iter().map(|(id, entry)| OutboxEvent::of(*id, entry, now)).collect(), left_out))
    }

    /// How much there is in the outbox; nothing without a store.
    pub(crate) fn outbox_counts(&self) -> OutboxCounts {
        self.0.context.outbox.load_full().map(|outbox| outbox.counts()).unwrap_or_default()
    }

    /// Has events of the outbox tried again. Returns the ids of those that were found, and nothing without a store.
    pub(crate) fn retry_outbox(&self, selection: &OutboxSelection) -> Option<Vec<u64>> {
        let outbox = self.0.context.outbox.load_full()?;
        Some(match selection {
            OutboxSelection::Ids(ids) => outbox.retry(ids),
            OutboxSelection::DeadLetters => outbox.retry(&outbox.dead_letters()),
        })
    }

    /// Removes events from the outbox that are not under way. Returns the ids of those that were found, and nothing without
    /// a store.
    pub(crate) fn drop_from_outbox(&self, selection: &OutboxSelection) -> Option<Vec<u64>> {
        let outbox = self.0.context.outbox.load_full()?;
        Some(match selection {
            OutboxSelection::Ids(ids) => outbox.discard(ids),
            OutboxSelection::DeadLetters => outbox.discard(&outbox.dead_letters()),
        })
    }

    /// The workspaces of events that are to be delivered, each with one of its events, as far as they are not
    /// registered.
    pub(crate) fn workspaces_missing_for_outbox(&self) -> Vec<(WorkspaceId, Event)> {
        let Some(outbox) = self.0.context.outbox.load_full() else { return Vec::new() };
        let registry = self.0.registry.load();
        let missing = outbox.missing_workspaces().into_iter();
        let missing = missing.filter(|(id, _)| registry.find(Some(id)).is_none());
        missing.map(|(id, event)| (id, Event::clone(&event))).collect()
    }
}
