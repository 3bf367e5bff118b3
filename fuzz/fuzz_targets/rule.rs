//! `rule` of `fuzz/src/rule.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hookyard_fuzz::rule(bytes));
