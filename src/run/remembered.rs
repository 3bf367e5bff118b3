//! The outcomes that a run remembers for events that are sent again. There may be millions, so most are kept small.

use std::{collections::VecDeque, sync::Arc};

use super::{
    answer_budget::{AnswerBudget, AnswerLimits, AnswerShare},
    idempotency::IdempotencyKey,
    plain_outcome::PlainOutcome,
};
use crate::model::Outcome;

/// The latest outcomes of one run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RememberedAnswers {
    answers: VecDeque<(IdempotencyKey, RememberedAnswer)>,
    /// What they take of the budget, once there has been one.
    share: Option<AnswerShare>,
}

/// One more word would cost 16 bytes for each answer.
const _: () = assert!(size_of::<(IdempotencyKey, RememberedAnswer)>() <= 80);

/// The only outcome that a run remembers.
#[derive(Debug)]
pub(super) struct LastAnswer {
    answer: (IdempotencyKey, RememberedAnswer),
    share: AnswerShare,
}

impl RememberedAnswers {
    /// The outcome of the same event.
    pub(super) fn get(&self, key: IdempotencyKey) -> Option<Outcome> {
        self.answers.iter().rev().find(|(known, _)| known.is_same(key)).map(|(_, answer)| answer.outcome())
    }

    /// Whether an earlier event had the same event id and another payload.
    pub(super) fn reuses_id(&self, key: IdempotencyKey) -> bool {
        self.answers.iter().any(|(known, _)| known.reuses_id(key))
    }

    /// Adds an outcome and forgets the oldest beyond the limits, and those that the budget has no room for.
    pub(super) fn remember(&mut self, key: IdempotencyKey, outcome: &Outcome, limits: &AnswerLimits) {
        let budget = &limits.budget;
        let answer = RememberedAnswer::of(outcome);
        let bytes = answer.bytes();
        self.keep(limits.per_run - 1);
        while !self.share(budget).grow(bytes) {
            if !self.forget_oldest() {
                return budget.note_room(false);
            }
        }
        budget.note_room(true);
        if self.answers.is_empty() {
            // Many runs have one outcome and no more.
            self.answers.reserve_exact(1);
        }
        self.answers.push_back((key, answer));
    }

    /// Forgets all but the latest outcomes and shrinks to fit.
    pub(super) fn shrink(&mut self, most: usize) {
        self.keep(most);
        self.answers.shrink_to_fit();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// How many bytes they count for.
    pub(super) fn bytes(&self) -> usize {
        self.share.as_ref().map_or(0, AnswerShare::bytes)
    }

    /// The outcome, if it is the only one.
    ///
    /// Returns them all if there are others, or none.
    pub(super) fn into_last(mut self) -> Result<LastAnswer, Self> {
        if self.answers.len() != 1 {
            return Err(self);
        }
        match (self.answers.pop_front(), self.share.take()) {
            (Some(answer), Some(share)) => Ok(LastAnswer { answer, share }),
            _ => Err(self),
        }
    }

    fn keep(&mut self, most: usize) {
        while self.answers.len() > most {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, oldest)) = self.answers.pop_front() else { return false };
        self.share.iter_mut().for_each(|share| share.shrink(oldest.bytes()));
        true
    }

    fn share(&mut self, budget: &Arc<AnswerBudget>) -> &mut AnswerShare {
        self.share.get_or_insert_with(|| AnswerShare::none_of(budget))
    }
}

impl LastAnswer {
    /// How many bytes it counts for.
    pub(super) fn bytes(&self) -> usize {
        self.share.bytes()
    }
}

impl From<LastAnswer> for RememberedAnswers {
    fn from(LastAnswer { answer, share }: LastAnswer) -> Self {
        Self { answers: [answer].into(), share: Some(share) }
    }
}

/// An outcome as it is remembered.
#[derive(Debug)]
enum RememberedAnswer {
    /// Hooks had nothing to say or to change.
    Plain(PlainOutcome),
    Whole(Box<Outcome>),
}

