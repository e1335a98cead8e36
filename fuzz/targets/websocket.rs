//! Runs `tidegate_fuzz::websocket` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::websocket::run(bytes));
