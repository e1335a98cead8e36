//! Counting addresses, banning, and telling people, by the program as it runs.

/// Webhooks that are told.
pub(crate) mod alerts;
/// `tidegate addresses`.
mod command;
/// Instances that are killed.
mod killed;
/// Somewhere to count.
mod kit;
/// `/metrics`, the gateway, and the end of a server.
mod served;
