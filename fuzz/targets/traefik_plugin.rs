//! Runs `tidegate_fuzz::traefik_plugin` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegate_fuzz::traefik_plugin::run(bytes));
