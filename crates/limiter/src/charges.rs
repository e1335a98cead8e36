//! The charges of a decision, to be refunded at most once, and its permits, which are released when its last
//! holder is gone.

use crate::permits::HeldPermits;
use crate::plans::PreparedPlans;
use crate::request_limits::RequestLimits;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_core::{Ask, LimitMode, Op, Quota, Receipt};

/// The charges of a decision. Clones of the decision share them, so that they are refunded once.
pub(crate) struct Charges {
    /// The rules under which they were made: a refund uses the same quotas.
    rules: Arc<Rules>,
    policy: usize,
    /// Quotas that the request carried itself.
    brought: Option<Arc<RequestLimits>>,
    /// Quotas from a plan.
    planned: Option<Arc<PreparedPlans>>,
    pub(crate) list: SmallVec<[BucketCharge; 2]>,
    is_claimed: AtomicBool,
    /// The permits of limits of requests in flight.
    permits: HeldPermits,
}

/// The charge to one bucket.
pub(crate) struct BucketCharge {
    /// The index of the ask that was charged.
    pub(crate) ask: usize,
    pub(crate) bucket: Box<[u8]>,
    pub(crate) scope: usize,
    /// The index of the limit. `band` is the index of the band; for a limit that the request carried, of the
    /// descriptor.
    pub(crate) limit: usize,
    pub(crate) band: usize,
    /// The index of the rate in its plan, if it came from one.
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
            permits: HeldPermits::default(),
        }
    }

    /// Returns the same charges, which also hold these permits.
    pub(crate) fn holding(self, permits: HeldPermits) -> Self {
        Self { permits, ..self }
    }

    /// Returns the permits that are released with these charges, at the latest.
    pub(crate) fn permits(&self) -> &HeldPermits {
        &self.permits
    }

    /// Returns the same charges, with the quotas that the request carried.
    pub(crate) fn bringing(self, brought: Option<Arc<RequestLimits>>) -> Self {
        Self { brought, ..self }
    }

    /// Returns the same charges, with the quotas from plans.
    pub(crate) fn planned(self, planned: Option<Arc<PreparedPlans>>) -> Self {
        Self { planned, ..self }
    }

    /// Returns true for the first caller, which makes the refund.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Relaxed)
    }

    /// Returns true if `charge` belongs to a bucket in which other requests may have places behind it.
    pub(crate) fn is_place(&self, charge: &BucketCharge) -> bool {
        let limit = self.rules.limit(self.policy, charge.limit);
        limit.is_some_and(|it| it.waiting.is_some() && it.algorithm.has_places())
    }

    /// Returns true if any of the charges can be refunded, to a shared store or to one in memory.
    pub(crate) fn is_refundable(&self, is_shared: bool) -> bool {
        if is_shared {
            !self.to_share().is_empty()
        } else {
            !self.list.is_empty()
        }
    }

    /// Returns the charges that may be refunded to a shared store. Other instances cannot be made to move up,
    /// so charges with possible places behind them are left out.
    pub(crate) fn to_share(&self) -> SmallVec<[&BucketCharge; 2]> {
        let charges = self.list.iter();
        charges.filter(|charge| !self.is_place(charge)).collect()
    }

    /// Returns the asks that refund `list` by `receipts`, one for each of them.
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

    /// Returns the quota under which `charge` was made.
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

// Implemented by hand: buckets are named after clients.
impl fmt::Debug for Charges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charges")
            .field("count", &self.list.len())
            .finish_non_exhaustive()
    }
}
