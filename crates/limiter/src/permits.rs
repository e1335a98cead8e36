//! Permits of limits of requests in flight, from a decision to the end of its request.
//!
//! A decision that passes holds its permits with its charges. They are released once: when the last clone of the
//! decision and of its [`Permit`](crate::Permit) is dropped, or before that by
//! an explicit call.

use crate::by_limit::ByLimit;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use tidegate_core::ask::PermitId;
use tidegate_core::{Ask, LimitMode, Op, Quota, Receipt};
use tidegate_policy::Policy;

/// Takes permits back, without waiting.
pub(crate) trait ReleasePermits: Send + Sync {
    /// Releases the permits of these asks, each an [`Op::GiveBack`], and wakes requests that wait for them.
    fn release(&self, asks: &[Ask<'_>]);
}

/// The way of permits back to their limiter. All versions of its rules share it. While there is no limiter, or if
/// it is gone with its store, nothing is released.
#[derive(Clone, Default)]
pub(crate) struct PermitRelay(Arc<RwLock<Option<Weak<dyn ReleasePermits>>>>);

impl PermitRelay {
    /// Releases permits at `limiter` from now on.
    pub(crate) fn set(&self, limiter: Weak<dyn ReleasePermits>) {
        *self.0.write() = Some(limiter);
    }

    fn limiter(&self) -> Option<Arc<dyn ReleasePermits>> {
        self.0.read().as_ref()?.upgrade()
    }
}

impl fmt::Debug for PermitRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitRelay").finish_non_exhaustive()
    }
}

/// The permits of one limit that decisions of this process hold.
#[derive(Debug, Default)]
pub(crate) struct PermitCount {
    now: AtomicU64,
    most: AtomicU64,
}

/// The counts of all limits of requests in flight.
pub(crate) type PermitCounts = ByLimit<PermitCount>;

/// The permits that decisions hold at one limit: see [`Limiter::in_flight`](crate::Limiter::in_flight).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InFlightStatus {
    /// The name of the policy.
    pub policy: String,
    /// The name of the limit.
    pub limit: String,
    /// The permits that are held now, of all buckets together.
    pub held: u64,
    /// The most that were held at once since the limiter began.
    pub held_max: u64,
}

/// Returns the counts of `policies`; reuses those of `earlier` policies.
pub(crate) fn counts_of(
    policies: &[Policy],
    earlier: Option<(&[Policy], &PermitCounts)>,
) -> PermitCounts {
    ByLimit::of(policies, earlier, |_, limit| {
        limit.enabled && limit.algorithm.is_concurrent()
    })
}

/// Returns the permits held at each limit of `policies`, which must be those of `counts`.
pub(crate) fn in_flight(counts: &PermitCounts, policies: &[Policy]) -> Vec<InFlightStatus> {
    let counts = counts.each(policies);
    counts
        .map(|(policy, limit, count)| InFlightStatus {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            held: count.now.load(Relaxed),
            held_max: count.most.load(Relaxed),
        })
        .collect()
}

impl PermitCount {
    fn begin(&self, permits: u64) {
        let before = self.now.fetch_add(permits, Relaxed);
        self.most.fetch_max(before.saturating_add(permits), Relaxed);
    }

    fn end(&self, permits: u64) {
        self.now.fetch_sub(permits, Relaxed);
    }
}

/// The permits of one decision, which are released once: at the latest when this is dropped.
#[derive(Default)]
pub(crate) struct HeldPermits {
    list: Vec<HeldPermit>,
    relay: Option<PermitRelay>,
    is_released: AtomicBool,
}

/// The permits of one bucket.
struct HeldPermit {
    bucket: Box<[u8]>,
    scope: usize,
    /// By value: a reload must not change where they are released.
    quota: Box<Quota>,
    receipt: Receipt,
    count: Option<Arc<PermitCount>>,
}

impl HeldPermits {
    /// Adds the permits that `ask` took, to be released by `relay`, and counted until then.
    pub(crate) fn add(
        &mut self,
        relay: &PermitRelay,
        (ask, receipt): (&Ask<'_>, Receipt),
        count: Option<&Arc<PermitCount>>,
    ) {
        self.relay.get_or_insert_with(|| relay.clone());
        if let Some(count) = count {
            count.begin(receipt.cost);
        }
        self.list.push(HeldPermit {
            bucket: ask.bucket.into(),
            scope: ask.scope,
            quota: Box::new(*ask.quota),
            receipt,
            count: count.cloned(),
        });
    }

    /// Returns true if there are any that were not released yet.
    pub(crate) fn are_held(&self) -> bool {
        !self.list.is_empty() && !self.is_released.load(Relaxed)
    }

    /// Releases them, if they are held. Returns true if this call did.
    pub(crate) fn release(&self) -> bool {
        if self.list.is_empty() || self.is_released.swap(true, Relaxed) {
            return false;
        }
        let asks: SmallVec<[Ask<'_>; 2]> = self.list.iter().map(HeldPermit::ask).collect();
        for permits in &self.list {
            if let Some(count) = &permits.count {
                count.end(permits.receipt.cost);
            }
        }
        if let Some(limiter) = self.relay.as_ref().and_then(PermitRelay::limiter) {
            limiter.release(&asks);
        }
        true
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        self.release();
    }
}

impl HeldPermit {
    fn ask(&self) -> Ask<'_> {
        Ask {
            bucket: &self.bucket,
            scope: self.scope,
            quota: &self.quota,
            op: Op::GiveBack(self.receipt),
            limit: 0,
            mode: LimitMode::Enforce,
        }
    }
}

/// Returns the name of permits that are never renewed or released: unlike any other of this process, and hardly that of
/// another one.
pub(crate) fn fresh_id() -> PermitId {
    static HASHER: OnceLock<RandomState> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let hasher = HASHER.get_or_init(RandomState::new);
    PermitId([hasher.hash_one(number), number])
}
