//! The store laws over every topology.

use crate::world::{self, World};
use tidegate_redis::{HashTag, RedisOptions};
use tidegate_testkit::redis::ServerProgram;
use tidegate_testkit::store_laws;

mod standalone {
    use super::{RedisOptions, World, store_laws, world};
    store_laws!(|| World::new(
        world::standalone(world::shared_server()),
        RedisOptions::default()
    ));
}

mod tls_and_users {
    use super::{RedisOptions, World, store_laws, world};
    store_laws!(|| {
        let (server, certificates) = world::shared_secured();
        let settings = world::with_tls(world::standalone(server), certificates);
        World::new(world::with_login(settings), RedisOptions::default())
    });
}

mod sentinel {
    use super::{RedisOptions, World, store_laws, world};
    store_laws!(|| World::new(
        world::sentinel(world::shared_sentinels()),
        RedisOptions::default()
    ));
}

mod cluster_by_subject {
    use super::{HashTag, RedisOptions, World, store_laws, world};
    store_laws!(|| World::new(
        world::cluster(world::shared_cluster()),
        RedisOptions::default().tag(HashTag::Subject)
    ));
}

mod cluster_by_policy {
    use super::{HashTag, RedisOptions, World, store_laws, world};
    store_laws!(|| World::new(
        world::cluster(world::shared_cluster()),
        RedisOptions::default().tag(HashTag::Policy)
    ));
}

/// Returns a world on another server program; `None` if it is not installed, which fails in CI.
fn on(flavour: ServerProgram) -> Option<World> {
    let server = world::shared_flavour(flavour)?;
    Some(World::new(
        world::standalone(server),
        RedisOptions::default(),
    ))
}

mod redis_8 {
    use super::{ServerProgram, on, store_laws};
    store_laws!(if_there => || on(ServerProgram::Redis8));
}

mod valkey_9 {
    use super::{ServerProgram, on, store_laws};
    store_laws!(if_there => || on(ServerProgram::Valkey9));
}
