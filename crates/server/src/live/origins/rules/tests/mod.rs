//! Against real servers of Redis, and a double of `MongoDB`'s protocol.

#[cfg(feature = "mongodb")]
mod mongodb;
mod redis;
