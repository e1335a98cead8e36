//! Runs `tidegate_fuzz::collector_env` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::collector_env::run(bytes));
