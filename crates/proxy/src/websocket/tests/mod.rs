//! `frames` runs against generated streams; the relay runs over pipes in memory with paused time, so that
//! nothing waits and the order is deterministic; `real` runs over loopback, between a third-party client and
//! server.

mod bounds;
mod ends;
mod frames;
mod kit;
mod passing;
mod real;
mod waiting;
