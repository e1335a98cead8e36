//! Runs `tidegate_fuzz::envoy_yaml` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::envoy_yaml::run(bytes));
