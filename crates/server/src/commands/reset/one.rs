//! Resets one bucket.

use super::ResetArgs;
use super::audit::{self, ResetRecord};
use tidegate_config::Config;
use tidegate_config::Environment;
use tidegate_control::buckets::{NamedBucket, redis_store, reset};
use tidegate_control::failure::Failure;

/// Resets the bucket, and returns a message.
pub(super) fn run(
    args: &ResetArgs,
    mut config: Config,
    environment: &dyn Environment,
) -> Result<String, Failure> {
    let store = redis_store::redis(&config)?.to_string();
    // Before the limit is moved out of it.
    let settings = redis_store::settings(&config)?;
    let mut named = NamedBucket::find(&mut config, &args.bucket.query())?;
    let forgotten = redis_store::wait_for(async {
        let store = redis_store::connect(settings, "tidegate-reset").await?;
        let forgotten = async {
            named.choose(&store).await?;
            reset::forget(&store, &named, args.dry_run).await
        };
        let forgotten = forgotten.await;
        store.connection().close().await;
        forgotten
    })?;
    let bucket = &named.bucket;
    if args.dry_run {
        return match forgotten {
            0 => Err(named.not_found()),
            _ => Ok(format!("{bucket} would be reset")),
        };
    }
    audit::log(
        &ResetRecord {
            store,
            policy: named.policy(),
            limit: named.limit().map_or("", |limit| &limit.name),
            key: &named.shown(),
            forgotten,
            is_complete: true,
        },
        environment,
    );
    match forgotten {
        0 => Err(named.not_found()),
        _ => Ok(format!("{bucket} is reset")),
    }
}
