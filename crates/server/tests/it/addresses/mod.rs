//! Counting addresses, bans and alerts, by the running program.

/// Webhooks for alerts.
pub(crate) mod alerts;
/// `tidegate top addresses`, `tidegate ban` and `tidegate unban`.
mod command;
/// Instances that are killed.
mod killed;
/// Configurations and helpers for counting.
mod kit;
/// `/metrics`, the gateway, and the shutdown of a server.
mod served;
