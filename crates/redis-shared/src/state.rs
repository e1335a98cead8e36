//! State that instances share in addition to buckets, as core names it.

use crate::address_counts::MapCounts;
use crate::bans::Bans;
use crate::failure::store_error;
use crate::heartbeat::Heartbeat;
use crate::secret;
use crate::sets::RedisSets;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_core::SharedState;
use tidegate_core::shared_state::{
    CountMap, Roll, SetMembers, SharedCounts, SharedInstances, SharedSets, StateFuture,
};
use tidegate_redis_client::Connection;

/// State that instances share in Redis in addition to buckets. Clones are cheap and share everything.
///
/// Sets and counts are named by the configuration. The list of instances is `<prefix>instances`, the
/// secret `<prefix>seal`.
///
/// # Examples
///
/// ```no_run
/// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_core::SharedState;
/// use tidegate_redis_shared::RedisSharedState;
///
/// let state = RedisSharedState::new(connection, "tg:");
/// let sets = state.sets().expect("Redis has sets");
/// let banned = sets.read("BlacklistIPsSet", 1_000_000, std::time::Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisSharedState {
    sets: RedisSets,
    prefix: String,
    heartbeat: Arc<OnceLock<Heartbeat>>,
}

impl RedisSharedState {
    /// Returns the shared state in the Redis that `connection` leads to. Instances with the same `prefix`
    /// share it.
    pub fn new(connection: Connection, prefix: impl Into<String>) -> Self {
        Self {
            sets: RedisSets::new(connection),
            prefix: prefix.into(),
            heartbeat: Arc::default(),
        }
    }

    /// Enters this instance into the list of those that share the store.
    pub fn list_instance(&self) {
        self.heartbeat
            .get_or_init(|| Heartbeat::start(self.sets.connection(), &self.prefix));
    }

    /// Returns the heartbeat of this instance, if it is [listed](Self::list_instance).
    pub fn heartbeat(&self) -> Option<&Heartbeat> {
        self.heartbeat.get()
    }
}

impl SharedState for RedisSharedState {
    fn sets(&self) -> Option<&dyn SharedSets> {
        Some(&self.sets)
    }

    fn counts(&self, map: &CountMap) -> Option<Box<dyn SharedCounts>> {
        let connection = self.sets.connection().clone();
        Some(Box::new(MapCounts::new(connection, map)))
    }

    fn instances(&self) -> Option<&dyn SharedInstances> {
        Some(self.heartbeat()?)
    }

    /// Fails after the timeout of a decision.
    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        let connection = self.sets.connection();
        let time = connection.settings().timeout;
        Some(Box::pin(async move {
            let key = format!("{}seal", self.prefix);
            secret::agree(connection, key.as_bytes(), proposal, time).await
        }))
    }
}

/// Sets, and with each the ends of its members: see [`Bans`].
impl SharedSets for RedisSets {
    fn ready(&self) -> StateFuture<'_, ()> {
        Box::pin(async {
            match self.connection().settled().await {
                Err(error) if !self.connection().is_connected() => Err(store_error(error)),
                _ => Ok(()),
            }
        })
    }

    fn read<'a>(&'a self, set: &'a str, max: usize, time: Duration) -> StateFuture<'a, SetMembers> {
        Box::pin(async move {
            let members = self.members(set.as_bytes(), max, time).await;
            members.map_err(store_error)
        })
    }

    fn add<'a>(
        &'a self,
        set: &'a str,
        members: &'a [&'a [u8]],
        length: Option<Duration>,
    ) -> StateFuture<'a, SetMembers> {
        Box::pin(async move {
            bans(self.connection(), set)
                .ban(members, length)
                .await
                .map_err(store_error)
        })
    }

    fn expire<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        Box::pin(async move {
            bans(self.connection(), set)
                .expire_ended()
                .await
                .map_err(store_error)
        })
    }

    fn expire_and_tidy<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        Box::pin(async move {
            bans(self.connection(), set)
                .expire()
                .await
                .map_err(store_error)
        })
    }

    fn ends<'a>(
        &'a self,
        set: &'a str,
        max: usize,
        time: Duration,
    ) -> StateFuture<'a, Vec<(Vec<u8>, Duration)>> {
        Box::pin(async move {
            bans(self.connection(), set)
                .ends(max, time)
                .await
                .map_err(store_error)
        })
    }
}

fn bans(connection: &Connection, set: &str) -> Bans {
    Bans::new(connection.clone(), set)
}

impl SharedInstances for Heartbeat {
    fn id(&self) -> &str {
        self.id()
    }

    fn count(&self) -> Arc<AtomicU32> {
        self.count()
    }

    fn announce(&self, version: &str, program: &str, zones: &str) {
        self.announce(version, program, zones);
    }

    fn last_roll(&self) -> Option<Roll> {
        self.last_roll()
    }

    fn roll(&self, patience: Duration) -> StateFuture<'_, Option<Roll>> {
        Box::pin(async move { Ok(self.roll(patience).await) })
    }

    fn leave(&self) -> StateFuture<'_, ()> {
        Box::pin(async { self.close().await.map_err(store_error) })
    }
}
