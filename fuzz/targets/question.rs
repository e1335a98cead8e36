//! Runs `tidegate_fuzz::question` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::question::run(bytes));
