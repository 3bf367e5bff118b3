//! The targets of `fuzz`, over their corpora and over mutations of them that a seed decides. A binary of its own, so that
//! `cargo test --test fuzz` is what people without cargo-fuzz run.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

mod hook_text;
mod mutate;
#[path = "../support/random.rs"]
#[allow(dead_code, reason = "simulations use the rest of it")]
mod random;
#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the crate of the fuzzer exports them")]
mod targets;

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use mutate::mutated;
use random::Random;

/// How many mutations a target gets unless `FUZZ_MUTATIONS` says otherwise.
const MUTATIONS: u64 = 400;

/// No input of a few kilobytes may take more time of a processor.
const LONGEST: Duration = Duration::from_secs(10);

/// Hands a target every file of its corpus, and mutations of them.
fn fuzz(name: &str, target: fn(&[u8])) {
    fuzz_part(name, 1, target);
}

/// The same with one of so many parts of the mutations, for a target that takes long.
fn fuzz_part(name: &str, parts: u64, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let corpus: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!corpus.is_empty(), "{} is empty", directory.display());
    for (path, input) in paths.iter().zip(&corpus) {
        check(target, input, &path.display().to_string());
    }
    let mutations = env::var("FUZZ_MUTATIONS").map_or(MUTATIONS, |number| number.parse().unwrap());
    for seed in 0..mutations / parts {
        let input = mutated(&corpus, &mut Random::new(seed));
        check(target, &input, &format!("mutation {seed}"));
    }
}

fn check(target: fn(&[u8]), input: &[u8], what: &str) {
    let began = processor_time();
    let result = catch_unwind(AssertUnwindSafe(|| target(input)));
    assert!(result.is_ok(), "{what} breaks it: {:?}", String::from_utf8_lossy(input));
    let taken = processor_time().saturating_sub(began);
    assert!(taken < LONGEST, "{what} takes {taken:?}: {:?}", String::from_utf8_lossy(input));
}

/// How long this thread has run: a machine that is busy makes no input slow.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[test]
fn no_text_breaks_the_reader_of_hook_files() {
    fuzz("hook_file", targets::hook_file);
}

#[test]
fn no_text_breaks_the_readers_of_agent_settings() {
    fuzz("agent_settings", targets::agent_settings);
}

#[test]
fn no_text_breaks_the_reader_of_the_settings_file() {
    fuzz("settings_file", targets::settings_file);
}

#[test]
fn no_bytes_break_the_readers_of_events() {
    fuzz("event", targets::event);
}

#[test]
fn no_bytes_break_the_readers_of_replies() {
    fuzz("reply", targets::reply);
}

#[test]
fn no_record_of_trust_makes_an_untrusted_hook_run() {
    fuzz("trust_records", targets::trust_records);
}

#[test]
fn no_record_of_the_store_breaks_a_start_or_changes_a_verdict() {
    fuzz_part("store_record", 4, targets::store_record);
}

#[test]
fn no_bundle_breaks_its_readers_and_none_but_what_was_built_is_in_force() {
    fuzz("bundle", targets::bundle);
}

#[test]
fn no_expression_and_no_command_break_a_rule() {
    fuzz_part("rule", 2, targets::rule);
}
