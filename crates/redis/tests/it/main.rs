//! The store on real servers, which the tests start.

mod blocks;
mod exact;
mod fault;
mod inspecting;
mod laws;
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
