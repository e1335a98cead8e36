//! Real proxies that call Tidegate: with the configurations of `examples/`, the program itself, an
//! application behind them and a client in front.

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

/// The application's response is passed to the client unchanged.
mod application;
/// Tidegate hangs, is down, and recovers.
mod away;
/// Allowed and refused requests.
mod decisions;
/// Tidegate replies without a decision.
mod failures;
/// The limits of nginx and Traefik compared with Tidegate and their imported configuration.
mod imported;
/// nginx's own subrequests, and the size of its check requests.
mod nginx;
/// The Traefik plugin's check requests.
mod plugin;
/// Clients that forge identities or targets.
mod spoofing;
