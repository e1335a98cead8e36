//! The program as others meet it: real sockets, real processes.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Servers on ports that the system chooses, a client that can misbehave, processes.
mod kit;

/// Access logs as the programs write them.
mod access_logs;
/// Counting addresses, banning, and telling people.
mod addresses;
/// `/livez`, `/readyz`, `/metrics`.
mod admin;
/// The admin API.
mod admin_api;
/// `/v1/auth`: forward-auth for proxies.
mod auth;
/// What is too large, too slow, too many.
mod bounds;
/// `POST /v1/check`: decisions.
mod check;
/// Buckets that another system left in Redis.
mod continued;
/// Descriptors, at `POST /v1/check` and in a trace.
mod described;
/// `tidegate doctor`.
mod doctor;
/// Stopping without losing anything.
mod drain;
/// What doors say when the store does not answer.
mod failure;
/// `tidegate gateway`.
mod gateway_command;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
/// `tidegate import`, and what it translates, served.
mod import;
/// `tidegate inspect`.
mod inspect;
/// Mistakes in plans, lists and files.
mod mistakes;
/// Rates that come from plans.
mod plans;
/// `POST /v1/check`: everything but decisions, word for word.
mod problems;
/// The program as a process: what it prints, how it exits.
mod program;
/// Every key that is ever in Redis is on the page that lists them.
mod redis_keys;
/// Another configuration while requests are under way.
mod reload;
/// Certificates that are replaced while they are served.
mod renewal;
/// `POST /v1/reserve`, `/v1/commit`, `/v1/refund`.
mod reserve;
/// The same as a person tries them.
mod reserve_with_curl;
/// `tidegate reset`.
mod reset;
/// Everything decided and counted, and nobody refused.
mod shadow;
/// `tidegate simulate` as a process, and at the edges of what it is given.
mod simulate;
/// Policy that comes from elsewhere, and changes while it is served.
mod sources;
/// What clients forge, at `/v1/auth`.
mod spoofing;
/// TLS, with and without certificates of callers.
mod tls;
/// Bearer tokens.
mod tokens;
/// `tidegate validate` and `tidegate schema`.
mod validate;
/// Decisions that must come out to the letter, simulated.
mod vectors;
/// Limits that let requests wait.
mod waiting;
