//! What observers of outcomes implement, and what they are given.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::message::RunRef;
use crate::model::{Event, Outcome, Redactor, Target};

/// What kind of end is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoticeKind {
    /// Background hooks have ended.
    Background,
    /// The event was abandoned and gets no outcome.
    Abandoned,
    /// The event has its outcome.
    Outcome,
}

/// An event that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedEvent<'a> {
    pub(super) event: &'a Arc<Event>,
    pub(super) outcome: &'a Outcome,
    /// From its acceptance to its end.
    pub(super) waited: Duration,
    /// Removes secrets from texts about it.
    pub(super) redactor: &'a Redactor,
}

/// Observes every outcome as soon as it exists. Unlike a subscriber it misses none, so its methods must not block: they
/// are called by the actor of the run, which has other events to handle.
pub trait OutcomeObserver: fmt::Debug + Send + Sync {
    /// Called with every outcome.
    fn event_finished(&self, finished: FinishedEvent);

    /// Called when background hooks of an event have ended; the outcome holds their reports only. Does nothing by default.
    fn background_hooks_finished(&self, _finished: FinishedEvent) {}

    /// Called when an event was abandoned before it had an outcome; this one holds the reports of its hooks only. Does
    /// nothing by default.
    fn event_abandoned(&self, _finished: FinishedEvent) {}
}

/// An event with its outcome.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedEvent {
    /// The run it belongs to.
    pub run: Arc<RunRef>,
    /// The event as the host sent it.
    pub event: Arc<Event>,
    /// The outcome.
    pub outcome: Arc<Outcome>,
    /// When that was, by the machine's clock.
    pub at: SystemTime,
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon writes them down"))]
    pub(crate) redactor: Redactor,
    /// Of an event of a daemon before this one, which is known from its line in the audit alone: what hooks had changed.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon has an audit"))]
    pub(crate) former_changes: Option<Arc<[Target]>>,
}
