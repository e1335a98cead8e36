//! The script against the engine, on a real server.
//!
//! The server's clock is replaced by an argument, so that time is what the test says. `reference` is
//! what the script has to come to: the engine, one request at a time, each reading and writing
//! values as the packed layout says.

mod differential; // random traces: answers and stored bytes are the same
mod kit; // a server, a script, a call
mod model; // random traces: the model agrees
mod named; // what must not go wrong, one by one
mod reference; // the engine over packed values
mod world; // random quotas and requests
