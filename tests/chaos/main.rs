//! A daemon under load that is killed, frozen, stopped, starved and reloaded, against a reference that knows each verdict.
//!
//! `CHAOS_FOR` says how many seconds it takes and `CHAOS_SEED` what is done in which order; `scripts/chaos` sets both.
#![cfg(all(feature = "cli", feature = "daemon"))]
#![allow(clippy::unwrap_used, reason = "an error fails its test")]
#![allow(clippy::disallowed_methods, reason = "the daemon is a real one, and so is its clock")]

mod arena;
mod clock;
mod disturbances;
mod footprint;
mod hosts;
mod policy_server;
#[path = "../support/random.rs"]
mod random;
mod reference;
#[path = "../support/mod.rs"]
mod support;
mod witness;
mod workspace;

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    arena::Arena,
    clock::WallClock,
    disturbances::Disturber,
    footprint::Footprint,
    hosts::Host,
    policy_server::PolicyServer,
    random::mixed,
    support::wait::{LONGEST_WAIT, wait_until},
    witness::Witness,
};

/// How many hosts send events at a time.
const HOSTS: u64 = 8;

/// How long it takes unless somebody says otherwise.
const DEFAULT_SECONDS: u64 = 60;

/// The seed unless somebody says otherwise.
const DEFAULT_SEED: u64 = 1;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[test]
fn whatever_is_done_to_the_daemon_its_verdicts_are_right_and_nothing_grows() {
    let length = Duration::from_secs(variable("CHAOS_FOR").unwrap_or(DEFAULT_SECONDS));
    let seed = variable("CHAOS_SEED").unwrap_or(DEFAULT_SEED);
    println!("{} s with the seed {seed}; `scripts/chaos --seed {seed}` repeats it", length.as_secs());

    let server = PolicyServer::start(mixed(&[seed, 1]));
    let setup = workspace::setup(&server.url());
    let witness = Witness::start(&setup.path().join(workspace::WITNESS));
    let clock = WallClock::make(&setup.path());
    let daemon = workspace::with_flags(setup).serve();
    let arena = Arena::new(&daemon);
    let mut disturber = Disturber::new(daemon, clock, mixed(&[seed, 2]));

    let results = thread::scope(|scope| {
        let hosts: Vec<_> = (0..HOSTS)
            .map(|number| {
                let arena = &arena;
                scope.spawn(move || Host::new(number, mixed(&[seed, 3, number])).play(arena))
            })
            .collect();
        scope.spawn(|| disturbances::reload_again_and_again(&arena));
        let _end = arena.end_on_panic();
        let begun = Instant::now();
        // At last it is left alone as far as its life goes, so that one process can be measured.
        disturber.disturb(&arena, begun + length.mul_f64(0.7));
        let before = measured(&arena, &disturber);
        disturber.disturb_alive(&arena, begun + length);
        let after = measured(&arena, &disturber);
        arena.finish();
        arena.report(after.growth_since(&before));
        hosts.into_iter().map(|host| host.join().expect("a host")).collect::<Vec<_>>()
    });

    // Once more without a warning: what was halted stays so.
    disturber.kill_and_start(&arena);
    for host in &results {
        host.assert_halted_runs(&arena);
    }
    assert_delivered(&results, &witness, &arena);
    let history = disturber.history();
    let log = disturber.finish();
    let ran = witness.finish();
    for host in &results {
        host.compare_with(&ran, &arena);
    }
    let log_file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos.log");
    println!("{}\n{}", arena.summary(), history.summary());
    fs::write(&log_file, log).unwrap();
    arena.assert_nothing_wrong(
        seed,
        &format!("{history}\nthe log of the daemon is in {}", log_file.display()),
    );
}

/// Each event that was accepted without waiting comes to its hook, whatever was done to the daemon since.
fn assert_delivered(hosts: &[Host], witness: &Witness, arena: &Arena) {
    let undelivered = || hosts.iter().flat_map(|host| host.undelivered(witness));
    let deadline = Instant::now() + LONGEST_WAIT;
    while undelivered().next().is_some() && Instant::now() < deadline {
        retry_waiting(arena);
        thread::sleep(Duration::from_millis(200));
    }
    arena.report(undelivered().map(|id| format!("the hook of event {id} never ran, and it was accepted")));
}

/// Has tried again now what would be tried again later, because its hook failed while the daemon lacked descriptors.
fn retry_waiting(arena: &Arena) {
    let waiting: Value = arena.control().ask("GET", "/v1/outbox?state=waiting&limit=10000", None).unwrap();
    let ids: Vec<&Value> = waiting["events"].as_array().unwrap().iter().map(|event| &event["id"]).collect();
    if !ids.is_empty() {
        let body = json!({ "ids": ids }).to_string();
        arena.control().send("POST", "/v1/outbox/retry", Some(body.as_bytes())).unwrap();
    }
}

/// What the daemon takes while nothing is in flight.
fn measured(arena: &Arena, disturber: &Disturber) -> Footprint {
    let _pause = arena.pause();
    let daemon = disturber.daemon();
    wait_until("nothing is in flight", || daemon.get("/v1/status")["events_in_flight"] == 0);
    // Descriptors of connections that have ended, and of workers that end, are closed a moment later.
    let mut last = Footprint::of(daemon);
    let deadline = Instant::now() + LONGEST_WAIT;
    let mut same = 0;
    while same < 20 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
        let now = Footprint::of(daemon);
        same = if now.is_like(&last) { same + 1 } else { 0 };
        last = now;
    }
    last
}
