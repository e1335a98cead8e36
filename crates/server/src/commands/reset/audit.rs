//! Logs each reset: the user, and the buckets.

use crate::commands::operator::who;
use tidegate_config::Environment;
use tracing::info;

/// A reset.
#[derive(Debug)]
pub(super) struct ResetRecord<'a> {
    pub(super) store: String,
    pub(super) policy: &'a str,
    pub(super) limit: &'a str,
    /// The bucket, or `*` for all. Secrets in it are hashed.
    pub(super) key: &'a str,
    /// The number of buckets, or keys in Redis, that existed and were removed.
    pub(super) forgotten: u64,
    /// The reset was completed.
    pub(super) is_complete: bool,
}

/// Logs the reset.
pub(super) fn log(reset: &ResetRecord<'_>, environment: &dyn Environment) {
    info!(
        event = "buckets_reset",
        who = who(environment),
        store = reset.store,
        policy = reset.policy,
        limit = reset.limit,
        key = reset.key,
        forgotten = reset.forgotten,
        complete = reset.is_complete,
        "buckets reset by a command"
    );
}
