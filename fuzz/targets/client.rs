//! Runs `tidegate_fuzz::client` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::client::run(bytes));
