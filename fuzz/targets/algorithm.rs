//! Runs `tidegate_fuzz::algorithm` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::algorithm::run(bytes));
