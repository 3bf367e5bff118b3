//! Simulations of the actors: schedules out of seeds, on a paused clock, against a reference. A binary of its own, because
//! its hooks panic on purpose and it would hide the panics of other tests.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

mod allowed;
mod generate;
mod host;
mod model;
mod observed;
#[path = "../support/random.rs"]
mod random;
mod schedule;
mod script;

use std::{
    env,
    fmt::Debug,
    panic,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use host::{Directories, simulate};
use observed::Observed;
use schedule::Schedule;

/// What a hook panics with if its script says so.
pub(crate) const SCRIPTED_PANIC: &str = "a panic of the script";

/// How many schedules are run unless `SIMULATION_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 600;

/// Seeds of schedules that once came out wrong, and run each time.
const PINNED: [u64; 4] = [37_973, 76_077, 91_142, 96_995];

/// Of so many schedules, one runs twice, and both must come out alike.
const TWICE: u64 = 10;

/// After so many schedules that fail, no more are run.
const MOST_FAILURES: usize = 8;

#[test]
fn every_spaced_schedule_comes_out_as_the_reference_says() {
    run_all("spaced", |seed, directories| {
        let schedule = Arc::new(generate::spaced(seed));
        let expected = model::expected(&schedule);
        let observed = simulate(&schedule, directories)?.in_order(&expected.cuts);
        let expected = expected.observed;
        compare(&schedule, &observed, &expected)?;
        if seed.is_multiple_of(TWICE) {
            let again = simulate(&schedule, directories)?.in_order(&model::expected(&schedule).cuts);
            compare(&schedule, &again, &observed)?;
        }
        Ok(())
    });
}

#[test]
fn every_dense_schedule_comes_out_in_one_of_the_right_ways() {
    run_all("dense", |seed, directories| {
        let schedule = Arc::new(generate::dense(seed));
        let observed = simulate(&schedule, directories)?.in_order(&schedule.cuts());
        let show = |what: String| format!("{what}\n\n{schedule}\nwhat happened:\n{observed}");
        allowed::check(&schedule, &observed).map_err(show)?;
        // Files are read by another thread, whose pace nobody knows.
        if seed.is_multiple_of(TWICE) && schedule.workspaces.is_empty() {
            let again = simulate(&schedule, directories)?.in_order(&schedule.cuts());
            compare(&schedule, &again, &observed)?;
        }
        Ok(())
    });
}

/// Runs the schedules of many seeds, or of the one that `SIMULATION_SEED` says.
fn run_all(kind: &str, run: impl Fn(u64, &Directories) -> Result<(), String> + Sync) {
    hide_scripted_panics();
    let seeds: Vec<u64> = match number_in("SIMULATION_SEED") {
        Some(seed) => vec![seed],
        None => PINNED.into_iter().chain(0..number_in("SIMULATION_SCHEDULES").unwrap_or(SCHEDULES)).collect(),
    };
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        let directories = Directories::new().unwrap();
        loop {
            let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return };
            if let Err(failure) = run(seed, &directories) {
                let mut failures = failures.lock().unwrap();
                failures.push((failure.len(), seed, failure));
                if failures.len() >= MOST_FAILURES {
                    next.store(seeds.len(), Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        (0..threads()).for_each(|_| drop(scope.spawn(work)));
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    let all: Vec<u64> = failures.iter().map(|(_, seed, _)| *seed).collect();
    if let Some((_, seed, failure)) = failures.first() {
        panic!(
            "{failure}\n\nschedules that fail: {all:?}\nto run the shortest again: SIMULATION_SEED={seed} cargo test --test \
             simulation {kind}"
        );
    }
}

fn threads() -> usize {
    if number_in("SIMULATION_SEED").is_some() {
        return 1;
    }
    thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

fn number_in(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("it is a number"))
}

/// Keeps the panics that scripts ask for out of the output.
fn hide_scripted_panics() {
    static HIDDEN: Once = Once::new();
    HIDDEN.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let is_scripted = panic.payload_as_str() == Some(SCRIPTED_PANIC);
            if !is_scripted {
                print(panic);
            }
        }));
    });
}

/// Compares two runs of a schedule, part by part.
fn compare(schedule: &Schedule, observed: &Observed, expected: &Observed) -> Result<(), String> {
    for number in 0..schedule.actions.len() {
        let (is, should) = (observed.answers.get(&number), expected.answers.get(&number));
        if is != should {
            return Err(differs(schedule, &format!("action {number}"), &is, &should, observed, expected));
        }
    }
    if observed.work != expected.work {
        let is: Vec<_> = observed.work.iter().filter(|work| !expected.work.contains(work)).collect();
        let should: Vec<_> = expected.work.iter().filter(|work| !observed.work.contains(work)).collect();
        return Err(differs(schedule, "the work of the hooks", &is, &should, observed, expected));
    }
    if observed.cancelled != expected.cancelled {
        let (is, should) = (&observed.cancelled, &expected.cancelled);
        return Err(differs(schedule, "what was cancelled", is, should, observed, expected));
    }
    if observed.stopped != expected.stopped {
        let (is, should) = (&observed.stopped, &expected.stopped);
        return Err(differs(schedule, "the shutdown", is, should, observed, expected));
    }
    Ok(())
}

fn differs(
    schedule: &Schedule,
    what: &str,
    is: &dyn Debug,
    should: &dyn Debug,
    observed: &Observed,
    expected: &Observed,
) -> String {
    format!(
        "{what} is\n    {is:?}\nand should be\n    {should:?}\n\n{schedule}\nwhat happened:\n{observed}\nwhat should have \
         happened:\n{expected}"
    )
}
