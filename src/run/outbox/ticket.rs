//! Tickets: what the courses of one event hold until the outbox knows how its hooks have ended.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::model::{Ended, HookName, HookReport, Redactor};

/// How the hooks of one delivery have ended.
#[derive(Debug, Default)]
pub(crate) struct HookResults {
    pub(super) done: Vec<HookName>,
    /// Those that may succeed another time.
    pub(super) failed: Vec<HookName>,
    /// Why the last of them failed.
    pub(super) error: Option<Arc<str>>,
    /// Whether nobody wants the event to be delivered any more.
    pub(super) is_cancelled: bool,
    /// Whether hooks were stopped by the end of their run's actor.
    pub(super) is_interrupted: bool,
}

/// What learns how a delivery has ended.
pub(super) trait TicketOwner: fmt::Debug + Send + Sync {
    /// A delivery has ended.
    fn concluded(&self, id: u64, results: HookResults);

    /// The hooks that failed when an event was delivered the last time.
    fn failed_before(&self, id: u64) -> Vec<HookName>;
}

/// One delivery of an event. When the last course that holds it has ended, the outbox learns what became of it.
#[derive(Debug)]
pub(super) struct DeliveryTicket {
    owner: Arc<dyn TicketOwner>,
    id: u64,
    results: Mutex<HookResults>,
    /// The permit of a delivery after the first.
    _place: Option<OwnedSemaphorePermit>,
}

impl DeliveryTicket {
    pub(super) fn new(owner: Arc<dyn TicketOwner>, id: u64, place: Option<OwnedSemaphorePermit>) -> Self {
        Self { owner, id, results: Mutex::default(), _place: place }
    }
}

impl Drop for DeliveryTicket {
    fn drop(&mut self) {
        self.owner.concluded(self.id, std::mem::take(self.results.get_mut()));
    }
}

/// RAII guard: what one course of an event says about its hooks. Dropped in silence by an event on its way, it cancels the
/// delivery; dropped in silence by a course, it says that the course was interrupted.
#[derive(Debug)]
pub(crate) struct CourseTicket {
    ticket: Arc<DeliveryTicket>,
    is_sent: bool,
    has_reported: bool,
}

impl CourseTicket {
    pub(super) fn new(ticket: DeliveryTicket) -> Self {
        Self { ticket: Arc::new(ticket), is_sent: false, has_reported: false }
    }

    /// The event is handed to the actor of its run.
    #[must_use]
    pub(crate) fn sent(mut self) -> Self {
        self.is_sent = true;
        self
    }

    /// A ticket for another course of the same event.
    pub(crate) fn for_course(&self) -> Self {
        Self { ticket: Arc::clone(&self.ticket), is_sent: true, has_reported: false }
    }

    /// The hooks of the course have ended. Failures that the host heard of are its own concern.
    pub(crate) fn report(mut self, hooks: &[HookReport], redactor: &Redactor, is_answered: bool) {
        self.has_reported = true;
        let mut results = self.ticket.results.lock();
        for report in hooks {
            if is_answered || !is_worth_a_try(report.ended) {
                results.done.push(report.hook.clone());
                continue;
            }
            results.failed.push(report.hook.clone());
            let why = report.error.as_deref().unwrap_or("it gave no reason");
            let text = format!("hook `{}` {}: {why}", report.hook, report.ended.phrase());
            results.error = Some(redactor.text(&text).into());
        }
    }

    /// The event is not to be delivered again.
    pub(crate) fn cancel(mut self) {
        self.has_reported = true;
        self.ticket.results.lock().is_cancelled = true;
    }

    /// The hooks that failed the last time: they may run again even if they run once in a run.
    pub(crate) fn failed_before(&self) -> Vec<HookName> {
        self.ticket.owner.failed_before(self.ticket.id)
    }
}

impl Drop for CourseTicket {
    fn drop(&mut self) {
        if !self.has_reported {
            let mut results = self.ticket.results.lock();
            if self.is_sent {
                results.is_interrupted = true;
            } else {
                results.is_cancelled = true;
            }
        }
    }
}

/// Whether a hook that ended so may succeed when it is asked again. An answer that cannot be read, or more output than
/// is allowed, stays so; trust is a matter of a person.
fn is_worth_a_try(ended: Ended) -> bool {
    match ended {
        Ended::Failed | Ended::TimedOut | Ended::SpawnFailed | Ended::Shed => true,
        Ended::Completed
        | Ended::InvalidOutput
        | Ended::OutputTooLarge
        | Ended::Cancelled
        | Ended::Untrusted => false,
    }
}
