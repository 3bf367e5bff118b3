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
    message::{Notice, RunPlace},
};
use crate::{
    model::{Event, Outcome, Redaction},
    registry::Snapshot,
};

/// What there is to tell of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// How hooks fared that its outcome did not wait for.
    Beside,
    /// How its hooks fared; it gets no outcome.
    Unanswered,
    /// How its hooks fared, and what it got.
    Outcome,
}

/// An event that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended<'a> {
    pub(super) event: &'a Arc<Event>,
    pub(super) outcome: &'a Outcome,
    /// How long it took.
    pub(super) waited: Duration,
    /// What must not be told about it.
    pub(super) secrets: Option<&'a Arc<Redaction>>,
}

/// Is told of every outcome in the moment it is there. Unlike a subscriber it loses none, so it must not wait: whoever
/// tells it works on other events as well.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Takes note of an outcome.
    fn finished(&self, finished: Finished);

    /// Takes note of hooks that ran beside an event, whose outcome did not wait for them: theirs says only how they
    /// fared. Does nothing of itself.
    fn finished_beside(&self, _finished: Finished) {}

    /// Takes note of an event that was given up before it had an outcome: this one says only how its hooks fared. Does
    /// nothing of itself.
    fn given_up(&self, _finished: Finished) {}
}

/// An event with its outcome.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The run it belongs to.
    pub run: Arc<RunPlace>,
    /// The event as the host sent it.
    pub event: Arc<Event>,
    /// The outcome.
    pub outcome: Arc<Outcome>,
    /// When that was, by the machine's clock.
    pub at: SystemTime,
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon writes them down"))]
    pub(crate) secrets: Option<Arc<Redaction>>,
}

impl RunActor {
    /// Tells those who want to know, if anyone does.
    pub(super) fn announce(&self, ended: Ended<'_>, news: News) {
        self.context.announce(&self.key, ended, news);
    }
}

impl RunContext {
    /// Tells of the answer to an event of a run that is over, if anyone wants to know.
    pub(crate) fn tell_halted(&self, key: &RunKey, event: Event, outcome: &Outcome, snapshot: &Snapshot) {
        let ended =
            Ended { event: &Arc::new(event), outcome, waited: Duration::ZERO, secrets: snapshot.secrets() };
        self.announce(key, ended, News::Outcome);
    }

    fn announce(&self, key: &RunKey, ended: Ended<'_>, news: News) {
        let Ended { event, outcome, .. } = ended;
        log::invocations(key, ended);
        if news == News::Outcome {
            log::verdict(key, ended);
        }
        let notices = &self.notices;
        let is_watched = notices.receiver_count() > 0;
        if !is_watched && self.witnesses.is_empty() {
            return;
        }
        let run = Arc::new(RunPlace {
            workspace_id: key.workspace.clone(),
            session_id: event.session_id.clone(),
            run_id: event.run_id.clone(),
        });
        // A send fails only if the last watcher has just left.
        for report in outcome.hooks.iter().filter(|_| is_watched) {
            let report = report.clone();
            drop(notices.send(Notice::Invocation { run: Arc::clone(&run), event: event.kind, report }));
        }
        if news != News::Outcome && self.witnesses.is_empty() {
            return;
        }
        let outcome = Arc::new(outcome.clone());
        let at = SystemTime::now();
        for witness in &self.witnesses {
            let finished = Finished {
                run: Arc::clone(&run),
                event: Arc::clone(event),
                outcome: Arc::clone(&outcome),
                at,
                secrets: ended.secrets.cloned(),
            };
            match news {
                News::Beside => witness.finished_beside(finished),
                News::Unanswered => witness.given_up(finished),
                News::Outcome => witness.finished(finished),
            }
        }
        if news == News::Outcome {
            drop(notices.send(Notice::Outcome { run, outcome }));
        }
    }
}
