//! What a decision has charged, to be given back at most once.

use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_core::{Ask, Mode, Op, Quota, Receipt};

/// What a decision has charged. Its clones share this, so that it is given back once.
pub(crate) struct Charges {
    /// Those by which it was charged: giving back goes by the same quotas.
    rules: Arc<Rules>,
    policy: usize,
    pub(crate) list: SmallVec<[Charge; 2]>,
    is_claimed: AtomicBool,
}

/// What one bucket was charged.
pub(crate) struct Charge {
    pub(crate) bucket: Box<[u8]>,
    pub(crate) scope: usize,
    /// The numbers of the limit and of the band.
    pub(crate) limit: usize,
    pub(crate) band: usize,
    pub(crate) receipt: Receipt,
}

impl Charges {
    pub(crate) fn new(rules: Arc<Rules>, policy: usize, list: SmallVec<[Charge; 2]>) -> Self {
        Self {
            rules,
            policy,
            list,
            is_claimed: AtomicBool::new(false),
        }
    }

    /// Whether the caller is the one who gives this back: the first who asks.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Relaxed)
    }

    /// The asks that give it back by `receipts`, one for each charge.
    pub(crate) fn asks<'a>(&'a self, receipts: &[Receipt]) -> SmallVec<[Ask<'a>; 2]> {
        let charges = self.list.iter().zip(receipts);
        let ask = |(charge, receipt): (&'a Charge, &Receipt)| {
            Some(Ask {
                bucket: &charge.bucket,
                scope: charge.scope,
                quota: self.quota(charge)?,
                op: Op::GiveBack(*receipt),
                limit: 0,
                mode: Mode::Enforce,
            })
        };
        charges.filter_map(ask).collect()
    }

    /// The quota by which `charge` was made.
    pub(crate) fn quota(&self, charge: &Charge) -> Option<&Quota> {
        let limit = self.rules.limit(self.policy, charge.limit)?;
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
