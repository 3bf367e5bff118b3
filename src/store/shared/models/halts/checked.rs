//! The model of halts, and what comes of it.

use stateright::{Model, Property};

use super::{
    super::{ANY_DEPTH, counterexample},
    By, Halted, Halts, Node, Put, Safeguard, State, Step, What,
};

const NO_WRONG_ANSWER: &str = "a halt that was received holds";

/// How many steps daemons take at most where they may take many more than can be tried: three, and two of which much may happen.
const DEPTH_OF_THREE: usize = 19;
const DEPTH_OF_MANY: usize = 16;

impl Halts {
    /// Whoever reads a later beat has read the halt before: beats show nothing more.
    fn is_decided(&self, state: &State) -> bool {
        state.received.is_some() && self.keeps && self.again == 0
    }
}

impl Model for Halts {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let nodes = vec![Node::started(false, false); self.nodes];
        vec![State { bucket: Vec::new(), nodes, crashes: 0, again: 0, received: None, is_wrong: false }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.push(Step::Tick);
        for index in 0..self.nodes {
            let of_one: [fn(usize) -> Step; 12] = [
                Step::Beat,
                Step::Read,
                Step::Halts,
                Step::Put,
                Step::Confirmed,
                Step::Unconfirmed,
                Step::Renew,
                Step::AskOthers,
                Step::Settle,
                Step::Event,
                Step::Crash,
                Step::Start,
            ];
            let may = state.nodes[index].is_up;
            steps.extend(
                of_one.iter().map(|step| step(index)).filter(|step| may == !matches!(step, Step::Start(_))),
            );
            steps.extend((0..self.nodes).map(|other| Step::Knows(index, other)).filter(|_| may));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let without = self.without;
        match step {
            Step::Tick => state.tick(),
            // One that is neither read nor old is as good as another one.
            Step::Beat(index) if state.needs_beat(index, self.most) && !self.is_decided(last) => {
                state.write(What::Beat(index), self.keeps);
            }
            Step::Read(index) => state.read(index, without)?,
            Step::Halts(index) => {
                let node = &mut state.nodes[index];
                // An event that it has taken in before.
                if index > 0 || node.halt.is_some() || !node.is_ready || state.received.is_some() {
                    return None;
                }
                node.halt = Some(Halted { is_settled: false, is_shared: true });
                (node.is_saved, node.put, node.is_awaited) = (true, Put::Wanted, true);
            }
            Step::Put(index) if state.nodes[index].put == Put::Wanted => {
                state.nodes[index].put = Put::Stored;
                state.write(What::Halt(index), self.keeps);
            }
            Step::Confirmed(index) if state.nodes[index].put == Put::Stored => {
                state.nodes[index].put = Put::Nothing;
                state.nodes[index].asks();
            }
            Step::Unconfirmed(index) if state.nodes[index].put == Put::Stored && state.again < self.again => {
                state.again += 1;
                state.nodes[index].put = Put::Wanted;
            }
            // Whoever does it writes the same.
            Step::Renew(index @ 0) if state.has_read_halt(index) && state.again < self.again => {
                state.again += 1;
                state.write(What::Halt(index), self.keeps);
            }
            Step::AskOthers(index) => state.ask_others(index, without)?,
            Step::Knows(index, other) => state.knows(index, other, without)?,
            Step::Settle(index) => state.settle(index, without)?,
            Step::Event(index) => state.event(index, without)?,
            Step::Crash(index) if state.crashes < self.crashes => state.crash(index),
            Step::Start(index) => {
                let is_settled = without == Some(Safeguard::QuestionAfterStart);
                state.nodes[index] = Node::started(state.nodes[index].is_saved, is_settled);
                let over = state.bucket.iter_mut().filter(|entry| entry.is_over);
                over.for_each(|entry| entry.read[index] = true);
            }
            _ => return None,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_WRONG_ANSWER, |_, state: &State| !state.is_wrong),
            Property::sometimes("a halt is received", |_, state: &State| state.received == Some(By::Owner)),
            Property::sometimes("another daemon answers it", |_, state: &State| {
                state.received == Some(By::Reader)
            }),
        ]
    }
}

const ALL: Halts = Halts { nodes: 2, crashes: 0, again: 0, keeps: true, most: 2, without: None };

/// Messages that are written over are missed by who reads them late.
const MISSED: Halts = Halts { keeps: false, ..ALL };

#[test]
fn a_halt_that_was_received_holds() {
    for (depth, model) in [
        (ANY_DEPTH, Halts { again: 1, ..ALL }),
        (ANY_DEPTH, Halts { crashes: 1, ..ALL }),
        (ANY_DEPTH, MISSED),
        (DEPTH_OF_MANY, Halts { again: 1, ..MISSED }),
        (DEPTH_OF_MANY, Halts { again: 1, crashes: 1, ..MISSED }),
        (DEPTH_OF_THREE, Halts { nodes: 3, most: 1, ..ALL }),
        (DEPTH_OF_THREE, Halts { nodes: 3, most: 1, ..MISSED }),
    ] {
        assert_eq!(counterexample(model, NO_WRONG_ANSWER, depth), None);
    }
}

#[test]
fn without_a_safeguard_it_does_not() {
    for (safeguard, model) in [
        (Safeguard::Freshness, ALL),
        (Safeguard::Question, ALL),
        (Safeguard::Wait, ALL),
        (Safeguard::Knowledge, ALL),
        (Safeguard::QuestionOfReader, Halts { nodes: 3, most: 1, ..ALL }),
        (Safeguard::QuestionAfterStart, Halts { crashes: 1, ..ALL }),
        (Safeguard::WaitAfterMiss, Halts { most: 3, ..MISSED }),
        (Safeguard::BeatAfterMiss, Halts { again: 1, ..MISSED }),
    ] {
        let model = Halts { without: Some(safeguard), ..model };
        let found = counterexample(model, NO_WRONG_ANSWER, ANY_DEPTH);
        println!("{safeguard:?}: {}", found.as_deref().unwrap_or("never wrong"));
        assert!(found.is_some(), "{safeguard:?}: never wrong");
    }
}
