//! The script compared with the engine, on a real server.
//!
//! An argument replaces the server's clock, so that tests control time. `reference` computes the
//! expected result: the engine decides one request at a time, and reads and writes values in the
//! packed layout.

mod differential; // random traces: answers and stored bytes equal the engine's
mod kit; // a server, a script, a call
mod model; // random traces compared with the model
mod named; // regressions and edge cases
mod reference; // the engine over packed values
mod world; // random quotas and requests