impl RememberedAnswer {
    fn of(outcome: &Outcome) -> Self {
        PlainOutcome::of(outcome).map_or_else(|| Self::Whole(Box::new(outcome.clone())), Self::Plain)
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Plain(plain) => plain.outcome(),
            Self::Whole(outcome) => Outcome::clone(outcome),
        }
    }

    /// About how much memory it takes. What it shares with others counts here too.
    fn bytes(&self) -> usize {
        let own = size_of::<(IdempotencyKey, Self)>();
        own + match self {
            Self::Plain(plain) => plain.heap_bytes(),
            Self::Whole(outcome) => whole_bytes(outcome),
        }
    }
}

fn whole_bytes(outcome: &Outcome) -> usize {
    let of_text = |text: &Option<Arc<str>>| text.as_deref().map_or(0, str::len);
    let notes = outcome.notes.iter().map(|note| size_of_val(note) + note.text.len());
    let patches = outcome.patched.iter().map(|(_, value)| size_of_val(value) + value.as_str().len());
    let native =
        outcome.native.iter().map(|entry| size_of_val(entry) + entry.0.len() + entry.1.as_str().len());
    let hooks = outcome.hooks.iter().map(|report| {
        let warnings = report.warnings.iter().map(|text| size_of_val(text) + text.len());
        let values =
            report.values.iter().flat_map(|values| values.iter()).map(|(_, value)| value.as_str().len());
        size_of_val(report) + of_text(&report.error) + warnings.sum::<usize>() + values.sum::<usize>()
    });
    let lists = notes.sum::<usize>() + patches.sum::<usize>() + native.sum::<usize>() + hooks.sum::<usize>();
    size_of_val(outcome) + of_text(&outcome.reason) + lists
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroUsize, time::Duration};

    use proptest::prelude::*;

    use super::*;
    use crate::{
        model::{
            ContentHash, DecisionId, Ended, Event, EventKind, FailureMode, HandlerKind, HookName, HookReport,
            Json, Note, NoteKind, RunId, SessionId, Target, TokenUsage, ToolCallId, TrustState, Verdict,
        },
        run::next_decision_id,
    };

    const PER_RUN: NonZeroUsize = NonZeroUsize::new(8).unwrap();

    fn key(call: &str) -> IdempotencyKey {
        let (session, run) = (SessionId::new("session").unwrap(), RunId::new("run").unwrap());
        let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
        event.tool_call_id = Some(ToolCallId::new(call).unwrap());
        IdempotencyKey::of(&event).unwrap()
    }

    fn name(text: &str) -> HookName {
        HookName::new(text).unwrap()
    }

    /// Whether all these bits are set.
    fn has(parts: u8, bits: &[u8]) -> bool {
        bits.iter().all(|bit| parts >> bit & 1 == 1)
    }

    /// A report with some of what a report may have.
    fn report() -> impl Strategy<Value = HookReport> {
        let duration = prop_oneof![0..2_000_000_u64, 4_294_967_290..4_294_967_300_u64];
        (duration, 0..3_000_u64, 0..64_u8).prop_map(|(duration, queued, parts)| {
            let mut report = HookReport::new(name("guard"), HandlerKind::Command, Ended::TimedOut);
            report.duration = Duration::from_nanos(duration);
            report.queued = Duration::from_millis(queued);
            report.verdict = if has(parts, &[0]) { Verdict::Ask } else { Verdict::Proceed };
            // Before and after the first moment that is remembered.
            let start = tokio::time::Instant::now() + Duration::from_nanos(duration);
            report.started =
                has(parts, &[1]).then(|| start.checked_sub(Duration::from_secs(1)).unwrap().into_std());
            report.failure_mode = has(parts, &[1]).then_some(FailureMode::FailClosed);
            report.trust = has(parts, &[2]).then_some(TrustState::Trusted);
            report.content = has(parts, &[2]).then(|| Arc::new(ContentHash::new("ab".into())));
            report.tokens = has(parts, &[3, 4]).then_some(TokenUsage { input: 7, output: 1 });
            report.error = has(parts, &[4, 5]).then(|| "it ended".into());
            report.warnings.extend(has(parts, &[3, 5]).then(|| "it is odd".to_owned()));
            report
        })
    }

    /// An outcome with some of what an outcome may have.
    fn outcome() -> impl Strategy<Value = Outcome> {
        (proptest::collection::vec(report(), 0..4), any::<u64>(), 0..64_u8).prop_map(
            |(hooks, version, parts)| {
                let id = if has(parts, &[0, 1, 2]) { DecisionId::new(1, 2) } else { next_decision_id() };
                let version = if has(parts, &[1, 2]) { version } else { version % 1_000 };
                let mut outcome = Outcome::proceed(id, EventKind::BeforeToolDispatch, version);
                outcome.hooks = hooks;
                outcome.suppress_output = has(parts, &[0]);
                outcome.snapshot_content = has(parts, &[1]).then(|| "cd".into());
                if has(parts, &[3, 4]) {
                    (outcome.verdict, outcome.reason, outcome.by) =
                        (Verdict::Block, Some("no".into()), Some(name("guard")));
                }
                if has(parts, &[3, 5]) {
                    outcome.patched.set(Target::ToolInput, Json::parse("{\"a\":1}").unwrap());
                    outcome.notes.push(Note::new(name("guard"), NoteKind::AdditionalContext, "note"));
                }
                if has(parts, &[4, 5]) {
                    outcome.native.push(("word".into(), Json::parse("1").unwrap()));
                }
                outcome
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_remembered_is_the_outcome(outcome in outcome()) {
            prop_assert_eq!(RememberedAnswer::of(&outcome).outcome(), outcome);
        }

        #[test]
        fn answers_never_take_more_than_their_budget_and_give_all_of_it_back(
            outcomes in proptest::collection::vec((0..4_usize, outcome()), 1..64),
            most in 0..4_000_usize,
        ) {
            let limits = AnswerLimits::new(PER_RUN, most);
            let budget = &limits.budget;
            let mut runs: [RememberedAnswers; 4] = std::array::from_fn(|_| RememberedAnswers::default());
            for (number, (run, outcome)) in outcomes.iter().enumerate() {
                let key = key(&format!("call-{number}"));
                runs[*run].remember(key, outcome, &limits);
                let last = std::mem::take(&mut runs[*run]).into_last();
                runs[*run] = last.map_or_else(|others| others, RememberedAnswers::from);
                prop_assert!(budget.used() <= most);
                prop_assert_eq!(budget.used(), runs.iter().map(RememberedAnswers::bytes).sum::<usize>());
                let has_room = runs[*run].get(key).is_some();
                prop_assert!(has_room || RememberedAnswer::of(outcome).bytes() > most - budget.used());
            }
            drop(runs);
            prop_assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn a_run_forgets_its_own_oldest_answer_for_a_new_one() {
        let outcome = Outcome::proceed(next_decision_id(), EventKind::BeforeToolDispatch, 1);
        let room = 2 * RememberedAnswer::of(&outcome).bytes();
        let limits = AnswerLimits::new(PER_RUN, room);
        let mut answers = RememberedAnswers::default();
        for call in ["one", "two", "three"] {
            answers.remember(key(call), &outcome, &limits);
        }
        assert_eq!(["one", "two", "three"].map(|call| answers.get(key(call)).is_some()), [false, true, true]);
        let mut other = RememberedAnswers::default();
        other.remember(key("one"), &outcome, &limits);
        assert!(other.get(key("one")).is_none(), "it takes no room from another run");
        assert_eq!(limits.budget.used(), room);
    }
}
