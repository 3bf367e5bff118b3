//! How events end in the reference: with their outcome, cancelled, given up, refused or cut off; and what their callers get.

use hookyard::model::{EventKind, Verdict};

use super::{Model, run::Run};
use crate::{
    observed::{Answer, Answered, Reason, Summary},
    schedule::{Identity, RunName},
};

impl Model<'_> {
    /// An event has its outcome.
    pub(super) fn finish(&mut self, number: usize) {
        let course = &mut self.courses[number];
        course.is_open = false;
        let event = &self.schedule.events[course.event];
        let mut summary = course.summary();
        let callers = std::mem::take(&mut course.callers);
        let holders = if course.detached { 1 } else { callers.len() };
        let Some(run) = self.runs.get_mut(&event.run) else { return };
        run.courses.retain(|known| *known != number);
        if event.kind == EventKind::AgentStopping {
            run.break_loop(&mut summary);
        }
        if event.is_interceptor() && summary.verdict == Verdict::Halt && run.halted.is_none() {
            run.halted = Some((summary.by.clone(), summary.reason.clone()));
        }
        if event.id != Identity::None {
            run.answers.push((course.event, summary.clone()));
        }
        run.ended |= event.ends_run();
        self.release(event.run, holders);
        self.end_if_over(event.run);
        for call in callers {
            self.answer(call, summary.clone());
        }
    }

    /// Ends a run that is over once nothing of it is in hand.
    pub(super) fn end_if_over(&mut self, name: RunName) {
        let over = |run: &Run<'_>| run.ended && run.courses.is_empty() && run.pending.is_empty();
        if self.runs.get(&name).is_some_and(over) {
            self.runs.remove(&name);
        }
    }

    pub(super) fn cancel(&mut self, name: RunName) -> (usize, usize) {
        let Some(run) = self.runs.remove(&name) else { return (0, 0) };
        let mut events = 0;
        for number in run.courses {
            self.drop_jobs(number);
            let course = &mut self.courses[number];
            course.cancel_rest();
            let mut summary = course.summary();
            if course.intercepts {
                summary.verdict = Verdict::Halt;
                summary.by = None;
                summary.reason = Some(Reason::Cancelled);
                summary.patched = None;
            }
            events += 1;
            let callers = std::mem::take(&mut course.callers);
            self.in_flight -= if course.detached { 1 } else { callers.len() };
            for call in callers {
                self.answer(call, summary.clone());
            }
        }
        for request in run.pending {
            events += 1;
            self.in_flight -= 1;
            let summary = self.halted(None, Some(Reason::Cancelled), request.version);
            self.answer(request.call, summary);
        }
        self.grant_places();
        (1, events)
    }

    pub(super) fn give_up(&mut self, call: usize) {
        self.observed.answers.insert(call, Answered { at: self.now, answer: Answer::GivenUp });
        let names: Vec<_> = self.runs.keys().copied().collect();
        for name in names {
            let Some(run) = self.runs.get_mut(&name) else { continue };
            let before = run.pending.len();
            run.pending.retain(|request| request.call != call);
            let mut gone = before - run.pending.len();
            let mut unwanted = Vec::new();
            for number in &run.courses {
                let course = &mut self.courses[*number];
                let before = course.callers.len();
                course.callers.retain(|known| *known != call);
                gone += before - course.callers.len();
                if course.callers.is_empty() && !course.detached {
                    unwanted.push(*number);
                }
            }
            run.courses.retain(|number| !unwanted.contains(number));
            for number in unwanted {
                self.drop_jobs(number);
            }
            self.release(name, gone);
        }
        self.grant_places();
    }

    /// An event has waited too long for its turn.
    pub(super) fn refuse(&mut self, call: usize) {
        let name = self.runs.iter().find(|(_, run)| run.pending.iter().any(|request| request.call == call));
        let Some(name) = name.map(|(name, _)| *name) else { return };
        if let Some(run) = self.runs.get_mut(&name) {
            run.pending.retain(|request| request.call != call);
        }
        self.release(name, 1);
        self.reject(call, "pending deadline");
    }

    /// The shutdown waits no longer.
    pub(super) fn cut_off(&mut self) {
        self.observed.stopped = Some((self.now, false));
        for (_, run) in std::mem::take(&mut self.runs) {
            for number in run.courses {
                self.drop_jobs(number);
                for call in std::mem::take(&mut self.courses[number].callers) {
                    self.reject(call, "interrupted");
                }
            }
            for request in run.pending {
                self.reject(request.call, "interrupted");
            }
        }
        self.in_flight = 0;
    }

    /// Callers of a run hold their permits no longer.
    pub(super) fn release(&mut self, name: RunName, callers: usize) {
        self.in_flight -= callers;
        if let Some(run) = self.runs.get_mut(&name) {
            run.in_hand -= callers;
        }
    }

    pub(super) fn decision(&mut self) -> usize {
        self.decisions += 1;
        self.decisions
    }

    pub(super) fn plain(&mut self, version: u64) -> Summary {
        Summary {
            decision: self.decision(),
            verdict: Verdict::Proceed,
            by: None,
            reason: None,
            patched: None,
            notes: Vec::new(),
            hooks: Vec::new(),
            version,
        }
    }

    pub(super) fn halted(&mut self, by: Option<String>, reason: Option<Reason>, version: u64) -> Summary {
        Summary { verdict: Verdict::Halt, by, reason, ..self.plain(version) }
    }

    pub(super) fn answer(&mut self, call: usize, summary: Summary) {
        let answer = Answer::Outcome(Box::new(summary));
        let former = self.observed.answers.insert(call, Answered { at: self.now, answer });
        assert!(former.is_none(), "the reference answers {call} twice");
    }

    pub(super) fn reject(&mut self, call: usize, why: &str) {
        self.observed.answers.insert(call, Answered { at: self.now, answer: Answer::Error(why.to_owned()) });
    }
}
