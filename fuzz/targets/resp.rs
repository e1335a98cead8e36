//! Runs `tidegate_fuzz::resp` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::resp::run(bytes));
