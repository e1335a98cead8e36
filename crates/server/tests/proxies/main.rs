//! Real proxies that ask Tidegate about requests: with the configurations of `examples/`, the program
//! itself, an application behind them and a client in front.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well; one that is passed over says so"
)]

/// Proxies, the program, the application, the client.
#[macro_use]
mod kit;

/// What the application answers is the client's, whatever it is.
mod application;
/// Tidegate hangs, is gone, comes back.
mod away;
/// Allowed and refused.
mod decisions;
/// Tidegate answers, but does not decide.
mod failures;
/// What nginx does by itself beside limits.
mod nginx;
/// What the plugin for Traefik is told.
mod plugin;
/// Clients who claim to be others, or to ask for something else.
mod spoofing;
