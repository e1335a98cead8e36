//! Resets every bucket of a limit: in batches, on every master.

use super::ResetArgs;
use super::audit::{self, ResetRecord};
use super::confirm::confirm;
use crate::commands::bucket::{is_only_of, keys_of_all, keys_of_blocks, policy_name};
use crate::commands::redis_store;
use crate::failure::Failure;
use crate::simulate::table::grouped;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use tidegate_policy::config::{Environment, RedisSettings};
use tidegate_policy::{Config, Limit};
use tidegate_redis::protocol;
use tidegate_redis::{Connection, NodeChoice, RedisTopology};

/// The number of keys that Redis scans for each reply: it serves other clients in between.
const BATCH: usize = 500;

/// Resets the buckets, and returns a message with their number.
pub(super) fn run(
    args: &ResetArgs,
    config: &Config,
    environment: &dyn Environment,
) -> Result<String, Failure> {
    let redis = redis_store::redis(config)?;
    let limit = args.bucket.limit.as_deref().unwrap_or_default();
    let policy = policy_name(config, args.bucket.policy.as_deref(), limit)?;
    let limit = find(config, &policy, limit)?;
    let what = format!(
        "every bucket of limit `{}` of policy `{policy}` in {redis} is to be as good as new",
        limit.name
    );
    if !args.yes && !args.dry_run {
        confirm(&what)?;
    }
    let mut walk = ResetWalk::new(config, &policy, limit, args.dry_run);
    walk.is_shown = true;
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
        let count = grouped(walk.forgotten);
        Failure::runtime(format!(
            "{failure}; {count} keys were forgotten before that"
        ))
    })?;
    Ok(walk.summary())
}

/// Returns the limit of that name.
pub(crate) fn find<'a>(
    config: &'a Config,
    policy: &str,
    limit: &str,
) -> Result<&'a Limit, Failure> {
    let of = config.policy(Some(policy));
    let of = of.ok_or_else(|| Failure::input(format!("there is no policy `{policy}`")))?;
    let found = of.limits.iter().find(|it| it.name == limit);
    found.ok_or_else(|| {
        let names: Vec<_> = of
            .limits
            .iter()
            .map(|it| format!("`{}`", it.name))
            .collect();
        let names = names.join(", ");
        Failure::input(format!(
            "policy `{policy}` has no limit `{limit}`; it has {names}"
        ))
    })
}

/// A scan of the keys of a limit.
#[derive(Debug)]
pub(crate) struct ResetWalk<'a> {
    config: &'a Config,
    policy: &'a str,
    limit: &'a Limit,
    is_dry: bool,
    /// The pattern matches no other limit's keys, as in the packed layout.
    is_sure: bool,
    /// Show the progress on the terminal.
    is_shown: bool,
    pub(crate) forgotten: u64,
    /// The number of keys that may belong to another limit.
    pub(crate) left: u64,
}

impl<'a> ResetWalk<'a> {
    pub(crate) fn new(config: &'a Config, policy: &'a str, limit: &'a Limit, is_dry: bool) -> Self {
        Self {
            config,
            policy,
            limit,
            is_dry,
            is_sure: limit.template.is_none(),
            is_shown: false,
            forgotten: 0,
            left: 0,
        }
    }

    /// Scans all masters. Keys that were removed before an error are counted.
    pub(crate) async fn all(
        &mut self,
        connection: &Connection,
        redis: &RedisSettings,
    ) -> Result<(), Failure> {
        let mut walked = Ok(());
        for pattern in keys_of_all(redis, self.policy, self.limit) {
            walked = walked.and(self.along(connection, &pattern).await);
        }
        if let Some(pattern) = keys_of_blocks(redis, self.policy, self.limit) {
            self.is_sure = true;
            walked = walked.and(self.along(connection, &pattern).await);
        }
        walked
    }

    async fn along(&mut self, connection: &Connection, pattern: &str) -> Result<(), Failure> {
        let mut scan = connection.scan(pattern, BATCH);
        while let Some(keys) = scan.next_batch().await.map_err(Failure::runtime)? {
            let found = keys.len();
            let keys: Vec<Vec<u8>> = keys.into_iter().filter(|key| self.is_ours(key)).collect();
            self.left += (found - keys.len()) as u64;
            if keys.is_empty() {
                continue;
            }
            self.forgotten += if self.is_dry {
                keys.len() as u64
            } else {
                forget(connection, &keys).await?
            };
            self.tell();
        }
        Ok(())
    }

    fn is_ours(&self, key: &[u8]) -> bool {
        self.is_sure
            || str::from_utf8(key)
                .is_ok_and(|key| is_only_of(self.config, self.policy, &self.limit.name, key))
    }

    /// Shows the progress on the terminal.
    fn tell(&self) {
        if !self.is_shown {
            return;
        }
        let mut err = io::stderr().lock();
        if err.is_terminal() {
            let count = grouped(self.forgotten);
            // A failure to show the progress does not matter.
            let told = write!(err, "\r{count} keys so far\x1b[K\r").and_then(|()| err.flush());
            told.ok();
        }
    }

    fn summary(&self) -> String {
        let count = grouped(self.forgotten);
        let mut text = match (self.is_dry, self.forgotten) {
            (true, 0) => "nothing would be forgotten".to_owned(),
            (true, _) => format!("about {count} keys would be forgotten"),
            (false, 1) => "1 key was forgotten".to_owned(),
            (false, _) => format!("{count} keys were forgotten"),
        };
        if self.left > 0 {
            let left = grouped(self.left);
            let _ = write!(text, "; {left} may be another limit's, and were left alone");
        }
        text
    }
}

/// Removes keys, and returns how many existed.
async fn forget(connection: &Connection, keys: &[Vec<u8>]) -> Result<u64, Failure> {
    let Some(first) = keys.first() else {
        return Ok(0);
    };
    if *connection.mode() == RedisTopology::Cluster {
        return connection.del(keys).await.map_err(Failure::runtime);
    }
    let mut command = protocol::cmd("DEL");
    command.arg(keys);
    let reply = connection.command(NodeChoice::Key(first), &command).await;
    match reply.map_err(Failure::runtime)? {
        protocol::Value::Int(count) => Ok(u64::try_from(count).unwrap_or(0)),
        other => Err(Failure::runtime(format!("DEL answered {other:?}"))),
    }
}
