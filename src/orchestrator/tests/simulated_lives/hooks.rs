//! The hooks of simulated lives, and the settings of their daemons.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    random::{Random, mixed},
    record::{Record, Work, WorkEnd},
    schedule::HOOK_TIMEOUT,
};
use crate::{
    config::{OutboxSettings, Settings},
    model::{EventKind, Reply},
    orchestrator::NativeHook,
    store::tests::SimulatedProcess,
};

/// Where a hook runs.
pub(super) struct HookPlace {
    pub(super) seed: u64,
    pub(super) life: usize,
    pub(super) began: Instant,
    pub(super) record: Arc<Record>,
    pub(super) process_number: usize,
    pub(super) process: Arc<SimulatedProcess>,
}

/// A hook at work; dropped before it has ended, it says so.
struct AtWork {
    record: Arc<Record>,
    began: Instant,
    process: Arc<SimulatedProcess>,
    work: Work,
}

impl AtWork {
    fn end(mut self, ended: WorkEnd) {
        if self.process.died().is_none() {
            self.work.ended = ended;
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.work.to = between(self.began, self.process.died().unwrap_or_else(Instant::now));
        self.record.work.lock().push(self.work.clone());
    }
}

pub(super) fn since(began: Instant) -> u64 {
    between(began, Instant::now())
}

fn between(began: Instant, end: Instant) -> u64 {
    u64::try_from((end - began).as_millis()).expect("a simulation is short")
}

/// A hook that does what the seed says: it is slow, fails, never ends, or halts the run.
pub(super) fn hook(name: &str, kinds: &[EventKind], place: &HookPlace) -> NativeHook {
    let HookPlace { seed, life, began, process_number, .. } = *place;
    let (record, process) = (Arc::clone(&place.record), Arc::clone(&place.process));
    let is_guard = kinds.contains(&EventKind::BeforeToolDispatch);
    NativeHook::task(name, kinds.iter().copied(), move |draft| {
        let event = draft.event();
        let number =
            event.extra.iter().find_map(|(name, n)| (**name == *"n").then(|| n.as_str().parse().ok())?);
        let number: usize = number.expect("every event has its number");
        let delivery = event.arrival.map_or(0, |arrival| arrival.delivery());
        let from = since(began);
        let ended = WorkEnd::Dropped;
        let work = Work { number, delivery, life, process: process_number, from, to: from, ended };
        let is_alive = process.died().is_none();
        let at_work = is_alive.then(|| AtWork {
            record: Arc::clone(&record),
            began,
            process: Arc::clone(&process),
            work,
        });
        async move {
            // What a process does after its end has no effect.
            let Some(at_work) = at_work else { return std::future::pending().await };
            let mut random = Random::new(mixed(&[seed, number as u64, u64::from(delivery)]));
            sleep(Duration::from_millis(random.pick(&[0, 0, 7, 150, 600]))).await;
            let fails = is_stubborn(seed, number) || random.one_in(3);
            if is_guard {
                at_work.end(WorkEnd::Done);
                return Ok(if random.one_in(4) { Reply::halt("enough") } else { Reply::proceed() });
            }
            if fails && random.one_in(4) {
                std::future::pending::<()>().await;
            }
            at_work.end(if fails { WorkEnd::Failed } else { WorkEnd::Done });
            if fails { Err("it went wrong".to_owned()) } else { Ok(Reply::proceed()) }
        }
    })
    .timeout(Duration::from_millis(HOOK_TIMEOUT))
}

/// Whether the hook of a lifecycle event fails at each try.
fn is_stubborn(seed: u64, number: usize) -> bool {
    mixed(&[seed, number as u64]).is_multiple_of(7)
}

/// Few places in pools that have no work, as each is looked after all the time.
pub(super) fn settings() -> Settings {
    let outbox = OutboxSettings { max_size: 1 << 20, ..OutboxSettings::default() };
    let mut settings = Settings { watch: false, outbox, ..Settings::default() };
    let pools = &mut settings.pools;
    for pool in [&mut pools.command, &mut pools.http, &mut pools.prompt, &mut pools.agent] {
        pool.concurrency = NonZeroUsize::MIN;
    }
    settings
}
