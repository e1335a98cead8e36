//! Any operations on any bucket: nothing panics, and the reported outcomes are true.
//!
//! How: one quota and two buckets under it. After each operation the outcome is compared with the
//! contract of `Outcome`: a refusal changes nothing, its wait is exact to the tick, `remaining`
//! never exceeds the capacity, and at `reset` the bucket is full. Once the clock was set back only
//! the bounds are checked, because then a bucket may refuse for longer.

use arbitrary::Arbitrary;
use tidegate_core::quota::QuotaNumbers;
use tidegate_core::{
    Algorithm, Align, Ask, Bucket, BucketState, LimitMode, OnChange, Op, Outcome, Quota, Receipt, Reply,
    Timestamp, step,
};

/// Far enough from both ends of `u64` that no instant saturates.
const START_US: u64 = 1_700_000_000_000_000;

/// Operations of one input. A sliding log is linear in its units, so this bounds the time.
const OPS_MAX: usize = 64;

#[derive(Arbitrary, Debug)]
struct Input {
    quota: Spec,
    start: u32,
    ops: Vec<(Time, Action)>,
}

#[derive(Arbitrary, Debug)]
struct Spec {
    algorithm: Kind,
    amount: Amount,
    period: Period,
    burst: Option<Amount>,
    overdraft: Option<u16>,
    refundable: bool,
    scales: bool,
    lends: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    TokenBucket,
    FixedWindow,
    ClockWindow,
    SlidingWindow,
    SlidingLog,
    BucketedWindow,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Amount {
    Small(u8),
    Medium(u16),
    Any(u64),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Period {
    Micros(u16),
    Millis(u16),
    Seconds(u32),
    Any(u64),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Time {
    Stands,
    Micros(u16),
    /// This many 256ths of the period.
    Part(u16),
    Back(u32),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Action {
    Look,
    Take(Amount),
    Force(Amount),
    Debit(Amount),
    Test(Amount),
    /// Refunds the latest charge.
    Latest(Amount),
    /// Refunds this many 256ths of the charge this many operations ago, within as many
    /// microseconds.
    Return(u8, u8, u8),
    /// Refunds the charge this many operations ago, if it was one.
    GiveBack(u8),
    /// A request over both buckets; the second may be used twice, and the last ask may be a shadow.
    Request([u8; 3], bool),
}

impl Amount {
    fn get(self) -> u64 {
        match self {
            Self::Small(n) => n.into(),
            Self::Medium(n) => n.into(),
            Self::Any(n) => n,
        }
    }
}

impl Spec {
    fn build(&self) -> Option<Quota> {
        let period_us = match self.period {
            Period::Micros(n) => n.into(),
            Period::Millis(n) => u64::from(n) * 1_000,
            Period::Seconds(n) => u64::from(n) * 1_000_000,
            Period::Any(n) => n,
        };
        let algorithm = match self.algorithm {
            Kind::TokenBucket => Algorithm::TokenBucket,
            Kind::FixedWindow => Algorithm::FixedWindow(Align::FirstRequest),
            Kind::ClockWindow => Algorithm::FixedWindow(Align::Clock),
            Kind::SlidingWindow => Algorithm::SlidingWindow,
            Kind::SlidingLog => Algorithm::SlidingLog,
            Kind::BucketedWindow => Algorithm::BucketedWindow,
        };
        let mut spec = Quota::new(self.amount.get(), period_us)
            .algorithm(algorithm)
            .overdraft(self.overdraft.unwrap_or(0).into())
            .refundable(self.refundable)
            .on_change(if self.scales {
                OnChange::Scale
            } else {
                OnChange::Keep
            });
        if let Some(burst) = self.burst {
            spec = spec.burst(burst.get());
        }
        let quota = spec.build().ok()?;
        Some(if self.lends {
            quota.with_lending(true)
        } else {
            quota
        })
    }
}

fuzz_target!(|input: Input| {
    let Some(quota) = input.quota.build() else {
        return;
    };
    assert!(quota.cost_max() <= quota.capacity());
    let numbers = QuotaNumbers::from(quota);
    assert_eq!(Quota::try_from(numbers), Ok(quota), "{numbers:?}");
    // A debt that takes half a million years to refill has a reset beyond the last instant.
    let within_time = quota.lifetime_us_max() < 1 << 62;
    let mut buckets = [Bucket::new(&quota), Bucket::new(&quota)];
    let mut now = START_US + u64::from(input.start);
    let mut steady = true;
    let mut receipts: Vec<Receipt> = Vec::new();
    for (time, action) in input.ops.into_iter().take(OPS_MAX) {
        match time {
            Time::Stands => {}
            Time::Micros(n) => now += u64::from(n),
            Time::Part(n) => now += quota.period_us() / 256 * u64::from(n),
            Time::Back(n) => {
                now -= u64::from(n);
                steady &= n == 0;
            }
        }
        // Periods of centuries would leave the range of the contract.
        if now > START_US * 4 {
            return;
        }
        let at = Timestamp::from_micros(now);
        for bucket in &mut buckets {
            clamp(&quota, bucket, steady && within_time, at);
        }
        let op = match action {
            Action::Look => Op::Look,
            Action::Take(cost) => Op::Take(cost.get()),
            Action::Force(cost) => Op::Force(cost.get()),
            Action::Debit(cost) => Op::Debit(cost.get()),
            Action::Test(cost) => Op::Test(cost.get()),
            Action::Latest(cost) => Op::GiveBack(Receipt::latest(cost.get())),
            Action::Return(ago, part, by) => match receipts.get(usize::from(ago)) {
                Some(_) => {
                    let receipt = receipts.swap_remove(usize::from(ago));
                    let cost = u128::from(receipt.cost) * u128::from(part) / 256;
                    let cost = cost.try_into().unwrap_or(u64::MAX);
                    Op::Return {
                        receipt: receipt.with_cost(cost),
                        by: at.plus(by.into()),
                    }
                }
                None => continue,
            },
            Action::GiveBack(ago) => match receipts.get(usize::from(ago)) {
                Some(_) => Op::GiveBack(receipts.swap_remove(usize::from(ago))),
                None => continue,
            },
            Action::Request(costs, shadow) => {
                request(&quota, &mut buckets, costs, shadow, at);
                continue;
            }
        };
        let before = buckets[0].clone();
        let outcome = step::decide_one(&quota, &mut buckets[0], op, at);
        bounded(&quota, &buckets[0], outcome);
        match op {
            Op::Take(cost) if outcome.is_allowed() && cost > 0 => {
                receipts.push(outcome.receipt(at, cost))
            }
            Op::Take(_) | Op::Look | Op::Test(_) => {
                assert_eq!(buckets[0], before, "no change was allowed")
            }
            _ => {}
        }
        if steady && within_time {
            honest(&quota, &buckets[0], op, outcome, at);
        }
    }
});

/// Clamps a bucket that another clock has brought too far ahead, as a store does.
fn clamp(quota: &Quota, bucket: &mut Bucket, steady: bool, at: Timestamp) {
    if bucket.is_beyond_reach(quota, at) {
        assert!(!steady, "its own clock brought it there");
        bucket.clamp_to_now(quota, at);
        assert!(!bucket.is_beyond_reach(quota, at));
    } else {
        let before = bucket.clone();
        bucket.clamp_to_now(quota, at);
        assert_eq!(*bucket, before, "there was nothing to clamp");
    }
}

/// Checks bounds that hold at all times.
fn bounded(quota: &Quota, bucket: &Bucket, outcome: Outcome) {
    assert!(outcome.remaining <= quota.capacity());
    if let Bucket::Log(log) = bucket {
        let units: u64 = log.runs().map(|run| run.units).sum();
        assert!(log.runs().count() as u64 <= units);
    }
}

/// Checks that the outcome's predictions come true without other requests.
fn honest(quota: &Quota, bucket: &Bucket, op: Op, outcome: Outcome, at: Timestamp) {
    let cost = match op {
        Op::Take(cost) => Some(cost),
        Op::Test(cost) => Some(cost.max(1)),
        _ => None,
    };
    if let (Some(cost), Some(wait)) = (cost, outcome.wait.as_micros())
        && !outcome.is_allowed()
    {
        assert!(bucket.wait(quota, cost, at.plus(wait)).is_none());
        assert!(!bucket.wait(quota, cost, at.plus(wait - 1)).is_none());
    }
    let fresh = bucket.reading(quota, at.plus(outcome.reset_us));
    assert_eq!(fresh.remaining, quota.capacity());
    assert_eq!(fresh.reset_us, 0);
}

/// All or nothing over two buckets.
fn request(quota: &Quota, buckets: &mut [Bucket; 2], costs: [u8; 3], shadow: bool, at: Timestamp) {
    let ask = |bucket: &'static [u8], cost: u8, limit, mode| Ask {
        limit,
        mode,
        ..Ask::take(bucket, quota, cost.into())
    };
    let last = if shadow { LimitMode::Shadow } else { LimitMode::Enforce };
    let asks = [
        ask(b"a", costs[0], 0, LimitMode::Enforce),
        ask(b"b", costs[1], 1, LimitMode::Enforce),
        ask(b"b", costs[2], 2, last),
    ];
    let before = buckets.clone();
    let Reply { passed, outcomes, .. } = step::decide(&asks, &[0, 1, 1], buckets, at);
    assert_eq!(outcomes.len(), asks.len());
    for (outcome, place) in outcomes.iter().zip([0, 1, 1]) {
        bounded(quota, &buckets[place], *outcome);
    }
    let enforced = outcomes
        .iter()
        .zip(&asks)
        .filter(|(_, ask)| ask.mode == LimitMode::Enforce);
    assert_eq!(
        passed,
        enforced
            .into_iter()
            .all(|(outcome, _)| outcome.is_allowed())
    );
    if !passed {
        assert_eq!(*buckets, before, "a refusal changed a bucket");
    }
}
