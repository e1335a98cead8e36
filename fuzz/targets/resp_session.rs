//! Runs `tidegate_fuzz::resp_session` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::resp_session::run(bytes));
