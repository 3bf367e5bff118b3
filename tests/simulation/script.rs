//! What a hook does for an event: a function of the seed, the hook and the event, known to the hooks and the reference.

use hookyard::model::EventKind;

use crate::{
    random::{Random, mixed},
    schedule::{Form, Occurrence, Rule, Schedule},
};

/// What a hook does for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Script {
    /// How long it takes, or each of its questions to the model.
    pub(crate) latency: u64,
    pub(crate) ending: Ending,
}

/// How a hook ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Proceed,
    Allow,
    Ask,
    Block,
    Halt,
    /// A change of the tool's input.
    Patch,
    /// A note for a person.
    Note,
    Error,
    Panic,
    /// No end at all.
    Hang,
    /// An answer that nobody can read.
    Nonsense,
}

const ENDINGS: [(u64, Ending); 11] = [
    (40, Ending::Proceed),
    (5, Ending::Allow),
    (5, Ending::Ask),
    (9, Ending::Block),
    (4, Ending::Halt),
    (12, Ending::Patch),
    (8, Ending::Note),
    (6, Ending::Error),
    (4, Ending::Panic),
    (4, Ending::Hang),
    (3, Ending::Nonsense),
];

/// What a hook does for an event.
pub(crate) fn script(schedule: &Schedule, rule: &Rule, event: usize) -> Script {
    let name = rule.name.bytes().fold(0, |all, byte| mixed(&[all, u64::from(byte)]));
    let mut random = Random::new(mixed(&[schedule.seed, name, event as u64]));
    let latency = if random.one_in(4) { 0 } else { 2 * random.below(60) };
    let ending = suited(rule, &schedule.events[event], drawn(&mut random));
    let stubborn = schedule.events[event].kind == EventKind::AgentStopping && !random.one_in(12);
    let ending = if stubborn { Ending::Block } else { ending };
    Script { latency: if rule.form == Form::Inline { 0 } else { latency }, ending }
}

fn drawn(random: &mut Random) -> Ending {
    let all: u64 = ENDINGS.iter().map(|(weight, _)| weight).sum();
    let mut left = random.below(all);
    for (weight, ending) in ENDINGS {
        if left < weight {
            return ending;
        }
        left -= weight;
    }
    Ending::Proceed
}

/// The ending that a hook of this form can have.
fn suited(rule: &Rule, event: &Occurrence, ending: Ending) -> Ending {
    match (rule.form, ending) {
        (Form::Inline | Form::Task, Ending::Nonsense) => Ending::Error,
        // OpenHarness has no word for it, and a judge says yes or no.
        (Form::Prompt, Ending::Ask) | (Form::Judge(_), Ending::Halt | Ending::Ask) => Ending::Block,
        // The same, and a hook in the actor cannot wait.
        (Form::Inline, Ending::Hang)
        | (Form::Prompt, Ending::Allow)
        | (Form::Judge(_), Ending::Allow | Ending::Patch | Ending::Note) => Ending::Proceed,
        (_, Ending::Patch) if event.kind != EventKind::BeforeToolDispatch => Ending::Note,
        (_, ending) => ending,
    }
}

/// The reason of a verdict, or the text of a note.
pub(crate) fn words(rule: &Rule, event: usize) -> String {
    format!("{} on {event}", rule.name)
}
