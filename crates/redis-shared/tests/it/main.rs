//! Tests against real servers.

mod documents;
mod heartbeat;
mod lists;
mod world;
