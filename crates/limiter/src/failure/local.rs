//! Deciding in this process, at a share of the policy.

use super::SharedClock;
use super::known::{LastKnown, LastLevel};
use super::share::Share;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{Algorithm, Ask, Clock, LimitMode, Op, Quota, Reply, Wait};
use tidegate_memory::MemoryStore;

/// When to come back where nobody knows: by then the store may be there again. Also told where a
/// cost is too large for the share of this instance, though not for the limit.
pub const COME_BACK: Duration = Duration::from_micros(COME_BACK_US);

pub(crate) const COME_BACK_US: u64 = 1_000_000;

/// How many buckets may begin at once.
const GATES: usize = 64;

/// Buckets of this process alone, each under the band of the store's bucket that it stands in for.
///
/// A bucket begins with the share of what was last known to remain, and then lives as any other, so
/// that a store that comes and goes never brings a full one back: it is there until it is as good as
/// new by its own, slower, rate. If the store has reported meanwhile that less remains, it is held to
/// the share of that.
#[derive(Debug)]
pub(super) struct Local {
    clock: SharedClock,
    store: MemoryStore<SharedClock>,
    known: LastKnown,
    /// Held while a bucket begins, so that it begins once.
    gates: Box<[Mutex<()>]>,
}

impl Local {
    pub(super) fn new(clock: SharedClock, max_keys: usize) -> Option<Self> {
        let store = MemoryStore::builder()
            .clock(clock.clone())
            .max_keys(max_keys);
        Some(Self {
            clock,
            store: store.try_build()?,
            known: LastKnown::default(),
            gates: (0..GATES).map(|_| Mutex::default()).collect(),
        })
    }

    /// What was last heard of the store's buckets.
    pub(super) fn known(&self) -> &LastKnown {
        &self.known
    }

    /// Decides `asks` in one step, at `share` of their quotas.
    pub(super) fn decide(&self, asks: &[Ask<'_>], share: Share) -> Reply {
        let closed: SmallVec<[u64; 4]> = asks.iter().map(|ask| self.closed_us(ask)).collect();
        let is_closed = closed.iter().any(|left_us| *left_us > 0);
        let quotas: SmallVec<[Quota; 4]> = asks
            .iter()
            .map(|ask| ask.quota.at_share(share.numerator, share.denominator))
            .collect();
        let shared = asks.iter().zip(&quotas);
        let shared = shared.map(|(ask, quota)| {
            // Where a limit is closed, nothing is charged.
            let op = if is_closed { Op::Look } else { ask.op };
            Ask { quota, op, ..*ask }
        });
        let shared: SmallVec<[Ask<'_>; 4]> = shared.collect();
        for (ask, local) in asks.iter().zip(&shared) {
            self.begin(ask, local, share);
        }
        let mut reply = self.store.decide_now(&shared);
        for (ask, outcome) in asks.iter().zip(reply.outcomes.iter_mut()) {
            if outcome.wait.is_never()
                && matches!(ask.op, Op::Take(cost) | Op::Debit(cost) | Op::Test(cost) if cost <= ask.quota.cost_max())
            {
                outcome.wait = Wait::from_micros(COME_BACK_US);
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

    /// For how long the store has closed a limit, if `ask` is for its block and it still is: to the
    /// microsecond, for a block that began anew here would be longer than it was said to be.
    fn closed_us(&self, ask: &Ask<'_>) -> u64 {
        match (ask.op, self.known.get(ask)) {
            (Op::Block, Some(heard)) if heard.remaining == 0 && ask.mode == LimitMode::Enforce => {
                heard.instant.since(self.clock.now())
            }
            _ => 0,
        }
    }

    /// Settles what was charged here: `asks` are at the share by which it was.
    pub(super) fn settle(&self, asks: &[Ask<'_>]) -> Reply {
        self.store.decide_now(asks)
    }

    /// Charges a bucket with what it has above the share of the last known remaining: when it begins,
    /// and once after each time that the store was heard.
    ///
    /// One that is as good as new is not there either. It lacks nothing any more by then, for it
    /// began to refill no earlier than what is known, and with no less to refill.
    fn begin(&self, ask: &Ask<'_>, local: &Ask<'_>, share: Share) {
        if ask.quota.is_block() {
            return;
        }
        let is_there = || {
            let inspected = self.store.inspect_now(ask.bucket, local.quota);
            inspected.is_some()
        };
        let due = || {
            let heard = self.known.get(ask)?;
            let lacks = self.lacks(&heard, ask, local, share);
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

    /// How many units a local bucket lacks now by what was `heard`.
    fn lacks(&self, heard: &LastLevel, ask: &Ask<'_>, local: &Ask<'_>, share: Share) -> u64 {
        if heard.remaining >= ask.quota.capacity() {
            return 0;
        }
        let quota = local.quota;
        let lacked = quota.capacity().saturating_sub(share.part(heard.remaining));
        let now = self.clock.now();
        if quota.algorithm() != Algorithm::TokenBucket {
            return if now < heard.instant { lacked } else { 0 };
        }
        let (drain, price) = quota.drain_and_price();
        let ticks = now.since(heard.instant) / quota.tick_us().max(1);
        let refilled = u128::from(ticks) * u128::from(drain) / u128::from(price.max(1));
        lacked.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX))
    }
}
