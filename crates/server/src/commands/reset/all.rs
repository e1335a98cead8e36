//! Resets every bucket of a limit.

use super::ResetArgs;
use super::audit::{self, ResetRecord};
use super::confirm::confirm;
use crate::simulate::table::grouped;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use tidegate_config::Config;
use tidegate_config::Environment;
use tidegate_control::buckets::reset_all::{self, ResetWalk};
use tidegate_control::buckets::{policy_name, redis_store};
use tidegate_control::failure::Failure;
use tidegate_policy::text::counted;

/// Resets the buckets, and returns a message with their number.
pub(super) fn run(
    args: &ResetArgs,
    config: &Config,
    environment: &dyn Environment,
) -> Result<String, Failure> {
    let redis = redis_store::redis(config)?;
    let limit = args.bucket.limit.as_deref().unwrap_or_default();
    let policy = policy_name(config, args.bucket.policy.as_deref(), limit)?;
    let limit = reset_all::find(config, &policy, limit)?;
    let what = format!(
        "this resets every bucket of limit `{}` of policy `{policy}` in {redis}",
        limit.name
    );
    if !args.yes && !args.dry_run {
        confirm(&what)?;
    }
    let walk = ResetWalk::new(config, &policy, limit, args.dry_run);
    let mut walk = walk.shown_by(show_progress);
    let settings = redis_store::settings(config)?;
    let walked = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-reset").await?;
        let walked = walk.all(store.connection(), redis).await;
        store.connection().close().await;
        walked
    });
    if !args.dry_run && (walked.is_ok() || walk.forgotten > 0) {
        let reset = ResetRecord {
            store: redis.to_string(),
            policy: &policy,
            limit: &limit.name,
            key: "*",
            forgotten: walk.forgotten,
            is_complete: walked.is_ok(),
        };
        audit::log(&reset, environment);
    }
    walked.map_err(|failure| {
        let count = counted(grouped(walk.forgotten), "key was", "keys were");
        Failure::runtime(format!("{failure}; {count} deleted before that"))
    })?;
    Ok(summary(&walk, args.dry_run))
}

/// Shows the progress on the terminal.
fn show_progress(forgotten: u64) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let count = counted(grouped(forgotten), "key", "keys");
        // A failure to show the progress does not matter.
        let written = write!(err, "\r{count} so far\x1b[K\r").and_then(|()| err.flush());
        written.ok();
    }
}

fn summary(walk: &ResetWalk<'_>, is_dry: bool) -> String {
    let count = grouped(walk.forgotten);
    let mut text = match (is_dry, walk.forgotten) {
        (true, 0) => "no keys would be deleted".to_owned(),
        (true, _) => format!("about {} would be deleted", counted(count, "key", "keys")),
        (false, _) => format!("{} deleted", counted(count, "key was", "keys were")),
    };
    if walk.left > 0 {
        let left = grouped(walk.left);
        let _ = write!(
            text,
            "; {left} may belong to another limit and were skipped"
        );
    }
    text
}
