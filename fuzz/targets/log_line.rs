//! Runs `tidegate_fuzz::log_line` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::log_line::run(bytes));
