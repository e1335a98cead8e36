//! Logs, metrics, traces and status for operators.
//!
//! | module | what it is |
//! |---|---|
//! | [`logs`] | text lines on a terminal, JSON elsewhere |
//! | `metrics` | all metrics of `/metrics` |
//! | `admin` | metrics of the admin API |
//! | `by_policy` | counters for each policy, kept over reloads |
//! | `chance` | pseudorandom numbers, for samples and ids |
//! | `callers` | counters of untrusted callers |
//! | `decisions` | decisions, counted by policy, limit and outcome |
//! | `durations` | a histogram that costs two additions |
//! | `gateway` | metrics of the gateway, by route, pattern and upstream |
//! | `grpc` | metrics of the gRPC frontend |
//! | `guards` | metrics of guards and of the status of their lists |
//! | `health` | the status of the server in one document |
//! | `instances` | the instances that share the store, and their configurations compared |
//! | `plain` | the page in the older Prometheus format |
//! | `plans` | metrics of plans and of the status of their sources |
//! | `masked` | masking of keys in logs |
//! | `redis` | the nodes of Redis: calls to them, and figures from `INFO` |
//! | `refusals` | refusals in the log |
//! | `reloads` | the load time of the configuration, and outcomes of reloads |
//! | `resp` | metrics of the frontend for the Redis protocol |
//! | `reservations` | reservations and their outcomes |
//! | `room` | a full memory store, in the log and in `/status` |
//! | `waiting` | the number of requests that are queued by limits |
//! | `without_store` | decisions made without the store |
//! | [`store`] | health and size of the store |
//! | `traces` | spans of single requests, for an OpenTelemetry collector |
//! | `statsd` | statistics of limits for a statsd server |
//! | `sources` | outcomes of fetching config sources, and their status |
//! | `stopwatch` | real time, for latencies only |

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
