//! Who forgot what: a line of the log for each reset.

use crate::commands::who::who;
use tidegate_policy::config::Environment;
use tracing::info;

/// What was forgotten.
#[derive(Debug)]
pub(super) struct ResetRecord<'a> {
    pub(super) store: String,
    pub(super) policy: &'a str,
    pub(super) limit: &'a str,
    /// The bucket, or `*` for all. Secrets stand in it as hashes.
    pub(super) key: &'a str,
    /// How many buckets, or keys of Redis, were there and are not any more.
    pub(super) forgotten: u64,
    /// Whether it came to its end.
    pub(super) is_complete: bool,
}

/// Writes it down.
pub(super) fn log(reset: &ResetRecord<'_>, environment: &dyn Environment) {
    info!(
        who = who(environment),
        store = reset.store,
        policy = reset.policy,
        limit = reset.limit,
        key = reset.key,
        forgotten = reset.forgotten,
        complete = reset.is_complete,
        "reset"
    );
}
