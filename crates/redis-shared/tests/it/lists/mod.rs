//! Shared state in Redis besides buckets: lists for guards, and counts by address. Each test runs
//! on every server program, and on a Cluster.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Runs functions that take a [`TestRedis`](kit::TestRedis) as tests, on each topology, and on other
/// server programs if they are installed.
macro_rules! everywhere {
    (@on $place:ident $ground:expr; $($test:ident)*) => {
        mod $place {
            use crate::lists::kit::TestRedis;
            $(
                #[test]
                fn $test() {
                    if let Some(ground) = $ground {
                        super::$test(&ground);
                    }
                }
            )*
        }
    };
    ($($test:ident)*) => {
        everywhere! { @on standalone Some(TestRedis::standalone()); $($test)* }
        everywhere! { @on cluster Some(TestRedis::cluster()); $($test)* }
        everywhere! { @on redis_8 TestRedis::redis_8(); $($test)* }
        everywhere! { @on valkey_9 TestRedis::valkey_9(); $($test)* }
    };
}

mod bans;
mod census;
mod closing;
mod kit;
mod lost_replies;
mod rights;
mod schedule;
mod sets;
mod shared_state;
