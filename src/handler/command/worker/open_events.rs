//! The events that were sent to one worker and are not answered yet, and when the first of them is late. Pure: the
//! event loop passes the time in.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    handle::{WorkerAnswer, WorkerPermit},
    limits::after,
    pace::Pace,
    protocol::EventFlow,
};

/// An event that was sent to the worker and is not answered yet.
#[derive(Debug)]
pub(super) struct OpenEvent {
    /// How long the worker may take for it.
    pub(super) allowance: Duration,
    /// `None` once nobody waits any more. The worker has to answer even then, and keeps the permit until it has.
    pub(super) reply: Option<oneshot::Sender<WorkerAnswer>>,
    pub(super) permit: WorkerPermit,
}

impl OpenEvent {
    /// Frees the permit, then passes the answer to who waits for it, who so finds the permit free.
    pub(super) fn answer(self, answer: WorkerAnswer) {
        drop(self.permit);
        if let Some(reply) = self.reply {
            // Fails only if nobody waits any more.
            drop(reply.send(answer));
        }
    }
}

/// The open events of a worker.
#[derive(Debug)]
pub(super) enum OpenEvents {
    /// The worker is at all of them, and each has its deadline.
    Together(HashMap<u64, (Instant, OpenEvent)>),
    /// The worker is at the first one since `begun`; the time of the others has not begun.
    InOrder { events: VecDeque<(u64, OpenEvent)>, begun: Instant, pace: Pace },
}

/// Why an answer is to no event.
pub(super) enum Unexpected {
    /// No event of this id is open.
    Unknown,
    /// Another event comes first.
    OutOfOrder,
}

impl OpenEvents {
    pub(super) fn of(flow: EventFlow, now: Instant) -> Self {
        match flow {
            EventFlow::Single | EventFlow::Multiplex(_) => Self::Together(HashMap::new()),
            EventFlow::Pipeline => {
                Self::InOrder { events: VecDeque::new(), begun: now, pace: Pace::unknown() }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Together(events) => events.is_empty(),
            Self::InOrder { events, .. } => events.is_empty(),
        }
    }

    pub(super) fn insert(&mut self, id: u64, event: OpenEvent, now: Instant) {
        match self {
            Self::Together(events) => {
                events.insert(id, (after(now, event.allowance), event));
            }
            Self::InOrder { events, begun, .. } => {
                if events.is_empty() {
                    *begun = now;
                }
                events.push_back((id, event));
            }
        }
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut OpenEvent> {
        match self {
            Self::Together(events) => events.get_mut(&id).map(|(_, event)| event),
            Self::InOrder { events, .. } => {
                events.iter_mut().find(|(known, _)| *known == id).map(|(_, event)| event)
            }
        }
    }

    /// Takes out the event that was answered. The worker is at the next one from now on.
    pub(super) fn answered(&mut self, id: u64, now: Instant) -> Result<OpenEvent, Unexpected> {
        match self {
            Self::Together(events) => events.remove(&id).map(|(_, event)| event).ok_or(Unexpected::Unknown),
            Self::InOrder { events, begun, pace } => match events.front() {
                Some((first, _)) if *first == id => {
                    pace.took(now.saturating_duration_since(*begun));
                    *begun = now;
                    events.pop_front().map(|(_, event)| event).ok_or(Unexpected::Unknown)
                }
                _ if events.iter().any(|(known, _)| *known == id) => Err(Unexpected::OutOfOrder),
                _ => Err(Unexpected::Unknown),
            },
        }
    }

    /// How many events may be with the worker at once, if its pace decides that.
    pub(super) fn window(&self) -> Option<usize> {
        match self {
            Self::Together(_) => None,
            Self::InOrder { pace, .. } => Some(pace.window()),
        }
    }

    /// When the first event is late.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        match self {
            Self::Together(events) => events.values().map(|(deadline, _)| *deadline).min(),
            Self::InOrder { events, begun, .. } => {
                events.front().map(|(_, event)| after(*begun, event.allowance))
            }
        }
    }

    /// Whether all events but the first one are not begun yet.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self, Self::InOrder { .. })
    }

    /// Takes out the first event, with whether it is late.
    pub(super) fn take_first(&mut self, now: Instant) -> Option<(bool, OpenEvent)> {
        match self {
            Self::Together(events) => {
                let id = *events.keys().next()?;
                events.remove(&id).map(|(deadline, event)| (deadline <= now, event))
            }
            Self::InOrder { events, begun, .. } => {
                events.pop_front().map(|(_, event)| (after(*begun, event.allowance) <= now, event))
            }
        }
    }

    /// Drops the events unanswered, which tells who waits for them that they were not begun.
    pub(super) fn abandon(&mut self) {
        match self {
            Self::Together(events) => events.clear(),
            Self::InOrder { events, .. } => events.clear(),
        }
    }
}
