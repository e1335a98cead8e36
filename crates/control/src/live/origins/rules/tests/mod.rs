//! Tests against real Redis servers, and against a double of `MongoDB`'s protocol.

#[cfg(feature = "mongodb")]
mod mongodb;
mod redis;
