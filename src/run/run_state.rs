//! What a run keeps from one event to the next, also while it has no actor.

use std::collections::BTreeMap;

use super::remembered::{LastAnswer, RememberedAnswers};
use crate::{
    model::{Event, Frequency, Hook, HookName, KeyCounts, Note, NoteKind, Outcome, Verdict},
    registry::Plan,
    store::{StoredRun, TakenTurn},
};

/// The state of a run between its events. There may be a million, so it is kept small.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    pub(super) answers: RememberedAnswers,
    /// What hooks have done in it; none in most runs.
    hooks: Option<Box<HookTraces>>,
    stops_blocked: u8,
    /// Whether what the store keeps of it has changed since the last call of [`RunState::take_change`].
    is_changed: bool,
}

/// What hooks have done in a run.
#[derive(Debug, Default, Clone)]
struct HookTraces {
    /// The hooks that run once per run and have run, in order.
    had_turn: Vec<TakenTurn>,
    /// What the rules of hooks have counted.
    counts: BTreeMap<HookName, KeyCounts>,
}

impl RunState {
    /// Removes the hooks that run once per run and have run, but for those that have not ended for the same event and are
    /// tried again. Those that are left count as run from now on.
    pub(super) fn take_turns(&mut self, event: &Event, plan: Plan, again: &[HookName]) -> Plan {
        // After a reload, another hook may have the name of one that has run.
        let plan =
            plan.filter(event, |hook| !runs_once(hook) || !self.had_turn(hook) || again.contains(&hook.name));
        for step in plan.steps().iter().filter(|step| runs_once(&step.hook)) {
            self.note_turn(turn_of(&step.hook));
        }
        plan
    }

    fn had_turn(&self, hook: &Hook) -> bool {
        self.hooks.as_ref().is_some_and(|hooks| hooks.had_turn.binary_search(&turn_of(hook)).is_ok())
    }

    fn note_turn(&mut self, turn: TakenTurn) {
        let had_turn = &mut self.hooks.get_or_insert_default().had_turn;
        if let Err(at) = had_turn.binary_search(&turn) {
            had_turn.insert(at, turn);
            self.is_changed = true;
        }
    }

    /// Has a hook judge with what it has counted.
    pub(super) fn with_counts<T>(&mut self, hook: &HookName, judge: impl FnOnce(&mut KeyCounts) -> T) -> T {
        let Some(counts) = self.hooks.as_mut().and_then(|hooks| hooks.counts.get_mut(hook)) else {
            let mut counts = KeyCounts::default();
            let judged = judge(&mut counts);
            // Most rules count nothing.
            if !counts.is_empty() {
                self.hooks.get_or_insert_default().counts.insert(hook.clone(), counts);
                self.is_changed = true;
            }
            return judged;
        };
        let before = counts.clone();
        let judged = judge(counts);
        self.is_changed |= *counts != before;
        judged
    }

    /// The agent has worked since hooks kept it from stopping.
    pub(super) fn stops_begin(&mut self) {
        self.is_changed |= self.stops_blocked != 0;
        self.stops_blocked = 0;
    }

    /// Lets an agent stop that hooks have kept from stopping more often in a row than this. A hook that is
    /// never content would keep it at work, and the model paid, for ever.
    pub(super) fn break_loop(&mut self, outcome: &mut Outcome, most: u8) {
        if outcome.verdict != Verdict::Block {
            return self.stops_begin();
        }
        self.is_changed = true;
        if self.stops_blocked < most {
            self.stops_blocked += 1;
            return;
        }
        self.stops_blocked = 0;
        outcome.verdict = Verdict::Proceed;
        let reason = outcome.reason.take();
        if let Some(hook) = outcome.by.take() {
            let wanted = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            let text = format!(
                "hooks kept the agent from stopping {most} times in a row, so it stops now; `{hook}` \
                 would keep it at work{wanted}"
            );
            outcome.notes.push(Note { hook, kind: NoteKind::LoopBroken, text: text.into() });
        }
    }

