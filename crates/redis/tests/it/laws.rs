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

/// A server of another make; the law passes unseen where it is not installed (which is a failure in
/// CI).
macro_rules! flavour_laws {
    ($flavour:expr; $($law:ident)*) => {
        $(
            #[test]
            fn $law() {
                if let Some(server) = super::world::shared_flavour($flavour) {
                    let settings = super::world::standalone(server);
                    let world = super::World::new(settings, super::Options::default());
                    tidegate_testkit::laws::$law(&world);
                }
            }
        )*
    };
    ($flavour:expr) => {
        flavour_laws! { $flavour;
            law_1_all_or_nothing
            law_1_all_or_nothing_under_contention
            law_2_burst_1_refuses
            law_2_never_over
            law_3_one_clock
            law_4_nothing_lost
            law_5_as_long_as_it_matters
            law_6_honest_refusals
            law_7_free_refusals
            law_8_shadows_are_silent
            law_9_force_charges
            law_10_giving_back_is_safe
            law_11_in_order
            law_11_twice_is_twice
            reset_makes_as_good_as_new
        }
    };
}

mod redis_8 {
    flavour_laws!(super::Flavour::Redis8);
}

mod valkey_9 {
    flavour_laws!(super::Flavour::Valkey9);
}
