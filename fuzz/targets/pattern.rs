//! Runs `tidegate_fuzz::pattern` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::pattern::run(bytes));
