//! Who is told of an event that has ended: the log, the witness, and those who watch. Owns what a witness is given;
//! refuses to keep the run's actor waiting for any of them.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    actor::{RunActor, RunContext},
    directory::RunKey,
    log,
    message::{Notice, RunRef},
};
use crate::{
    model::{Event, Outcome, Redactor},
    registry::Snapshot,
};

/// What there is to tell of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoticeKind {
    /// How hooks fared that its outcome did not wait for.
    Background,
    /// How its hooks fared; it gets no outcome.
    Abandoned,
    /// How its hooks fared, and what it got.
    Outcome,
}

/// An event that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedEvent<'a> {
    pub(super) event: &'a Arc<Event>,
    pub(super) outcome: &'a Outcome,
    /// How long it took.
    pub(super) waited: Duration,
    /// What must not be told about it.
    pub(super) redactor: &'a Redactor,
}

/// Is told of every outcome in the moment it is there. Unlike a subscriber it loses none, so it must not wait: whoever
/// tells it works on other events as well.
pub trait OutcomeObserver: fmt::Debug + Send + Sync {
    /// Takes note of an outcome.
    fn event_finished(&self, finished: FinishedEvent);

    /// Takes note of hooks that ran beside an event, whose outcome did not wait for them: theirs says only how they
    /// fared. Does nothing of itself.
    fn background_hooks_finished(&self, _finished: FinishedEvent) {}

    /// Takes note of an event that was given up before it had an outcome: this one says only how its hooks fared. Does
    /// nothing of itself.
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
}

impl RunActor {
    /// Tells those who want to know, if anyone does.
    pub(super) fn announce(&self, ended: EndedEvent<'_>, kind: NoticeKind) {
        self.context.announce(&self.key, ended, kind);
    }
}

impl RunContext {
    /// Tells of the answer to an event of a run that is over, if anyone wants to know.
    pub(crate) fn tell_halted(&self, key: &RunKey, event: Event, outcome: &Outcome, snapshot: &Snapshot) {
        let ended = EndedEvent {
            event: &Arc::new(event),
            outcome,
            waited: Duration::ZERO,
            redactor: snapshot.redactor(),
        };
        self.announce(key, ended, NoticeKind::Outcome);
    }

    fn announce(&self, key: &RunKey, ended: EndedEvent<'_>, kind: NoticeKind) {
        let EndedEvent { event, outcome, .. } = ended;
        log::invocations(key, ended);
        if kind == NoticeKind::Outcome {
            log::verdict(key, ended);
        }
        let notices = &self.notices;
        let is_watched = notices.receiver_count() > 0;
        if !is_watched && self.observers.is_empty() {
            return;
        }
        let run = Arc::new(RunRef {
            workspace_id: key.workspace.clone(),
            session_id: event.session_id.clone(),
            run_id: event.run_id.clone(),
        });
        // A send fails only if the last watcher has just left.
        for report in outcome.hooks.iter().filter(|_| is_watched) {
            let report = report.clone();
            drop(notices.send(Notice::Invocation { run: Arc::clone(&run), event: event.kind, report }));
        }
        if kind != NoticeKind::Outcome && self.observers.is_empty() {
            return;
        }
        let outcome = Arc::new(outcome.clone());
        let at = SystemTime::now();
        for observer in &self.observers {
            let finished = FinishedEvent {
                run: Arc::clone(&run),
                event: Arc::clone(event),
                outcome: Arc::clone(&outcome),
                at,
                redactor: ended.redactor.clone(),
            };
            match kind {
                NoticeKind::Background => observer.background_hooks_finished(finished),
                NoticeKind::Abandoned => observer.event_abandoned(finished),
                NoticeKind::Outcome => observer.event_finished(finished),
            }
        }
        if kind == NoticeKind::Outcome {
            drop(notices.send(Notice::Outcome { run, outcome }));
        }
    }
}
