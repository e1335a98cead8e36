//! The fuzz targets, as functions of bytes.
//!
//! `targets/` runs each of them under libFuzzer (`scripts/soak`); `tests/seeds.rs` runs each on its
//! seeds in every full test run, built like any other test.

use arbitrary::{Arbitrary, Unstructured};

/// Defines `run`, the entry of a target, from its input and body. Input other than bytes is decoded
/// from them as by libFuzzer; too few bytes are skipped.
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        /// Checks one input; panics if a guarantee does not hold for it.
        pub fn run($input: &[u8]) $body
    };
    (|$input:ident: $type:ty| $body:block) => {
        /// Checks one input; panics if a guarantee does not hold for it.
        pub fn run(bytes: &[u8]) {
            let Some($input) = crate::input::<$type>(bytes) else {
                return;
            };
            $body
        }
    };
}

/// Lists the targets, and declares a module for each.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// All targets by name.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    algorithm,
    answer,
    client,
    collector_env,
    config,
    envoy_yaml,
    fluxgate,
    gateway_files,
    key,
    limitador_yaml,
    log_line,
    pattern,
    question,
    resp,
    resp_session,
    rls_read,
    traefik_plugin,
    websocket,
}

fn input<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}