    /// Whether what the store keeps of it has changed since the last call.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// What the store keeps of it, without the halt.
    pub(super) fn to_stored(&self) -> StoredRun {
        let HookTraces { had_turn, counts } = self.hooks.as_deref().cloned().unwrap_or_default();
        StoredRun { halt: None, had_turn, stops_blocked: self.stops_blocked, counts }
    }

    /// The state of a run that the store had.
    #[cfg(feature = "store")]
    pub(super) fn of_stored(stored: StoredRun) -> Self {
        let mut state = Self::default();
        state.adopt(stored);
        Self { is_changed: false, ..state }
    }

    /// Adds what another daemon knows of the run.
    #[cfg(feature = "store")]
    pub(super) fn adopt(&mut self, stored: StoredRun) {
        stored.had_turn.into_iter().for_each(|turn| self.note_turn(turn));
        self.stops_blocked = self.stops_blocked.max(stored.stops_blocked);
        for (hook, counts) in stored.counts {
            let own = self.hooks.get_or_insert_default().counts.entry(hook).or_default();
            counts.iter().for_each(|(key, count)| own.raise(key, count));
        }
    }

    /// Forgets everything: another daemon goes on with the run.
    #[cfg(feature = "cluster")]
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Forgets all but the latest outcomes and shrinks to fit.
    pub(super) fn shrink(&mut self, answers: usize) {
        self.answers.shrink(answers);
        if let Some(hooks) = &mut self.hooks {
            hooks.had_turn.shrink_to_fit();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.has_only_answers()
    }

    /// The outcome of its last event, if there is nothing else.
    ///
    /// Returns the whole state if there is.
    pub(super) fn into_last_answer(mut self) -> Result<LastAnswer, Self> {
        if !self.has_only_answers() {
            return Err(self);
        }
        let answers = std::mem::take(&mut self.answers);
        answers.into_last().map_err(|answers| Self { answers, ..self })
    }

    fn has_only_answers(&self) -> bool {
        self.hooks.is_none() && self.stops_blocked == 0 && !self.is_changed
    }
}

impl From<LastAnswer> for RunState {
    fn from(last: LastAnswer) -> Self {
        Self { answers: last.into(), ..Self::default() }
    }
}

/// The hooks of a plan that run once per run.
pub(super) fn once_hooks(plan: &Plan) -> Vec<HookName> {
    plan.steps().iter().filter(|step| runs_once(&step.hook)).map(|step| step.hook.name.clone()).collect()
}

fn turn_of(hook: &Hook) -> TakenTurn {
    TakenTurn { hook: hook.name.clone(), definition: hook.execution.definition.clone() }
}

fn runs_once(hook: &Hook) -> bool {
    hook.execution.frequency == Frequency::OncePerRun
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventKind, HookName};

    #[test]
    fn the_ninth_block_in_a_row_lets_the_agent_stop() {
        let mut run_state = RunState::default();
        let mut stop = |verdict| {
            let mut outcome = Outcome::proceed(crate::run::next_decision_id(), EventKind::AgentStopping, 1);
            outcome.verdict = verdict;
            outcome.by = HookName::new("guard").ok();
            run_state.break_loop(&mut outcome, 8);
            (outcome.verdict, outcome.notes.iter().any(|note| note.kind == NoteKind::LoopBroken))
        };
        for _ in 0..8 {
            assert_eq!(stop(Verdict::Block), (Verdict::Block, false));
        }
        assert_eq!(stop(Verdict::Block), (Verdict::Proceed, true));
        assert_eq!(stop(Verdict::Block), (Verdict::Block, false));
        assert_eq!(stop(Verdict::Proceed), (Verdict::Proceed, false));
        for _ in 0..8 {
            assert_eq!(stop(Verdict::Block), (Verdict::Block, false));
        }
    }
}
