//! What a decision has charged, to be given back at most once.

use crate::decision::RequestLimits;
use crate::planning::PreparedPlans;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_core::{Algorithm, Ask, LimitMode, Op, Quota, Receipt};

/// What a decision has charged. Its clones share this, so that it is given back once.
pub(crate) struct Charges {
    /// Those by which it was charged: giving back goes by the same quotas.
    rules: Arc<Rules>,
    policy: usize,
    /// Quotas that the request brought itself.
    brought: Option<Arc<RequestLimits>>,
    /// Quotas that a plan told.
    planned: Option<Arc<PreparedPlans>>,
    pub(crate) list: SmallVec<[BucketCharge; 2]>,
    is_claimed: AtomicBool,
}

/// What one bucket was charged.
pub(crate) struct BucketCharge {
    /// The number of the ask that was charged.
    pub(crate) ask: usize,
    pub(crate) bucket: Box<[u8]>,
    pub(crate) scope: usize,
    /// The numbers of the limit and of the band; where the request brought it, of the descriptor.
    pub(crate) limit: usize,
    pub(crate) band: usize,
    /// The number of the rate that a plan told, if it was by one.
    pub(crate) rate: Option<u32>,
    pub(crate) receipt: Receipt,
}

impl Charges {
    pub(crate) fn new(rules: Arc<Rules>, policy: usize, list: SmallVec<[BucketCharge; 2]>) -> Self {
        Self {
            rules,
            policy,
            brought: None,
            planned: None,
            list,
            is_claimed: AtomicBool::new(false),
        }
    }

    /// The same, made by quotas of which some were brought by the request.
    pub(crate) fn bringing(self, brought: Option<Arc<RequestLimits>>) -> Self {
        Self { brought, ..self }
    }

    /// The same, made by quotas of which some were told by plans.
    pub(crate) fn planned(self, planned: Option<Arc<PreparedPlans>>) -> Self {
        Self { planned, ..self }
    }

    /// Whether the caller is the one who gives this back: the first who asks.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Relaxed)
    }

    /// Whether `charge` is of a bucket in which others may have places behind it.
    pub(crate) fn is_place(&self, charge: &BucketCharge) -> bool {
        let limit = self.rules.limit(self.policy, charge.limit);
        limit.is_some_and(|it| it.waiting.is_some() && it.algorithm == Algorithm::TokenBucket)
    }

    /// Those that may be given back to a store that others share: they cannot be told to move up, so
    /// nothing that somebody may have a place behind.
    pub(crate) fn to_share(&self) -> SmallVec<[&BucketCharge; 2]> {
        let charges = self.list.iter();
        charges.filter(|charge| !self.is_place(charge)).collect()
    }

    /// The asks that give `list` back by `receipts`, one for each of them.
    pub(crate) fn asks<'a>(
        &'a self,
        list: &[&'a BucketCharge],
        receipts: &[Receipt],
    ) -> SmallVec<[Ask<'a>; 2]> {
        let ask = |(charge, receipt): (&&'a BucketCharge, &Receipt)| {
            Some(Ask {
                bucket: &charge.bucket,
                scope: charge.scope,
                quota: self.quota(charge)?,
                op: Op::GiveBack(*receipt),
                limit: 0,
                mode: LimitMode::Enforce,
            })
        };
        list.iter().zip(receipts).filter_map(ask).collect()
    }

    /// The quota by which `charge` was made.
    pub(crate) fn quota(&self, charge: &BucketCharge) -> Option<&Quota> {
        if let Some(rate) = charge.rate {
            let planned = self.planned.as_ref()?;
            let band = planned.band(self.policy, charge.limit, rate)?;
            return Some(&band.quota);
        }
        let limit = self.rules.limit(self.policy, charge.limit)?;
        if limit.bands.is_empty() {
            let descriptor = u16::try_from(charge.band).ok()?;
            let (band, _) = self.brought.as_ref()?.get(descriptor)?;
            return Some(&band.quota);
        }
        Some(&limit.bands.get(charge.band)?.quota)
    }
}

// By hand: buckets are named after clients.
impl fmt::Debug for Charges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charges")
            .field("count", &self.list.len())
            .finish_non_exhaustive()
    }
}
