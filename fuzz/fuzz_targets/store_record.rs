//! `store_record` of `fuzz/src/lib.rs`.
#![no_main]

use std::sync::Arc;

use signal_hook::{consts::SIGPIPE, flag};

// The `main` of a Rust program ignores SIGPIPE, and that of libFuzzer does not: writing to a hook that has ended would end
// the fuzzer.
libfuzzer_sys::fuzz_target!(
    init: drop(flag::register(SIGPIPE, Arc::default()).expect("a handler of this process")),
    |bytes: &[u8]| hookyard_fuzz::store_record(bytes)
);
