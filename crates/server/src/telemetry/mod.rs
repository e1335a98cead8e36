//! What operators see: logs and metrics.
//!
//! | module | what it is |
//! |---|---|
//! | [`logs`] | lines for people on a terminal, JSON for everybody else |
//! | `metrics` | everything that `/metrics` shows |
//! | `by_policy` | counters for each policy, kept over reloads |
//! | `callers` | who asked without being believed |
//! | `decisions` | decisions, counted by policy, limit and outcome |
//! | `durations` | a histogram that costs two additions |
//! | `gateway` | what the gateway does, by route, pattern and upstream |
//! | `grpc` | what the gRPC door does |
//! | `guards` | what guards do, and how it stands with their lists |
//! | `plans` | what plans answer, and how it stands with their sources |
//! | `masked` | keys in logs |
//! | `reloads` | which configuration is served, and since when |
//! | `resp` | what the door of the Redis protocol does |
//! | `reservations` | reservations, and what became of them |
//! | `waiting` | how many requests wait for limits |
//! | `without_store` | decisions taken without the store |
//! | [`store`] | how the store is, and how full |
//! | `stopwatch` | real time, for latencies alone |

pub(crate) mod by_policy;
mod callers;
mod counting;
pub(crate) mod decisions;
pub(crate) mod durations;
pub(crate) mod gateway;
pub(crate) mod grpc;
pub(crate) mod guards;
pub mod logs;
pub(crate) mod masked;
pub(crate) mod metrics;
pub(crate) mod plans;
pub(crate) mod reloads;
pub(crate) mod reservations;
pub(crate) mod resp;
pub(crate) mod stopwatch;
pub mod store;
mod waiting;
pub(crate) mod without_store;
