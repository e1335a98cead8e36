//! The laws of stores, over every topology.

use crate::world::{self, World};
use tidegate_redis::{Options, Tag};
use tidegate_testkit::redis::Flavour;
use tidegate_testkit::store_laws;

mod standalone {
    use super::{Options, World, store_laws, world};
    store_laws!(|| World::new(
        world::standalone(world::shared_server()),
        Options::default()
    ));
}

mod tls_and_users {
    use super::{Options, World, store_laws, world};
    store_laws!(|| {
        let (server, certificates) = world::shared_secured();
        let settings = world::with_tls(world::standalone(server), certificates);
        World::new(world::with_login(settings), Options::default())
    });
}

mod sentinel {
    use super::{Options, World, store_laws, world};
    store_laws!(|| World::new(
        world::sentinel(world::shared_sentinels()),
        Options::default()
    ));
}

mod cluster_by_subject {
    use super::{Options, Tag, World, store_laws, world};
    store_laws!(|| World::new(
        world::cluster(world::shared_cluster()),
        Options::default().tag(Tag::Subject)
    ));
}

mod cluster_by_policy {
    use super::{Options, Tag, World, store_laws, world};
    store_laws!(|| World::new(
        world::cluster(world::shared_cluster()),
        Options::default().tag(Tag::Policy)
    ));
}

/// On a server of another make; nothing where it is not installed, which is a failure in CI.
fn on(flavour: Flavour) -> Option<World> {
    let server = world::shared_flavour(flavour)?;
    Some(World::new(world::standalone(server), Options::default()))
}

mod redis_8 {
    use super::{Flavour, on, store_laws};
    store_laws!(if_there => || on(Flavour::Redis8));
}

mod valkey_9 {
    use super::{Flavour, on, store_laws};
    store_laws!(if_there => || on(Flavour::Valkey9));
}
