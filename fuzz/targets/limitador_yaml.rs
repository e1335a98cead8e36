//! Runs `tidegate_fuzz::limitador_yaml` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::limitador_yaml::run(bytes));
