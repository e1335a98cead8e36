//! The program from the view of its users: real sockets, real processes.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Servers on free ports, a client that can misbehave, processes.
mod kit;

/// Access logs of real programs.
mod access_logs;
/// Counting addresses, bans and alerts.
mod addresses;
/// `/livez`, `/readyz`, `/metrics`.
mod admin;
/// The admin API.
mod admin_api;
/// `tidegate check`.
mod ask;
/// `/v1/auth`: forward-auth for proxies.
mod auth;
/// Requests that are too large, too slow or too many.
mod bounds;
/// `tidegate budget`, its route in the admin API, and alerts at shares of a band.
mod budgets;
/// `POST /v1/check`: decisions.
mod check;
/// Processes whose clocks differ.
mod clocks;
/// Colours on a terminal.
mod colors;
/// Buckets that another system left in Redis.
mod continued;
/// Descriptors, at `POST /v1/check` and in a trace.
mod described;
/// `tidegate doctor`.
mod doctor;
/// Shutdown without losing requests.
mod drain;
/// Responses of all frontends while the store does not answer.
mod failure;
/// `tidegate gateway`.
mod gateway_command;
/// Denied and exempt clients.
mod guards;
/// `tidegate healthcheck`.
mod healthcheck;
/// `tidegate import`, and what it translates, served.
mod import;
/// `POST /v1/acquire`, `/v1/renew`, `/v1/release`.
mod in_flight;
/// `tidegate inspect`.
mod inspect;
/// Mistakes in plans, lists and files.
mod mistakes;
/// Files that Kubernetes mounts and updates.
mod mounted;
/// The OpenAPI document of the HTTP API.
mod openapi;
/// The environment of envoyproxy/ratelimit.
mod peer;
/// Rates that come from plans.
mod plans;
/// `POST /v1/check`: everything but decisions, word for word.
mod problems;
/// The program as a process: what it prints, how it exits.
mod program;
/// Every key that can be in Redis is in the reference.
mod redis_keys;
/// The reference page of the commands.
mod reference;
/// Reloads while requests are in flight.
mod reload;
/// Certificates that are replaced while they are in use.
mod renewal;
/// `POST /v1/reserve`, `/v1/commit`, `/v1/refund`.
mod reserve;
/// Reservations with curl.
mod reserve_with_curl;
/// `tidegate reset`.
mod reset;
/// `tidegate init`.
mod setup;
/// Shadow mode: everything is decided and counted, and no request is refused.
mod shadow;
/// `tidegate simulate` as a process, and its edge cases.
mod simulate;
/// Buckets in memory that survive a restart.
mod snapshot;
/// Config sources that change while they are in use.
mod sources;
/// Forged headers at `/v1/auth`.
mod spoofing;
/// `tidegate completions` and `tidegate man`.
mod texts;
/// TLS, with and without client certificates.
mod tls;
/// Bearer tokens.
mod tokens;
/// Units at the HTTP listener.
mod units;
/// Listeners on unix sockets.
mod unix;
/// `tidegate validate` and `tidegate schema`.
mod validate;
/// Simulated decisions that must match exactly.
mod vectors;
/// Limits with a queue.
mod waiting;
