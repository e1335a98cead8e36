//! What is kept in Redis besides buckets: lists of whom to refuse, and counts of who asks how often.
//! Each test runs on a single server of every make, and on a Cluster.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Runs functions that take a [`Ground`](kit::Ground) as tests, on each topology, and on servers of
/// other makes where they are installed.
macro_rules! everywhere {
    (@on $place:ident $ground:expr; $($test:ident)*) => {
        mod $place {
            use crate::lists::kit::Ground;
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
        everywhere! { @on standalone Some(Ground::standalone()); $($test)* }
        everywhere! { @on cluster Some(Ground::cluster()); $($test)* }
        everywhere! { @on redis_8 Ground::redis_8(); $($test)* }
        everywhere! { @on valkey_9 Ground::valkey_9(); $($test)* }
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
