//! Runs `tidegate_fuzz::rls_read` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::rls_read::run(bytes));
