//! Counting requests by address, and banning addresses over the threshold: on a single Redis, and on a
//! Cluster.

/// Redis becomes unreachable and recovers.
mod away;
/// Banned and exempt clients, and the duration of bans.
mod bans;
/// The requests that count, and the addresses they count for.
mod counts;
/// The ends of bans, and the time reported to banned clients.
mod ends;
/// Servers to count in, and instances that count.
mod kit;
/// A reload while counts are in flight.
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
