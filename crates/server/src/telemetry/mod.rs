//! What operators see: logs, metrics, traces, and how it all stands.
//!
//! | module | what it is |
//! |---|---|
//! | [`logs`] | lines for people on a terminal, JSON for everybody else |
//! | `metrics` | everything that `/metrics` shows |
//! | `admin` | what is asked of the admin API |
//! | `by_policy` | counters for each policy, kept over reloads |
//! | `chance` | numbers by chance, for samples and ids |
//! | `callers` | who asked without being believed |
//! | `decisions` | decisions, counted by policy, limit and outcome |
//! | `durations` | a histogram that costs two additions |
//! | `gateway` | what the gateway does, by route, pattern and upstream |
//! | `grpc` | what the gRPC door does |
//! | `guards` | what guards do, and how it stands with their lists |
//! | `health` | how it all stands, in one document |
//! | `instances` | who shares the store, and whether all of them serve the same |
//! | `plain` | the page in Prometheus' older format |
//! | `plans` | what plans answer, and how it stands with their sources |
//! | `masked` | keys in logs |
//! | `redis` | the nodes of Redis: calls to them, and what they say of themselves |
//! | `refusals` | refusals in the log |
//! | `reloads` | which configuration is served, and since when |
//! | `resp` | what the door of the Redis protocol does |
//! | `reservations` | reservations, and what became of them |
//! | `room` | a memory store without room, in the log and in `/status` |
//! | `waiting` | how many requests wait for limits |
//! | `without_store` | decisions taken without the store |
//! | [`store`] | how the store is, and how full |
//! | `traces` | what single requests went through, for an OpenTelemetry collector |
//! | `statsd` | statistics of limits for a statsd server |
//! | `sources` | what comes of asking sources of policy, and how it stands with them |
//! | `stopwatch` | real time, for latencies alone |

pub(crate) mod admin;
pub(crate) mod by_policy;
mod callers;
pub(crate) mod chance;
mod counting;
pub(crate) mod decisions;
pub(crate) mod durations;
pub(crate) mod gateway;
pub(crate) mod grpc;
pub(crate) mod guards;
pub(crate) mod health;
pub(crate) mod instances;
pub mod logs;
pub(crate) mod masked;
pub(crate) mod metrics;
mod plain;
pub(crate) mod plans;
pub(crate) mod redis;
pub(crate) mod refusals;
pub(crate) mod reloads;
pub(crate) mod reservations;
pub(crate) mod resp;
pub(crate) mod room;
mod sources;
pub(crate) mod statsd;
pub(crate) mod stopwatch;
pub mod store;
pub(crate) mod traces;
mod waiting;
pub(crate) mod without_store;
