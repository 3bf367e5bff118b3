//! The model of claims, and what comes of it.

use stateright::{Model, Property};

use super::{
    super::{ANY_DEPTH, counterexample},
    Claims, Fault, Host, Node, Safeguard, State, Step, Way,
};
use crate::model::RunKey;

const NOTHING_LOST: &str = "what an event was answered with is not lost";
const WHO_KNOWS: &str = "a daemon that has read everything knows whether it goes on with the run";
const ALONE: &str = "a daemon that is left alone gets the run";

/// How many steps three daemons take at most, and two to which anything may happen.
const DEPTH: usize = 16;

/// How many steps a daemon may need that is left alone.
const MOST_STEPS_ALONE: usize = 30;

impl Claims {
    fn new(kinds: &'static [Fault], faults: u8) -> Self {
        let key = RunKey::of_texts("shop".to_owned(), "r".to_owned()).expect("two names");
        Self { nodes: 2, events: 2, tries: 3, looks_alone: false, kinds, faults, without: None, key }
    }

    /// Whether this daemon goes on with the run if nothing else happens.
    fn gets_it_alone(&self, state: &State, index: usize) -> bool {
        let mut state = state.clone();
        for _ in 0..MOST_STEPS_ALONE {
            if state.nodes[index].table.held(&self.key).is_some() {
                return true;
            }
            if state.nodes[index].host == Host::Silent {
                state.nodes[index].host = Host::Wants;
            }
            let goes_on = state.apply_late(0).is_some()
                || [Way::Claim, Way::State].into_iter().any(|way| {
                    state.apply_one(index, way).or_else(|| state.answer_one(index, way, self)).is_some()
                })
                || state.act(index, self).is_some()
                || state.hear(index, self).is_some()
                || state.finish(index, self).is_some()
                || state.publish(index, self).is_some()
                || state.claim(index, self).is_some();
            if !goes_on {
                return false;
            }
        }
        false
    }

    fn fault(&self, state: &mut State, kind: Fault, step: Step) -> Option<()> {
        if state.faults == self.faults || !self.kinds.contains(&kind) {
            return None;
        }
        state.faults += 1;
        match step {
            Step::GiveUp(index, way) => state.give_up(index, way, self),
            Step::Renew(index) => state.renew(index, self),
            Step::Forget(index) => state.forget(index, self),
            Step::End(index) => state.end(index, self),
            Step::Crash(index) => {
                state.crash(index);
                Some(())
            }
            _ => None,
        }
    }
}

impl Model for Claims {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            last: None,
            nodes: (0..self.nodes).map(|index| Node::started(index, 0, 0)).collect(),
            late: Vec::new(),
            events: 0,
            tries: 0,
            faults: 0,
            life: 0,
            answered: Vec::new(),
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for index in 0..self.nodes {
            steps.extend([
                Step::Want(index),
                Step::Claim(index),
                Step::Begin(index),
                Step::Act(index),
                Step::Finish(index),
                Step::Publish(index),
                Step::Hear(index),
                Step::Renew(index),
                Step::Forget(index),
                Step::End(index),
                Step::Crash(index),
            ]);
            for way in [Way::Claim, Way::State] {
                steps.extend([Step::Apply(index, way), Step::Answer(index, way), Step::GiveUp(index, way)]);
            }
        }
        steps.extend((0..state.late.len()).map(Step::ApplyLate));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Want(index) if state.events < self.events && state.nodes[index].host == Host::Silent => {
                state.events += 1;
                state.nodes[index].host = Host::Wants;
            }
            Step::Claim(index) if state.tries < self.tries => {
                state.tries += 1;
                state.claim(index, self)?;
            }
            Step::Want(_) | Step::Claim(_) => return None,
            Step::Begin(index) => state.nodes[index].begin(self)?,
            Step::Act(index) => state.act(index, self)?,
            Step::Finish(index) => state.finish(index, self)?,
            Step::Publish(index) => state.publish(index, self)?,
            Step::Apply(index, way) => state.apply_one(index, way)?,
            Step::Answer(index, way) => state.answer_one(index, way, self)?,
            Step::ApplyLate(at) => state.apply_late(at)?,
            Step::Hear(index) => state.hear(index, self)?,
            Step::GiveUp(..) => self.fault(&mut state, Fault::GiveUp, step)?,
            Step::Renew(_) => self.fault(&mut state, Fault::Renew, step)?,
            Step::Forget(_) => self.fault(&mut state, Fault::Forget, step)?,
            Step::End(_) => self.fault(&mut state, Fault::End, step)?,
            Step::Crash(_) => self.fault(&mut state, Fault::Crash, step)?,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NOTHING_LOST, |_, state: &State| state.wrong.is_none()),
            Property::always(WHO_KNOWS, |model: &Self, state: &State| {
                state.nodes.iter().all(|node| {
                    let last = state.last.as_ref();
                    !node.unread.is_empty()
                        || node.table.held(&model.key).is_none()
                        || last.is_some_and(|last| !last.is_of_another(&node.instance))
                })
            }),
            Property::always(ALONE, |model: &Self, state: &State| {
                !model.looks_alone || (0..model.nodes).all(|index| model.gets_it_alone(state, index))
            }),
            Property::sometimes("an event is answered", |_, state: &State| !state.answered.is_empty()),
        ]
    }
}

const ALL: &[Fault] = &[Fault::GiveUp, Fault::Renew, Fault::Forget, Fault::End, Fault::Crash];

#[test]
fn nothing_is_lost_of_a_run_that_moves() {
    let one = |kinds| Claims::new(kinds, 1);
    for (depth, model) in [
        (ANY_DEPTH, Claims { looks_alone: true, ..Claims::new(&[], 0) }),
        (DEPTH, Claims { looks_alone: true, ..one(ALL) }),
        (ANY_DEPTH, one(&[Fault::Forget])),
        (ANY_DEPTH, one(&[Fault::Crash])),
        (ANY_DEPTH, one(&[Fault::End])),
        (ANY_DEPTH, one(&[Fault::Renew])),
        (ANY_DEPTH, one(&[Fault::GiveUp])),
        (DEPTH, Claims { nodes: 3, ..one(&[Fault::GiveUp]) }),
    ] {
        // All properties are looked at.
        assert_eq!(counterexample(model, NOTHING_LOST, depth), None);
    }
}

#[test]
fn without_a_safeguard_it_is() {
    for (safeguard, property, kinds) in [
        (Safeguard::Fence, NOTHING_LOST, &[][..]),
        (Safeguard::ClaimInPlace, NOTHING_LOST, &[]),
        (Safeguard::Wait, NOTHING_LOST, &[]),
        (Safeguard::Adoption, NOTHING_LOST, &[]),
        (Safeguard::Judgement, NOTHING_LOST, &[Fault::GiveUp]),
        (Safeguard::HeardMeanwhile, WHO_KNOWS, &[]),
    ] {
        let model = Claims { without: Some(safeguard), ..Claims::new(kinds, u8::from(!kinds.is_empty())) };
        let found = counterexample(model, property, ANY_DEPTH);
        println!("{safeguard:?}: {}", found.as_deref().unwrap_or("never wrong"));
        assert!(found.is_some(), "{safeguard:?}: never wrong");
    }
}
