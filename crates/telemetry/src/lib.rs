//! Metrics, traces and alerts for operators.
//!
//! | module | what it is |
//! |---|---|
//! | `metrics` | all metrics of `/metrics` |
//! | `admin` | metrics of the admin API |
//! | `alerts` | messages to operators by a webhook |
//! | `source_health` | the health of config sources |
//! | `by_policy` | counters for each policy, kept over reloads |
//! | `identities` | counters of untrusted callers |
//! | `decisions` | decisions, counted by policy, limit and outcome |
//! | `durations` | a histogram that costs two additions |
//! | `gateway` | metrics of the gateway, by route, pattern and upstream |
//! | `grpc` | metrics of the gRPC frontend |
//! | `guards` | metrics of guards and of the status of their lists |
//! | `instances` | the instances that share the store, and their configurations compared |
//! | `plain` | the page in the older Prometheus format |
//! | `plans` | metrics of plans and of the status of their sources |
//! | `masked_key` | masking of keys in logs |
//! | `redis` | the nodes of Redis: calls to them, and figures from `INFO` |
//! | `refusals` | refusals in the log |
//! | `reloads` | the load time of the configuration, and outcomes of reloads |
//! | `reservations` | reservations and their outcomes |
//! | `room` | a full memory store, in the log and in `/status` |
//! | `in_flight` | the permits that requests in flight hold |
//! | `waiting` | the number of requests that are queued by limits |
//! | `failures` | decisions made without the store |
//! | [`store`] | health and size of the store |
//! | `traces` | spans of single requests, for an OpenTelemetry collector |
//! | `statsd` | statistics of limits for a statsd server |
//! | `sources` | outcomes of fetching config sources, and their status |
//! | `stopwatch` | real time, for latencies only |

pub mod admin;
pub mod alerts;
pub mod by_policy;
pub mod counting;
pub mod decisions;
pub mod durations;
pub mod failures;
pub mod gateway;
pub mod grpc;
pub mod guards;
pub mod identities;
mod in_flight;
pub mod instances;
pub mod log_lines;
pub mod masked_key;
pub mod metrics;
pub mod plain;
pub mod plans;
pub mod redis;
pub mod refusals;
pub mod reloads;
pub mod reservations;
pub mod room;
mod snapshot;
pub mod source_health;
pub mod sources;
pub mod statsd;
pub mod stopwatch;
pub mod store;
pub mod traces;
pub mod waiting;
