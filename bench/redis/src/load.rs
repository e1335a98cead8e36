//! The loads of Tidegate's store.

use std::sync::Arc;

use tidegate_core::{Ask, Quota};

use crate::drive::below;

/// The maximum number of buckets per request in these loads.
pub(crate) const BUCKETS_MAX: usize = 6;

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
    /// The amount of the limit's unit that a request of cost 1 consumes.
    amount: u64,
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

    /// Bands of one limit, distinct keys.
    pub(crate) fn bands(quotas: &[Quota], keys: usize) -> Self {
        let bands: Vec<_> = quotas.iter().map(|quota| (0, *quota)).collect();
        Self::new(&bands, keys, Pick::Each)
    }

    /// Limits of one band, each with its own bucket for each key.
    pub(crate) fn limits(quotas: &[Quota], keys: usize) -> Self {
        let limits: Vec<_> = (0..).zip(quotas.iter().copied()).collect();
        Self::new(&limits, keys, Pick::Each)
    }

    /// Limits of several bands, each with its own key, and the amount of its unit that a request consumes.
    pub(crate) fn units(limits: &[(u64, &[Quota])], keys: usize) -> Self {
        let limits = || (0..).zip(limits);
        let bands: Vec<_> = limits()
            .flat_map(|(limit, (_, quotas))| quotas.iter().map(move |quota| (limit, *quota)))
            .collect();
        let mut load = Self::new(&bands, keys, Pick::Each);
        for place in &mut load.places {
            let of = |(limit, (amount, _)): (u16, &(u64, _))| (limit == place.limit).then_some(*amount);
            place.amount = limits().find_map(of).unwrap_or(1);
        }
        load
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
                amount: 1,
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
                ..Ask::take(bucket, &place.quota, cost.saturating_mul(place.amount))
            }
        });
        (asks, self.places.len())
    }
}

/// Returns names as policies make them: `policy/limit/subject`. Their keys are as long as the plain
/// script's.
fn names(limit: u16, keys: usize) -> Arc<[Box<[u8]>]> {
    let limit = ["calls", "burst", "daily", "token", "money", "bytes"]
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
        let units = Load::units(&[(1, &[quota; 2]), (800, &[quota; 2])], 4);
        let (asks, len) = units.asks(Some(2), b"hot", 1);
        assert_eq!(asks[..len].iter().map(|ask| ask.op.cost()).collect::<Vec<_>>(), [1, 1, 800, 800]);
        assert_eq!(asks[0].bucket, asks[1].bucket);
        assert_ne!(asks[1].bucket, asks[2].bucket);
        let hot = Load::hot(quota, Expect::All);
        let (asks, len) = hot.asks(None, b"hot", 5);
        assert_eq!((asks[0].bucket, len), (b"hot".as_slice(), 1));
    }
}
