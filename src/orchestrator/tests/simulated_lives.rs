//! Simulations of what outlives a process: schedules out of seeds, of events, disks that fail or hang, kills, restarts and
//! wall clocks that jump. Each life has a runtime of its own with a paused clock; the disk is what they share.

use std::{
    env,
    num::NonZeroUsize,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use parking_lot::Mutex;
use tokio::{runtime, time::Instant};

use super::*;
use crate::{
    config::Settings,
    model::{Delivery, Json},
    run::{Outbox, OutboxLimits},
    store::{
        OutboxStore, RunStore, StoredRuns,
        tests::{DiskCondition, SimulatedDisk, SimulatedStore},
    },
    supervisor::SupervisorMessage,
};
use random::{Random, mixed};
use record::{Cancelled, Record, Sent, Work, WorkEnd};
use rules::{Check, LONGEST_SAVE};
use schedule::{Action, End, HOOK_TIMEOUT, Schedule, drawn};

#[path = "../../../tests/support/random.rs"]
mod random;
mod record;
mod rules;
mod schedule;

/// How many schedules are run unless `SIMULATION_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 60;

/// In this time, everything that can be delivered is.
const EVERYTHING: Duration = Duration::from_mins(4);

/// How often it is looked whether everything is.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

fn key(run: usize) -> RunKey {
    let workspace = crate::model::WorkspaceId::new("native").expect("it is an id");
    RunKey { workspace, run: RunId::new(format!("run-{run}")).expect("it is an id") }
}

fn event(action: Action) -> Event {
    let session = || SessionId::new("session").expect("it is an id");
    let (number, mut event) = match action {
        Action::Call { number, run } => {
            (number, Event::new(EventKind::BeforeToolDispatch, session(), key(run).run))
        }
        Action::Note { number, run, is_awaited, ends_run } => {
            let kind = if ends_run { EventKind::RunCompleted } else { EventKind::Notification };
            let mut event = Event::new(kind, session(), key(run).run);
            event.delivery = if is_awaited { Delivery::Awaited } else { Delivery::Detached };
            (number, event)
        }
        Action::Cancel { .. } | Action::Disk(_) => unreachable!("it sends no event"),
    };
    event.extra.push(("n".into(), Json::of(&number).expect("a number is JSON")));
    event
}

/// A hook at work; dropped before it has ended, it says so.
struct AtWork {
    record: Arc<Record>,
    began: Instant,
    work: Work,
}

impl AtWork {
    fn end(mut self, ended: WorkEnd) {
        self.work.ended = ended;
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.work.to = since(self.began);
        self.record.work.lock().push(self.work.clone());
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).expect("a simulation is short")
}

/// A hook that does what the seed says: it is slow, fails, never ends, or halts the run.
fn hook(name: &str, kinds: &[EventKind], seed: u64, life: usize, record: &Arc<Record>) -> NativeHook {
    let (record, began) = (Arc::clone(record), Instant::now());
    let is_guard = kinds.contains(&EventKind::BeforeToolDispatch);
    NativeHook::task(name, kinds.iter().copied(), move |draft| {
        let event = draft.event();
        let number =
            event.extra.iter().find_map(|(name, n)| (**name == *"n").then(|| n.as_str().parse().ok())?);
        let number: usize = number.expect("every event has its number");
        let delivery = event.arrival.map_or(0, |arrival| arrival.delivery());
        let from = since(began);
        let work = Work { number, delivery, life, from, to: from, ended: WorkEnd::Dropped };
        let at_work = AtWork { record: Arc::clone(&record), began, work };
        async move {
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

/// Runs one life. Returns what is wrong with it.
fn live(
    schedule: &Schedule,
    number: usize,
    disk: &Arc<SimulatedDisk>,
    record: &Arc<Record>,
) -> Result<(), String> {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let life = schedule.lives.get(number);
    runtime.block_on(async {
        let store = SimulatedStore::open(disk);
        let (orchestrator, began) = start(schedule.seed, number, &store, disk.stored(), record).await;
        let oldest = orchestrator.0.context.outbox.load_full().and_then(|outbox| outbox.counts().oldest);
        if oldest.is_some_and(|age| age > Duration::from_hours(24 * 365)) {
            return Err(format!("the oldest event is {oldest:?} old"));
        }
        let Some(life) = life else { return settle(&orchestrator).await };
        let mut answers = Vec::new();
        for (at, action) in &life.actions {
            tokio::time::sleep_until(began + Duration::from_millis(*at)).await;
            match *action {
                Action::Disk(condition) => disk.set(condition),
                Action::Cancel { run } => {
                    let (at, troubles) = (since(began), disk.troubles());
                    orchestrator.cancel_run(None, &key(run).run).await;
                    let is_in_time = since(began) - at < LONGEST_SAVE;
                    let is_stored = is_in_time && troubles == disk.troubles() && !troubles.1;
                    record.cancelled.lock().push(Cancelled { life: number, at, run, is_stored });
                }
                action => answers.push(send(&orchestrator, action, number, began, disk, record)),
            }
        }
        if let End::Stop(deadline) = life.end {
            orchestrator.shutdown(deadline).await;
        } else {
            tokio::task::yield_now().await;
        }
        store.kill();
        Ok(())
    })
}

async fn start(
    seed: u64,
    life: usize,
    store: &Arc<SimulatedStore>,
    stored: StoredRuns,
    record: &Arc<Record>,
) -> (Orchestrator, Instant) {
    let began = Instant::now();
    let lifecycle = [EventKind::Notification, EventKind::RunCompleted];
    let orchestrator = Orchestrator::builder()
        .native_hook(hook("guard", &[EventKind::BeforeToolDispatch], seed, life, record))
        .native_hook(hook("note", &lifecycle, seed, life, record))
        .settings(settings())
        .start()
        .await
        .expect("it starts");
    let context = &orchestrator.0.context;
    let limits = OutboxLimits { size: 1 << 20, dead: 1000, dead_size: 1 << 20 };
    let (outbox, restored) = context.restore(stored);
    context.outbox.store(Some(Outbox::new(Arc::clone(store) as Arc<dyn OutboxStore>, limits, outbox)));
    context.directory.set_store(Some(Arc::clone(store) as Arc<dyn RunStore>));
    orchestrator.0.supervisor.cast(SupervisorMessage::Restored(restored)).expect("it runs");
    orchestrator.start_courier();
    (orchestrator, began)
}

/// Few places in pools that have no work, as each is looked after all the time.
fn settings() -> Settings {
    let mut settings = Settings { watch: false, ..Settings::default() };
    let pools = &mut settings.pools;
    for pool in [&mut pools.command, &mut pools.http, &mut pools.prompt, &mut pools.agent] {
        pool.concurrency = NonZeroUsize::MIN;
    }
    settings
}

fn send(
    orchestrator: &Orchestrator,
    action: Action,
    life: usize,
    began: Instant,
    disk: &Arc<SimulatedDisk>,
    record: &Arc<Record>,
) -> tokio::task::JoinHandle<()> {
    let (orchestrator, disk, record) = (orchestrator.clone(), Arc::clone(disk), Arc::clone(record));
    tokio::spawn(async move {
        let (at, troubles) = (since(began), disk.troubles());
        let answer = orchestrator.dispatch(event(action)).await;
        let run = match action {
            Action::Call { run, .. } | Action::Note { run, .. } | Action::Cancel { run } => run,
            Action::Disk(_) => unreachable!("it sends no event"),
        };
        let has_hooks = answer.as_ref().is_ok_and(|outcome| !outcome.hooks.is_empty());
        record.sent.lock().push(Sent {
            life,
            at,
            answered: since(began),
            action,
            answer: answer.map(|outcome| outcome.verdict),
            has_hooks,
            is_on_disk: disk.is_halted(&key(run)),
            disk_worked: troubles == disk.troubles() && !troubles.1,
        });
    })
}

/// The last life: everything that can be delivered is.
async fn settle(orchestrator: &Orchestrator) -> Result<(), String> {
    let outbox = orchestrator.0.context.outbox.load_full().ok_or("no outbox")?;
    let is_over = async {
        while outbox.counts().under_way + outbox.counts().waiting > 0 {
            sleep(LOOK_PAUSE).await;
        }
    };
    if tokio::time::timeout(EVERYTHING, is_over).await.is_err() {
        return Err(format!("after {EVERYTHING:?}, there are {:?}", outbox.counts()));
    }
    if !orchestrator.shutdown(Duration::from_secs(1)).await {
        return Err("something is under way at the end".to_owned());
    }
    Ok(())
}

fn simulate(seed: u64) -> Result<(), String> {
    let schedule = drawn(seed);
    let (disk, record) = (SimulatedDisk::new(), Arc::<Record>::default());
    for number in 0..=schedule.lives.len() {
        let life = schedule.lives.get(number);
        disk.jump_clock(life.map_or(0, |life| life.jump));
        disk.set(DiskCondition::Works(life.map_or(Duration::ZERO, |life| life.latency)));
        live(&schedule, number, &disk, &record)?;
    }
    let check = Check::new(&schedule, &record);
    check.halts_hold()?;
    check.repetitions_take_turns()?;
    check.cancelled_runs_stay_so()?;
    check.deliveries_are_right(&disk)
}

#[test]
fn whatever_ends_a_process_no_halt_is_undone_and_no_accepted_event_is_lost() {
    let number_in =
        |variable: &str| env::var(variable).ok().map(|text| text.parse().expect("it is a number"));
    let seeds = match number_in("SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_in("SIMULATION_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let next = AtomicU64::new(seeds.start);
    let failures = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || failures.lock().len() >= 8 {
                return;
            }
            if let Err(failure) = simulate(seed) {
                failures.lock().push((seed, failure));
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner();
    let all: Vec<u64> = failures.iter().map(|(seed, _)| *seed).collect();
    if let Some((seed, failure)) = failures.first() {
        panic!(
            "{failure}\n\n{:?}\n\nschedules that fail: {all:?}\nto run the first again: SIMULATION_SEED={seed} cargo test --lib \
             simulated_lives",
            drawn(*seed)
        );
    }
}
