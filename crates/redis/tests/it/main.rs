//! The store against real servers, which the tests start themselves.

mod blocks;
mod connection;
mod connection_log;
mod documents;
mod exact;
mod fault;
mod heartbeat;
mod inspecting;
mod laws;
mod lists;
mod open_bytes;
mod open_kit;
mod open_laws;
mod open_takeover;
mod open_together;
mod open_traces;
mod open_values;
mod open_window;
mod order;
mod regression;
mod told;
mod topologies;
mod world;
