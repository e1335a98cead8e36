//! Rules of `FluxGate`, in `FluxGate`'s own storage.
//!
//! | module | what it is |
//! |---|---|
//! | `sets` | the last valid version of each rule set |
//! | `redis` | rule sets in hashes of Redis |
//! | `mongodb` | a collection of rules, with the feature `mongodb` |
//!
//! Rule sets are independent: an invalid one does not keep the others from changing. It keeps its last
//! valid version.

#[cfg(feature = "mongodb")]
mod mongodb;
mod redis;
mod sets;

#[cfg(test)]
mod tests;

#[cfg(feature = "mongodb")]
pub(super) use mongodb::MongoSource;
pub(super) use redis::RuleSetSource;

/// The maximum number of rule sets, equal to that of policies.
const SETS_MAX: usize = 1_000;
