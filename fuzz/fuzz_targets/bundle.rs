//! `bundle` of `fuzz/src/lib.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hookyard_fuzz::bundle(bytes));
