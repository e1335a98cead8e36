//! What was charged of a question, and where.

use super::payload::{Charged, Home, Lent};
use smallvec::SmallVec;
use tidegate_core::{Ask, Mode, Op, Outcome, Quota, Receipt, Reply};

/// One ask that was charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Its number.
    pub(crate) ask: usize,
    /// Where its bucket is, and by which quota it was charged.
    pub(crate) home: Home,
    pub(crate) quota: Quota,
    pub(crate) receipt: Receipt,
}

pub(super) type Parts = SmallVec<[Part; 4]>;

/// How much an ask takes, if it takes anything.
pub(crate) fn cost_of(op: Op) -> Option<u64> {
    if let Op::Take(cost @ 1..) = op {
        Some(cost)
    } else {
        None
    }
}

/// Whether an ask was charged by a reply that passes: one that is only watched, if all of its limit
/// would have allowed.
pub(crate) fn is_charged(ask: &Ask<'_>, asks: &[Ask<'_>], outcomes: &[Outcome]) -> bool {
    let of_limit = |(other, outcome): (&Ask<'_>, &Outcome)| {
        other.limit != ask.limit || other.mode != ask.mode || outcome.is_allowed()
    };
    ask.mode == Mode::Enforce || asks.iter().zip(outcomes).all(of_limit)
}

/// What the store has charged.
pub(super) fn of_reply(asks: &[Ask<'_>], reply: &Reply) -> Parts {
    if !reply.passed {
        return Parts::new();
    }
    let part = |(i, ask): (usize, &Ask<'_>)| {
        let cost = cost_of(ask.op)?;
        is_charged(ask, asks, &reply.outcomes).then(|| Part {
            ask: i,
            home: Home::Store,
            quota: *ask.quota,
            receipt: reply.receipt(i, cost),
        })
    };
    asks.iter().enumerate().filter_map(part).collect()
}

/// The buckets that were charged, each with its bands.
pub(super) fn by_bucket(asks: &[Ask<'_>], parts: &[Part]) -> Vec<Charged> {
    let mut buckets: Vec<Charged> = Vec::new();
    for part in parts {
        let Some(ask) = asks.get(part.ask) else {
            continue;
        };
        let lent = Lent {
            quota: part.quota,
            receipt: part.receipt,
        };
        let mut known = buckets.iter_mut();
        match known.find(|it| it.home == part.home && *it.name == *ask.bucket) {
            Some(bucket) => bucket.bands.push(lent),
            None => buckets.push(Charged {
                home: part.home,
                name: ask.bucket.into(),
                scope: ask.scope,
                bands: vec![lent],
            }),
        }
    }
    buckets
}
