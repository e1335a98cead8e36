//! What instances share in addition to buckets, as core names it.

use crate::bans::Bans;
use crate::census::MapCounts;
use crate::connection::Connection;
use crate::heartbeat::Heartbeat;
use crate::secret;
use crate::store::RedisStore;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use tidegate_core::SharedState;
use tidegate_core::shared_state::{
    CountMap, Roll, SetMembers, SharedCounts, SharedInstances, SharedSets, StateFuture,
};

impl SharedState for RedisStore {
    fn sets(&self) -> Option<&dyn SharedSets> {
        Some(self.connection())
    }

    fn counts(&self, map: &CountMap) -> Option<Box<dyn SharedCounts>> {
        Some(Box::new(MapCounts::new(self.connection().clone(), map)))
    }

    fn instances(&self) -> Option<&dyn SharedInstances> {
        Some(self.heartbeat()?)
    }

    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        Some(Box::pin(secret::agree(self.shared(), proposal)))
    }
}

/// Sets, and beside each the ends of its members: see [`Bans`].
impl SharedSets for Connection {
    fn ready(&self) -> StateFuture<'_, ()> {
        Box::pin(async {
            match self.settled().await {
                Err(error) if !self.is_connected() => Err(error.into()),
                _ => Ok(()),
            }
        })
    }

    fn read<'a>(&'a self, set: &'a str, max: usize, time: Duration) -> StateFuture<'a, SetMembers> {
        Box::pin(async move { Ok(self.members(set.as_bytes(), max, time).await?) })
    }

    fn add<'a>(
        &'a self,
        set: &'a str,
        members: &'a [&'a [u8]],
        length: Option<Duration>,
    ) -> StateFuture<'a, SetMembers> {
        Box::pin(async move { Ok(bans(self, set).ban(members, length).await?) })
    }

    fn expire<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        Box::pin(async move { Ok(bans(self, set).expire_ended().await?) })
    }

    fn expire_and_tidy<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        Box::pin(async move { Ok(bans(self, set).expire().await?) })
    }

    fn ends<'a>(
        &'a self,
        set: &'a str,
        max: usize,
        time: Duration,
    ) -> StateFuture<'a, Vec<(Vec<u8>, Duration)>> {
        Box::pin(async move { Ok(bans(self, set).ends(max, time).await?) })
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

    fn announce(&self, version: &str, program: &str) {
        self.tell(version, program);
    }

    fn heard(&self) -> Option<Roll> {
        self.heard()
    }

    fn roll(&self, patience: Duration) -> StateFuture<'_, Option<Roll>> {
        Box::pin(async move { Ok(self.roll(patience).await) })
    }

    fn leave(&self) -> StateFuture<'_, ()> {
        Box::pin(async { Ok(self.close().await?) })
    }
}
