//! Tests against real servers.

mod connection;
mod connection_log;
