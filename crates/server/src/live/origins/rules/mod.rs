//! Rules of `FluxGate`, where `FluxGate` keeps them.
//!
//! | module | what it is |
//! |---|---|
//! | `sets` | what was last understood of each rule set |
//! | `redis` | rule sets in hashes of Redis |
//! | `mongodb` | a collection of rules, with the feature `mongodb` |
//!
//! Rule sets are one another's strangers: one that nobody understands does not keep the others from
//! changing. It stays what it was.

#[cfg(feature = "mongodb")]
mod mongodb;
mod redis;
mod sets;

#[cfg(test)]
mod tests;

#[cfg(feature = "mongodb")]
pub(super) use mongodb::MongoSource;
pub(super) use redis::RuleSetSource;

/// The most rule sets: as many as there may be policies.
const SETS_MAX: usize = 1_000;
