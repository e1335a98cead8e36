//! Runs `tidegate_fuzz::gateway_files` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::gateway_files::run(bytes));
