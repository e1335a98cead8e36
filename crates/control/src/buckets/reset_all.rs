//! Resets every bucket of a limit: in batches, on every master.
//!
//! A scan is not atomic: keys that are created while it runs may be missed, and requests continue to charge
//! buckets that it has already removed. In the open layout a pattern may match keys of another limit. Those are
//! counted in [`ResetWalk::left`], and never removed.

use super::{is_only_of, keys_of_all, keys_of_blocks};
use crate::failure::Failure;
use tidegate::AnyStore;
use tidegate_config::Config;
use tidegate_policy::Limit;
use tidegate_policy::store::RedisSettings;
use tidegate_redis_client::protocol;
use tidegate_redis_client::{Connection, NodeChoice, RedisTopology};

/// The number of keys that Redis scans for each reply: it serves other clients in between.
const BATCH: usize = 500;

/// Returns the limit of that name.
///
/// # Errors
///
/// [`Failure::Input`] with the names of the existing limits.
pub fn find<'a>(config: &'a Config, policy: &str, limit: &str) -> Result<&'a Limit, Failure> {
    let of = config.policy(Some(policy));
    let of = of.ok_or_else(|| Failure::input(format!("unknown policy `{policy}`")))?;
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
pub struct ResetWalk<'a> {
    config: &'a Config,
    policy: &'a str,
    limit: &'a Limit,
    is_dry: bool,
    /// The pattern matches no other limit's keys, as in the packed layout.
    is_sure: bool,
    /// Called with the number of removed keys after each batch.
    progress: fn(u64),
    /// The number of keys that were removed.
    pub forgotten: u64,
    /// The number of keys that may belong to another limit.
    pub left: u64,
}

impl<'a> ResetWalk<'a> {
    /// Creates a scan of the keys of `limit`. A dry one removes nothing.
    pub fn new(config: &'a Config, policy: &'a str, limit: &'a Limit, is_dry: bool) -> Self {
        Self {
            config,
            policy,
            limit,
            is_dry,
            is_sure: limit.template.is_none(),
            progress: |_| {},
            forgotten: 0,
            left: 0,
        }
    }

    /// Reports the number of removed keys to `progress`, after each batch.
    #[must_use]
    pub fn shown_by(self, progress: fn(u64)) -> Self {
        Self { progress, ..self }
    }

    /// Scans the store of a server. Returns false if it cannot list its buckets; then nothing is reset.
    pub(crate) async fn all_in(&mut self, store: &AnyStore) -> Result<bool, Failure> {
        let redis = self.config.store.target.redis();
        let Some((store, redis)) = store.redis().zip(redis) else {
            return Ok(false);
        };
        self.all(store.connection(), redis).await.map(|()| true)
    }

    /// Scans all masters. Keys that were removed before an error are counted.
    ///
    /// # Errors
    ///
    /// [`Failure::Runtime`] if a master did not answer. The other patterns are scanned all the same, and a second
    /// call removes the remaining keys.
    pub async fn all(
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
            (self.progress)(self.forgotten);
        }
        Ok(())
    }

    fn is_ours(&self, key: &[u8]) -> bool {
        self.is_sure
            || str::from_utf8(key)
                .is_ok_and(|key| is_only_of(self.config, self.policy, &self.limit.name, key))
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
