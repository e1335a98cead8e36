//! Runs `tidegate_fuzz::key` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::key::run(bytes));
