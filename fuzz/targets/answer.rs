//! Runs `tidegate_fuzz::answer` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::answer::run(bytes));
