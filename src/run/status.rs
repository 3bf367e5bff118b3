//! What operators see of a run. Owns the words; refuses to ask the run's actor.

use std::time::Duration;

use serde::Serialize;

use super::record::Halt;
use crate::model::{EventKind, HookName, RunId, SessionId, WorkspaceId, milliseconds};

/// How a run is doing. Durations are written as milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// The workspace, within which run ids are unique.
    pub workspace_id: WorkspaceId,
    /// The run.
    pub run_id: RunId,
    /// Whether it has an actor.
    pub phase: RunPhase,
    /// Why it is over for its interceptors, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halted: Option<Halt>,
    /// Since its first event that concerned a hook.
    #[serde(rename = "age_ms", serialize_with = "milliseconds")]
    pub age: Duration,
    /// For how long no event has been in its hands; zero while one is.
    #[serde(rename = "idle_ms", serialize_with = "milliseconds")]
    pub idle: Duration,
    /// How many events concerned a hook so far.
    pub events: u64,
    /// What its actor says; `None` if there is no actor, or none that answers in time.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub in_hand: Option<RunActivity>,
}

/// Whether a run has an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// It has: work in flight, or work not long ago.
    Active,
    /// It gave its actor up, and gets one at its next event.
    Passivated,
}

/// What a run's actor has in hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunActivity {
    /// The session of the first event that the actor saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The events whose hooks run, oldest first.
    pub under_way: Vec<ActiveEvent>,
    /// How many interceptor events wait for their turn.
    pub pending: usize,
}

/// An event whose hooks run. Hooks that nobody waits for are an entry of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ActiveEvent {
    /// Its kind.
    pub event: EventKind,
    /// How long ago it was accepted.
    #[serde(rename = "since_ms", serialize_with = "milliseconds")]
    pub since: Duration,
    /// The hooks that run now or wait for a place to run, in plan order.
    pub hooks: Vec<HookName>,
}
