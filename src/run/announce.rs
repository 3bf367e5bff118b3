//! Tells of ended events: the log, the outcome observers and the subscribers. None of them may block: they are called on
//! the path of other events.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    context::RunContext,
    log,
    message::{Notice, RunRef},
    notify::{EndedEvent, FinishedEvent, NoticeKind},
};
use crate::{
    model::{Event, Outcome, RunKey},
    registry::Snapshot,
};

impl RunContext {
    /// Tells of the answer to an event of a halted run.
    pub(crate) fn tell_without_run(
        &self,
        key: &RunKey,
        event: Event,
        outcome: &Outcome,
        snapshot: &Snapshot,
    ) {
        let ended = EndedEvent {
            event: &Arc::new(event),
            outcome,
            waited: Duration::ZERO,
            redactor: snapshot.redactor(),
        };
        self.announce(key, ended, NoticeKind::Outcome);
    }

    /// Tells the log, the observers and the subscribers.
    pub(super) fn announce(&self, key: &RunKey, ended: EndedEvent<'_>, kind: NoticeKind) {
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
                former_changes: None,
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
