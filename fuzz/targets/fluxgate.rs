//! Runs `tidegate_fuzz::fluxgate` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::fluxgate::run(bytes));
