//! Deciding in memory, at a share of the policy.

use super::SharedClock;
use super::levels::{LastLevel, LevelCache};
use crate::dated_store::drop_closed;
use crate::decision::RETRY_AFTER_FAILURE_US;
use crate::share::Share;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tidegate_core::{Algorithm, Ask, LimitMode, Op, Quota, Reply, Store, Timestamp, Wait};
use tidegate_memory::MemoryStore;
use tidegate_policy::calendar::with_starts_around;

/// The number of buckets that may be created at once.
const GATES: usize = 64;

/// Buckets of this process alone, each under the band of the store's bucket that it replaces.
///
/// A bucket starts with the share of the last known remaining units, and then lives like any other. It exists
/// until it is full by its own, slower rate, so that a store with repeated outages never restores a full
/// bucket. If the store has reported fewer remaining units in the meantime, the bucket is reduced to the
/// share of that.
#[derive(Debug)]
pub(super) struct LocalBuckets {
    store: MemoryStore<SharedClock>,
    known: LevelCache,
    /// Held while a bucket is created, so that it is created once.
    gates: Box<[Mutex<()>]>,
}

impl LocalBuckets {
    pub(super) fn new(clock: SharedClock, max_keys: usize) -> Option<Self> {
        let store = MemoryStore::builder().clock(clock).max_keys(max_keys);
        Some(Self {
            store: store.try_build()?,
            known: LevelCache::default(),
            gates: (0..GATES).map(|_| Mutex::default()).collect(),
        })
    }

    /// Returns the last known levels of the store's buckets.
    pub(super) fn known(&self) -> &LevelCache {
        &self.known
    }

    /// Decides `asks` atomically, at `share` of their quotas. `now` is the time of the decision, as far as it
    /// depends on levels that the store reported.
    pub(super) fn decide(&self, asks: &[Ask<'_>], share: Share, now: Timestamp) -> Reply {
        let closed = asks.iter().map(|ask| self.closed_us(ask, now));
        let closed: SmallVec<[u64; 4]> = closed.collect();
        let is_closed = closed.iter().any(|left_us| *left_us > 0);
        let quotas: SmallVec<[Quota; 4]> = asks
            .iter()
            .map(|ask| ask.quota.at_share(share.numerator, share.denominator))
            .map(|quota| with_starts_around(&quota, self.store.present().unwrap_or(now)))
            .collect();
        let shared = asks.iter().zip(&quotas);
        let shared = shared.map(|(ask, quota)| {
            // While a limit blocks the client, nothing is charged.
            // A permit that is held here would never be released.
            let is_permit = ask.quota.algorithm().is_concurrent();
            let op = if is_closed || is_permit {
                Op::Look
            } else {
                ask.op
            };
            Ask { quota, op, ..*ask }
        });
        let shared: SmallVec<[Ask<'_>; 4]> = shared.collect();
        for (ask, local) in asks.iter().zip(&shared) {
            self.begin(ask, local, (share, now));
        }
        let mut reply = self.store.decide_now(&shared);
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter_mut()) {
            if outcome.wait.is_never()
                && matches!(ask.op, Op::Take(cost) | Op::Debit(cost) | Op::Test(cost) if cost <= ask.quota.cost_max())
            {
                outcome.wait = Wait::from_micros(RETRY_AFTER_FAILURE_US);
            }
        }
        for (left_us, outcome) in closed.iter().zip(reply.outcomes.iter_mut()) {
            if *left_us > 0 {
                outcome.remaining = 0;
                outcome.wait = Wait::from_micros(*left_us);
                outcome.reset_us = *left_us;
                reply.passed = false;
            }
        }
        reply
    }

    /// Returns the remaining time of a block made by the store, if `ask` is for that block and it has not
    /// ended. In microseconds: a block started from zero here would last longer than announced.
    fn closed_us(&self, ask: &Ask<'_>, now: Timestamp) -> u64 {
        match (ask.op, self.known.get(ask)) {
            (Op::Block, Some(heard)) if heard.remaining == 0 && ask.mode == LimitMode::Enforce => {
                heard.instant.since(now)
            }
            _ => 0,
        }
    }

    /// Settles charges made here. `asks` must have the shared quotas they were charged with.
    pub(super) fn settle(&self, asks: &[Ask<'_>]) -> Reply {
        let mut open: SmallVec<[Ask<'_>; 4]> = SmallVec::from_slice(asks);
        let mut reply = self.store.decide_now(&open);
        while reply.outside && drop_closed(&mut open, reply.at) {
            reply = self.store.decide_now(&open);
        }
        reply
    }

    /// Charges a bucket with the units above the share of the last known remaining: when the bucket is
    /// created, and once after each level received from the store.
    ///
    /// A full bucket does not exist either. By then it lacks nothing: it started to refill no earlier than
    /// the known level, and from no lower a level.
    fn begin(&self, ask: &Ask<'_>, local: &Ask<'_>, at: (Share, Timestamp)) {
        // Permits are charged for a request that releases them.
        if ask.quota.is_block() || ask.quota.algorithm().is_concurrent() {
            return;
        }
        let is_there = || {
            let inspected = self.store.inspect_now(ask.bucket, local.quota);
            inspected.is_some()
        };
        let due = || {
            let heard = self.known.get(ask)?;
            let lacks = lacks(&heard, ask, local, at);
            (lacks > 0 && (heard.is_news || !is_there())).then_some((heard, lacks))
        };
        if due().is_none() {
            return;
        }
        let gate = ask.bucket.iter().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
        });
        let _begins = self.gates.get(gate % GATES).map(Mutex::lock);
        if let Some((heard, lacks)) = due() {
            let alone = |op| Ask {
                op,
                mode: LimitMode::Enforce,
                ..*local
            };
            let remaining = self.store.decide_one(&alone(Op::Look)).remaining;
            let most = local.quota.capacity().saturating_sub(lacks);
            let excess = remaining.saturating_sub(most);
            self.store.decide_one(&alone(Op::Force(excess)));
            self.known.apply(ask, &heard);
        }
    }
}

/// Returns the number of units that a local bucket lacks now, by the level `heard`.
fn lacks(
    heard: &LastLevel,
    ask: &Ask<'_>,
    local: &Ask<'_>,
    (share, now): (Share, Timestamp),
) -> u64 {
    if heard.remaining >= ask.quota.capacity() {
        return 0;
    }
    let quota = local.quota;
    let lacked = quota.capacity().saturating_sub(share.part(heard.remaining));
    match quota.algorithm() {
        Algorithm::TokenBucket => {
            let (drain, price) = quota.drain_and_price();
            let ticks = now.since(heard.instant) / quota.tick_us().max(1);
            let refilled = u128::from(ticks) * u128::from(drain) / u128::from(price.max(1));
            lacked.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX))
        }
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => {
            if now < heard.instant {
                lacked
            } else {
                0
            }
        }
    }
}
