//! Tickets: what the courses of one event hold until the outbox knows how its hooks have ended; and how much it may hold.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::timeout,
};

use crate::{
    model::{Ended, HookName, HookReport, Redactor},
    telemetry::DeliveryEnded,
};

/// How long a row may take to be on disk before its event is refused.
pub(super) const LONGEST_WRITE: Duration = Duration::from_secs(2);

/// How the hooks of one delivery have ended.
#[derive(Debug, Default)]
pub(crate) struct HookResults {
    pub(super) done: Vec<HookName>,
    /// Those that did not run, because nobody has agreed to them as they are.
    pub(super) untrusted: Vec<HookName>,
    /// Those that may succeed another time.
    pub(super) failed: Vec<HookName>,
    /// Whether one of those failed for another reason than that there was no place for it.
    pub(super) has_run_in_vain: bool,
    /// Why the last of them failed.
    pub(super) error: Option<Arc<str>>,
    /// Why nobody wants the event to be delivered any more.
    pub(super) taken_back: Option<TakenBack>,
    /// Whether hooks were stopped by the end of their run's actor.
    pub(super) is_interrupted: bool,
}

/// Why an event is not to be delivered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenBack {
    /// Its run was cancelled.
    Cancelled,
    /// It repeats another event.
    Repeated,
    /// It was not accepted.
    Refused,
}

/// What learns how a delivery has ended.
pub(super) trait TicketOwner: fmt::Debug + Send + Sync {
    /// A delivery has ended.
    fn concluded(&self, id: u64, results: HookResults);

    /// Hooks that run once in a run begin for an event.
    fn begun(&self, id: u64, hooks: Vec<HookName>);

    /// The hooks that failed when an event was delivered the last time, and those that run once in a run and have begun
    /// for it but not ended.
    fn unfinished(&self, id: u64) -> Vec<HookName>;
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

impl HookResults {
    pub(super) fn ended(&self) -> DeliveryEnded {
        if let Some(taken_back) = self.taken_back {
            match taken_back {
                TakenBack::Cancelled => DeliveryEnded::Cancelled,
                TakenBack::Repeated => DeliveryEnded::Repeated,
                TakenBack::Refused => DeliveryEnded::Refused,
            }
        } else if !self.failed.is_empty() {
            DeliveryEnded::Failed
        } else if self.is_interrupted {
            DeliveryEnded::Interrupted
        } else if !self.untrusted.is_empty() {
            DeliveryEnded::Untrusted
        } else {
            DeliveryEnded::Delivered
        }
    }
}

impl HookResults {
    /// Whether the only reason for another delivery is that there was no place for hooks.
    pub(super) fn found_no_place(&self) -> bool {
        !self.failed.is_empty() && !self.has_run_in_vain && !self.is_interrupted
    }
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

/// RAII guard: what one course of an event says about its hooks. Dropped in silence by an event on its way, it says that the
/// event was refused; dropped in silence by a course, that the course was interrupted.
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
            if is_answered || has_ended_for_good(report.ended) {
                results.done.push(report.hook.clone());
                continue;
            }
            let why = report.error.as_deref().unwrap_or("it gave no reason");
            let text = format!("hook `{}` {}: {why}", report.hook, report.ended.phrase());
            let text: Arc<str> = redactor.text(&text).into();
            if report.ended == Ended::Untrusted {
                results.untrusted.push(report.hook.clone());
                results.error.get_or_insert(text);
            } else {
                results.has_run_in_vain |= report.ended != Ended::Shed;
                results.failed.push(report.hook.clone());
                results.error = Some(text);
            }
        }
    }

    /// A required hook that has not seen the event is not in force: that counts as its failure.
    pub(crate) fn miss(&self, hook: HookName, why: &str) {
        let mut results = self.ticket.results.lock();
        results.has_run_in_vain = true;
        results.failed.push(hook);
        results.error = Some(why.into());
    }

    /// The run of the event is cancelled.
    pub(crate) fn cancel(self) {
        self.take_back(TakenBack::Cancelled);
    }

    /// The event repeats another one, which is delivered.
    pub(crate) fn repeats(self) {
        self.take_back(TakenBack::Repeated);
    }

    fn take_back(mut self, why: TakenBack) {
        self.has_reported = true;
        self.ticket.results.lock().taken_back = Some(why);
    }

    /// These hooks, which run once in a run, begin for the event.
    pub(crate) fn begun(&self, hooks: Vec<HookName>) {
        if !hooks.is_empty() {
            self.ticket.owner.begun(self.ticket.id, hooks);
        }
    }

    /// The hooks that have not ended for the event: they may run again even if they run once in a run.
    pub(crate) fn unfinished(&self) -> Vec<HookName> {
        self.ticket.owner.unfinished(self.ticket.id)
    }
}

/// How much an outbox may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboxLimits {
    /// The bytes of all events that are to be delivered.
    pub(crate) size: usize,
    /// The number of dead letters.
    pub(crate) dead: usize,
    /// Their bytes.
    pub(crate) dead_size: usize,
}

/// Why an event is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxRefusal {
    /// As many bytes wait to be delivered as may.
    Full,
    /// It has more bytes than may ever wait.
    TooLarge { size: usize, limit: usize },
}

/// How much there is in an outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OutboxCounts {
    pub(crate) under_way: usize,
    pub(crate) waiting: usize,
    pub(crate) dead: usize,
    /// The age of the oldest event that is to be delivered.
    pub(crate) oldest: Option<Duration>,
}

/// Notified when a row is on disk.
pub(super) type Stored = oneshot::Receiver<Result<(), Arc<str>>>;

/// An event that was accepted.
#[derive(Debug)]
pub(crate) struct AcceptedEvent {
    pub(crate) ticket: CourseTicket,
    /// Notified when it is on disk, for an event that nobody waits for.
    pub(super) stored: Option<Stored>,
}

impl AcceptedEvent {
    /// Waits until the event is on disk, if that matters. Returns its ticket.
    ///
    /// Returns an error if it cannot be written; then it is forgotten.
    pub(crate) async fn stored(self) -> Result<CourseTicket, Arc<str>> {
        let Some(stored) = self.stored else { return Ok(self.ticket) };
        written(stored).await.map(|()| self.ticket)
    }
}

/// Waits until a row is on disk.
///
/// Returns an error if it cannot be written.
pub(super) async fn written(stored: Stored) -> Result<(), Arc<str>> {
    match timeout(LONGEST_WRITE, stored).await {
        Ok(Ok(written)) => written,
        Ok(Err(_)) => Err("the store is closed".into()),
        Err(_) => Err("the disk takes too long".into()),
    }
}

impl Drop for CourseTicket {
    fn drop(&mut self) {
        if !self.has_reported {
            let mut results = self.ticket.results.lock();
            if self.is_sent {
                results.is_interrupted = true;
            } else {
                results.taken_back = Some(TakenBack::Refused);
            }
        }
    }
}

/// Whether a hook that ended so would end so again. An answer that cannot be read, or more output than is allowed, stays
/// so.
fn has_ended_for_good(ended: Ended) -> bool {
    match ended {
        Ended::Completed | Ended::InvalidOutput | Ended::OutputTooLarge | Ended::Cancelled => true,
        Ended::Failed | Ended::TimedOut | Ended::SpawnFailed | Ended::Shed | Ended::Untrusted => false,
    }
}
