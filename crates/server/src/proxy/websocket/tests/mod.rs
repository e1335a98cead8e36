//! How: `frames` against generated streams; the relay over pipes in memory and paused time, so that
//! nothing waits and every order is the same each time; `real` over loopback, between a client and a
//! server that others wrote.

mod bounds;
mod ends;
mod frames;
mod kit;
mod passing;
mod real;
mod waiting;
