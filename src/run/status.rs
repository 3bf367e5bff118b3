//! The status of a run, for operators. Read without asking its actor, apart from its activity.

use std::time::Duration;

use serde::Serialize;

use super::halt::Halt;
use crate::model::{EventKind, HookName, RunId, SessionId, WorkspaceId, milliseconds};

/// The status of a run. Durations are serialised as milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// The workspace, within which run ids are unique.
    pub workspace_id: WorkspaceId,
    /// The run.
    pub run_id: RunId,
    /// Whether it has an actor.
    pub phase: RunPhase,
    /// Why it is halted, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halted: Option<Halt>,
    /// Since its first event that concerned a hook.
    #[serde(rename = "age_ms", serialize_with = "milliseconds")]
    pub age: Duration,
    /// How long no event has been in flight; zero while one is.
    #[serde(rename = "idle_ms", serialize_with = "milliseconds")]
    pub idle: Duration,
    /// How many events concerned a hook so far.
    pub events: u64,
    /// Its activity; `None` if it has no actor, or the actor does not answer in time.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub in_hand: Option<RunActivity>,
}

/// Whether a run has an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunPhase {
    /// It has one: events are in flight, or were recently.
    Active,
    /// It has none, and gets one with its next event.
    Passivated,
}

/// The events of a run that are in flight or pending.
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

/// An event whose hooks run. Background hooks are an entry of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ActiveEvent {
    /// Its kind.
    pub event: EventKind,
    /// How long ago it was accepted.
    #[serde(rename = "since_ms", serialize_with = "milliseconds")]
    pub since: Duration,
    /// The hooks that run or wait for a permit, in plan order.
    pub hooks: Vec<HookName>,
}
