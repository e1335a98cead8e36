//! Runs `tidegate_fuzz::config` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::config::run(bytes));
