//! Counting who asks, and banning who asks too often: on a single Redis, and on a Cluster.

/// Redis goes away and comes back.
mod away;
/// Who is banned, for how long, and who never.
mod bans;
/// What counts, and for whom.
mod counts;
/// When bans end, and what those are told.
mod ends;
/// Somewhere to count, and somebody who does.
mod kit;
/// Another configuration while counts are under way.
mod reload;

/// Runs functions that take a [`Place`](kit::Place) as tests, on each topology.
macro_rules! everywhere {
    ($($test:ident)*) => {
        mod standalone {
            $(
                #[test]
                fn $test() {
                    super::$test(&crate::counting::kit::Place::standalone());
                }
            )*
        }
        mod cluster {
            $(
                #[test]
                fn $test() {
                    super::$test(&crate::counting::kit::Place::cluster());
                }
            )*
        }
    };
}
use everywhere;
