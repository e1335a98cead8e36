//! The loads of Tidegate's store.

use std::sync::Arc;

use tidegate_core::{Ask, Quota};

use crate::drive::below;

/// The maximum number of buckets per request in these loads.
pub(crate) const BUCKETS_MAX: usize = 3;

/// A stream of requests.
pub(crate) struct Load {
    /// The bands of one request, in order.
    places: Vec<Place>,
    keys: usize,
    pick: Pick,
    /// The costs, chosen evenly.
    costs: &'static [u64],
    pub(crate) expect: Expect,
}

/// A band of a limit.
struct Place {
    limit: u16,
    quota: Quota,
    /// The bucket's name under this limit, for each key.
    names: Arc<[Box<[u8]>]>,
}

/// The choice of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// Any key, all alike.
    Each,
    /// Always the same key.
    Hot,
    /// Every second time the same key, otherwise any.
    Half,
}

/// The expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Everything passes.
    All,
    /// Nothing passes.
    None,
    /// Exactly as much passes as the quota allows.
    Some,
}

impl Load {
    /// One band, distinct keys; all pass.
    pub(crate) fn distinct(quota: Quota, keys: usize) -> Self {
        Self::new(&[(0, quota)], keys, Pick::Each)
    }

    /// One band, one key.
    pub(crate) fn hot(quota: Quota, expect: Expect) -> Self {
        Self {
            expect,
            ..Self::new(&[(0, quota)], 0, Pick::Hot)
        }
    }

    /// One key, costs from 1 to 5.
    pub(crate) fn hot_costs(quota: Quota) -> Self {
        Self {
            costs: &[1, 2, 3, 4, 5],
            ..Self::hot(quota, Expect::All)
        }
    }

    /// Every second request is for one key, the others for distinct ones.
    pub(crate) fn half_hot(quota: Quota, keys: usize) -> Self {
        Self::new(&[(0, quota)], keys, Pick::Half)
    }

    /// Three bands of one limit, distinct keys.
    pub(crate) fn bands(quotas: &[Quota; BUCKETS_MAX], keys: usize) -> Self {
        Self::new(&quotas.map(|quota| (0, quota)), keys, Pick::Each)
    }

    /// Three limits, each with its own bucket for each key.
    pub(crate) fn limits(quotas: &[Quota; BUCKETS_MAX], keys: usize) -> Self {
        let [one, two, three] = *quotas;
        Self::new(&[(0, one), (1, two), (2, three)], keys, Pick::Each)
    }

    fn new(bands: &[(u16, Quota)], keys: usize, pick: Pick) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for (limit, quota) in bands {
            let known = places.iter().find(|place| place.limit == *limit);
            let names = match known {
                Some(place) => Arc::clone(&place.names),
                None => names(*limit, keys),
            };
            places.push(Place {
                limit: *limit,
                quota: *quota,
                names,
            });
        }
        Self {
            places,
            keys,
            pick,
            costs: &[1],
            expect: Expect::All,
        }
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) fn only_hot(&self) -> bool {
        self.pick == Pick::Hot
    }

    /// The first quota.
    #[expect(clippy::indexing_slicing, reason = "there is one, by construction")]
    pub(crate) fn quota(&self) -> &Quota {
        &self.places[0].quota
    }

    /// Returns the key (`None` for the hot one) and the cost.
    pub(crate) fn draw(&self, draw: u64) -> (Option<usize>, u64) {
        let is_hot = match self.pick {
            Pick::Each => false,
            Pick::Hot => true,
            Pick::Half => draw & 1 == 0,
        };
        let key = (!is_hot).then(|| below(draw, self.keys));
        // The high bits chose the key.
        let cost = match self.costs {
            [only] => *only,
            costs => costs
                .get(below(draw << 32, costs.len()))
                .copied()
                .unwrap_or(1),
        };
        (key, cost)
    }

    /// Returns the request, and how many of its bands count.
    #[expect(
        clippy::indexing_slicing,
        reason = "keys are below the number of names"
    )]
    pub(crate) fn asks<'a>(
        &'a self,
        key: Option<usize>,
        hot: &'a [u8],
        cost: u64,
    ) -> ([Ask<'a>; BUCKETS_MAX], usize) {
        let asks = std::array::from_fn(|at| {
            let place = &self.places[at.min(self.places.len() - 1)];
            let bucket = key.map_or(hot, |key| &place.names[key]);
            Ask {
                limit: place.limit,
                ..Ask::take(bucket, &place.quota, cost)
            }
        });
        (asks, self.places.len())
    }
}

/// Returns names as policies make them: `policy/limit/subject`. Their keys are as long as the plain
/// script's.
fn names(limit: u16, keys: usize) -> Arc<[Box<[u8]>]> {
    let limit = ["calls", "burst", "daily"]
        .get(usize::from(limit))
        .unwrap_or(&"other");
    (0..keys)
        .map(|key| format!("api/{limit}/{key:012}").into_bytes().into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_share_a_bucket_and_limits_do_not() {
        let quota = Quota::new(1, 1_000_000).build().unwrap();
        let bands = Load::bands(&[quota; 3], 4);
        let (asks, len) = bands.asks(Some(2), b"hot", 1);
        assert_eq!(len, 3);
        assert!(
            asks.iter()
                .all(|ask| ask.bucket == b"api/calls/000000000002")
        );
        let limits = Load::limits(&[quota; 3], 4);
        let (asks, _) = limits.asks(Some(2), b"hot", 1);
        assert_ne!(asks[0].bucket, asks[1].bucket);
        assert_ne!(asks[1].bucket, asks[2].bucket);
        let hot = Load::hot(quota, Expect::All);
        let (asks, len) = hot.asks(None, b"hot", 5);
        assert_eq!((asks[0].bucket, len), (b"hot".as_slice(), 1));
    }
}
