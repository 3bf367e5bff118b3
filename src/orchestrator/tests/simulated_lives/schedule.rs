//! Schedules out of seeds.

use std::time::Duration;

use super::random::{Random, mixed};
use crate::store::tests::DiskCondition;

/// How long a hook that is given an event may take.
pub(super) const HOOK_TIMEOUT: u64 = 1000;

/// How many lines each handover has that comes to its end, at least.
pub(super) const HANDOVER_LINES: u64 = 7;

/// Everything that happens in one simulation.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) lives: Vec<Life>,
}

/// What happens between a start and an end.
#[derive(Debug, Clone)]
pub(super) struct Life {
    /// By how many hours the wall clock has jumped since the life before.
    pub(super) jump: i64,
    /// How long a write takes at first.
    pub(super) latency: Duration,
    /// With the milliseconds since the start.
    pub(super) actions: Vec<(u64, Action)>,
    pub(super) end: End,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    /// An event whose hook may halt the run.
    Call {
        number: usize,
        run: usize,
    },
    /// A lifecycle event, after which its run may be over.
    Note {
        number: usize,
        run: usize,
        is_awaited: bool,
        ends_run: bool,
    },
    Cancel {
        run: usize,
    },
    Disk(DiskCondition),
    /// Another daemon replaces the one that takes events.
    Replace(Handover),
}

/// How one daemon replaces another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handover {
    /// How long each line takes from one to the other.
    pub(super) latency: Duration,
    /// After how many lines which of them is killed.
    pub(super) fault: Option<(u64, Side)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Predecessor,
    Successor,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Kill,
    Stop(Duration),
}

/// The schedule of a seed.
pub(super) fn drawn(seed: u64) -> Schedule {
    let mut random = Random::new(mixed(&[seed, 5]));
    let random = &mut random;
    let is_calm = seed.is_multiple_of(2);
    let mut number = 0;
    let lives = (0..=random.index(4)).map(|_| life(random, is_calm, &mut number)).collect();
    Schedule { seed, lives }
}

fn life(random: &mut Random, is_calm: bool, number: &mut usize) -> Life {
    let jump = if random.one_in(2) { 0 } else { i64::try_from(random.below(60)).expect("a few hours") - 30 };
    let mut at = 0;
    let mut actions = Vec::new();
    let replaced = random.one_in(2);
    for _ in 0..2 + random.index(9) {
        if replaced && random.one_in(4) {
            actions.push((at, Action::Replace(handover(random))));
        }
        at += random.pick(&[0, 3, 40, 300, 1000, 5000]);
        let run = random.index(3);
        *number += 1;
        let action = match random.below(if is_calm { 12 } else { 15 }) {
            0 if random.one_in(2) => Action::Cancel { run },
            0..=4 => Action::Call { number: *number, run },
            5..=11 => {
                let (is_awaited, ends_run) = (random.one_in(3), random.one_in(8));
                Action::Note { number: *number, run, is_awaited, ends_run }
            }
            _ => Action::Disk(condition(random)),
        };
        actions.push((at, action));
    }
    let end = if random.one_in(3) {
        End::Stop(Duration::from_millis(random.pick(&[0, 100, 3000])))
    } else {
        End::Kill
    };
    Life { jump, latency: latency(random), actions, end }
}

fn handover(random: &mut Random) -> Handover {
    let side = if random.one_in(2) { Side::Predecessor } else { Side::Successor };
    let after = 1 + random.below(HANDOVER_LINES + 3);
    let fault = random.one_in(2).then_some((after, side));
    Handover { latency: Duration::from_millis(random.pick(&[0, 1, 30, 200])), fault }
}

fn condition(random: &mut Random) -> DiskCondition {
    match random.below(4) {
        0 => DiskCondition::Full(Duration::from_millis(random.below(30))),
        1 => DiskCondition::Hung,
        _ => DiskCondition::Works(latency(random)),
    }
}

fn latency(random: &mut Random) -> Duration {
    Duration::from_millis(random.pick(&[0, 1, 40, 700]))
}
