//! Claims of runs: what hooks have left in a run and an event was answered with is never lost, whichever daemon goes on with it.
//!
//! There is one run, whose hooks count: each event adds one, and a hook that runs once is one that runs at a count of 0. Daemons
//! have the claims' own table and judge messages by the claims' own functions; the bucket, the run's actor and the ways between
//! them are made here. A daemon that is stopped, cut off or slow is one whose steps come late, since any other step may come first.
//!
//! | step | in the program |
//! | --- | --- |
//! | `Want`, `Begin` | `Orchestrator::run`, `Inner::claim` |
//! | `Claim`, `Apply`, `Answer` | `RunClaims::try_claim`: read and sent; taken in by the store or refused; the answer is read |
//! | `Act`, `Finish` | `RunActor::handle`: what is in its mailbox, in order; `RunActor::finish` |
//! | `Publish`, `Apply`, `Answer` | `publisher::write` and `publisher::settle` |
//! | `GiveUp`, `ApplyLate` | no answer in time: it is tried again, and the first attempt may be written later |
//! | `Hear` | `RunClaims::hear` |
//! | `Renew`, `Forget`, `End` | `RunClaims::renew_old`; `RunDirectory::forget_rested`; the end of the run, by whoever has it or has it not |
//! | `Crash` | `kill -9` and the next start, with what the run's own store has kept |

mod checked;
mod steps;

use std::hash::{Hash, Hasher};

use crate::{
    model::RunKey,
    store::shared::claims::{
        message::{ClaimMessage, LastClaim},
        table::{ClaimTable, UncommittedState},
    },
};

/// What keeps the promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Safeguard {
    /// State is written in place of the daemon's own last message only.
    Fence,
    /// A claim takes the place of the message that was read.
    ClaimInPlace,
    /// An event is answered once the bucket has what it has changed.
    Wait,
    /// No event begins before the run's actor has what the last claim left.
    Adoption,
    /// A message of an earlier attempt is no confirmation of a later one.
    Judgement,
    /// What is heard while a claim is being written counts.
    HeardMeanwhile,
}

/// What may happen, most of it at one daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Want(usize),
    Claim(usize),
    Begin(usize),
    Act(usize),
    Finish(usize),
    Publish(usize),
    Apply(usize, Way),
    Answer(usize, Way),
    GiveUp(usize, Way),
    ApplyLate(usize),
    Hear(usize),
    Renew(usize),
    Forget(usize),
    End(usize),
    Crash(usize),
}

/// Whether a claim is written, or the state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Claim,
    State,
}

/// A message on its way to the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Write {
    message: ClaimMessage,
    is_end: bool,
    /// It claims a run anew that has ended here, and is its end as well.
    is_anew: bool,
    after: u64,
    is_fenced: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Sent,
    Written(u64),
    Refused,
}

/// The count after an event, and how often the run had ended before.
type Counted = (u8, u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Host {
    Silent,
    /// Its event waits for a claim.
    Wants,
    /// It is on its way to the actor, under a claim with this epoch.
    Begun(u64),
    Counted(u64, Counted),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mail {
    Moved,
    /// The state that a claim with this epoch has brought.
    Adopt(u64, u8),
    Dispatch,
}

/// A daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    instance: String,
    table: ClaimTable<Counted>,
    /// The count that its actor has, and whether that has changed since it was noted.
    count: u8,
    is_changed: bool,
    mailbox: Vec<Mail>,
    host: Host,
    /// What was found last of a run that is being claimed; none before the first try.
    claiming: Option<Write>,
    /// The next try looks into the bucket.
    looks: bool,
    publishing: Option<(UncommittedState, Write)>,
    unread: Vec<LastClaim>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    last: Option<LastClaim>,
    nodes: Vec<Node>,
    /// Attempts that nobody waits for any more.
    late: Vec<Write>,
    events: u8,
    tries: u8,
    faults: u8,
    /// How often the run has ended, and the counts of the events that were answered since.
    life: u8,
    answered: Vec<u8>,
    wrong: Option<Wrong>,
}

/// What must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    /// The bucket does not have what an event was answered with.
    Lost,
    /// Two events were answered with the same count.
    Twice,
}

/// The faults that there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    GiveUp,
    Renew,
    Forget,
    End,
    Crash,
}

struct Claims {
    nodes: usize,
    events: u8,
    /// How often a claim is tried, at most.
    tries: u8,
    /// It is looked at each state whether a daemon that is left alone gets the run, which takes long.
    looks_alone: bool,
    /// Which faults there may be, and how many.
    kinds: &'static [Fault],
    faults: u8,
    without: Option<Safeguard>,
    key: RunKey,
}

fn hash_claim(message: &ClaimMessage, hasher: &mut impl Hasher) {
    (message.epoch, &message.instance, message.state.stops_blocked).hash(hasher);
}

fn hash_last(last: &LastClaim, hasher: &mut impl Hasher) {
    (last.number, last.is_over).hash(hasher);
    last.claim.iter().for_each(|claim| hash_claim(claim, hasher));
}

impl Hash for Write {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hash_claim(&self.message, hasher);
        (self.is_end, self.is_anew, self.after, self.is_fenced, self.stage).hash(hasher);
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.instance, &self.table, self.count, self.is_changed).hash(hasher);
        (&self.mailbox, self.host, &self.claiming, self.looks).hash(hasher);
        self.publishing.as_ref().map(|(change, write)| (change.epoch, change.change, write)).hash(hasher);
        self.unread.len().hash(hasher);
        self.unread.iter().for_each(|last| hash_last(last, hasher));
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.last.iter().for_each(|last| hash_last(last, hasher));
        (&self.nodes, &self.late, self.events, self.tries, self.faults).hash(hasher);
        (self.life, &self.answered, self.wrong).hash(hasher);
    }
}
