//! The charges of a request, and their locations.

use super::payload::{ChargeHome, SealedBand, SealedCharge};
use crate::answers::{Answer, Answers};
use crate::failure::Share;
use smallvec::SmallVec;
use tidegate_core::{Ask, Quota, Receipt};

/// One ask that was charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReservedBand {
    /// Its index.
    pub(super) ask: usize,
    /// The location of its bucket; `quota` is the one it was charged under.
    pub(super) home: ChargeHome,
    pub(super) quota: Quota,
    pub(super) receipt: Receipt,
}

pub(super) type ReservedBands = SmallVec<[ReservedBand; 4]>;

/// Returns the charges of a request that passes, in the store or in memory.
pub(super) fn of(asks: &[Ask<'_>], answers: &Answers) -> ReservedBands {
    if !answers.passed {
        return ReservedBands::new();
    }
    let numbered = asks.iter().zip(&answers.list).enumerate();
    let part = |(nth, (ask, answer)): (usize, (&Ask<'_>, &Option<Answer>))| {
        let answer = answer.as_ref()?;
        let quota = match (answer.home, answers.share) {
            (ChargeHome::Here, Some(share)) => {
                let Share {
                    numerator,
                    denominator,
                } = share;
                ask.quota.at_share(numerator, denominator)
            }
            _ => *ask.quota,
        };
        Some(ReservedBand {
            ask: nth,
            home: answer.home,
            quota,
            receipt: answer.receipt?,
        })
    };
    numbered.filter_map(part).collect()
}

/// Groups the charges by bucket.
pub(super) fn by_bucket(asks: &[Ask<'_>], parts: &[ReservedBand]) -> Vec<SealedCharge> {
    let mut buckets: Vec<SealedCharge> = Vec::new();
    for part in parts {
        let Some(ask) = asks.get(part.ask) else {
            continue;
        };
        let lent = SealedBand {
            quota: part.quota,
            receipt: part.receipt,
        };
        let mut known = buckets.iter_mut();
        match known.find(|it| it.home == part.home && *it.name == *ask.bucket) {
            Some(bucket) => bucket.bands.push(lent),
            None => buckets.push(SealedCharge {
                home: part.home,
                name: ask.bucket.into(),
                scope: ask.scope,
                bands: vec![lent],
            }),
        }
    }
    buckets
}
