//! Random quotas and traces, for core and model alike.

use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Outcome, Quota, Receipt, Timestamp};
use tidegate_core::{Wait, step};
use tidegate_testkit::history::model_algorithm;
use tidegate_testkit::model::{ModelAnswer, ModelBucket, ModelQuota};

pub(crate) const ALGORITHMS: [Algorithm; Algorithm::RATES.len()] = Algorithm::RATES;

/// A quota as written, before validation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) algorithm: Algorithm,
    pub(crate) amount: u64,
    pub(crate) period_us: u64,
    pub(crate) burst: Option<u64>,
    pub(crate) overdraft: u64,
    pub(crate) refundable: bool,
}

impl Spec {
    pub(crate) fn of(algorithm: Algorithm, amount: u64, period_us: u64) -> Self {
        Self {
            algorithm,
            amount,
            period_us,
            burst: None,
            overdraft: 0,
            refundable: false,
        }
    }

    pub(crate) fn build(&self) -> Result<Quota, tidegate_core::QuotaError> {
        let spec = Quota::new(self.amount, self.period_us)
            .algorithm(self.algorithm)
            .overdraft(self.overdraft)
            .refundable(self.refundable);
        match self.burst {
            Some(burst) => spec.burst(burst).build(),
            None => spec.build(),
        }
    }

    /// Returns the quota if it is counted in microseconds.
    pub(crate) fn fine(&self) -> Option<Quota> {
        self.build().ok().filter(|quota| quota.tick_us() == 1)
    }

    pub(crate) fn model(&self) -> ModelQuota {
        ModelQuota {
            burst: self.burst.unwrap_or(self.amount),
            overdraft: self.overdraft,
            ..ModelQuota::new(model_algorithm(self.algorithm), self.amount, self.period_us)
        }
    }
}

/// The time before a step. Half of the pauses aim at an instant at which something changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    None,
    Micros(u64),
    /// This many 256ths of a period.
    Period(u64),
    /// This many 256ths of the time in which one unit refills.
    Unit(u64),
    /// The wait of the last refusal, less this many microseconds.
    Wait(u64),
    /// The reset time of the bucket, less this many microseconds.
    Reset(u64),
}

/// The cost of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Exactly(u64),
    /// Everything that remains, plus this many.
    Remaining(u64),
    /// The capacity, plus this many.
    Capacity(u64),
}

/// The operation of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Take(Cost),
    Force(Cost),
    Debit(Cost),
    /// Refunds one of the costs taken so far.
    GiveBack(usize),
    /// Refunds this many 256ths of one of them, dated or not.
    Return(usize, u64, bool),
    /// Refunds the latest charge.
    Latest(Cost),
    Test(Cost),
}

pub(crate) type Trace = Vec<(Pause, Act)>;

/// One bucket and its clock, walked through a trace.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) quota: Quota,
    pub(crate) bucket: Bucket,
    pub(crate) now_us: u64,
    /// Charges that are not refunded yet.
    pub(crate) taken: Vec<Receipt>,
    pub(crate) last: Option<Outcome>,
}

impl Walk {
    pub(crate) fn new(quota: &Quota, start_us: u64) -> Self {
        Self {
            quota: *quota,
            bucket: Bucket::new(quota),
            now_us: start_us,
            taken: Vec::new(),
            last: None,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_us)
    }

    pub(crate) fn pause(&mut self, pause: Pause) {
        let wait_us = self.last.and_then(|last| last.wait.as_micros());
        let reset_us = self.last.map_or(0, |last| last.reset_us);
        self.now_us += match pause {
            Pause::None => 0,
            Pause::Micros(n) => n,
            Pause::Period(n) => scale(self.quota.period_us(), n),
            Pause::Unit(n) => scale(self.quota.period_us() / self.quota.amount().max(1), n),
            Pause::Wait(less) => wait_us.unwrap_or(0).saturating_sub(less),
            Pause::Reset(less) => reset_us.saturating_sub(less),
        };
    }

    /// Resolves `act` to an operation on the current bucket.
    pub(crate) fn op(&mut self, act: Act) -> Op {
        match act {
            Act::Take(cost) => Op::Take(self.cost(cost)),
            Act::Force(cost) => Op::Force(self.cost(cost).max(1)),
            Act::Debit(cost) => Op::Debit(self.cost(cost)),
            Act::GiveBack(pick) => match self.taken.len() {
                0 => Op::Look,
                len => Op::GiveBack(self.taken.swap_remove(pick % len)),
            },
            Act::Return(pick, part, in_time) => match self.taken.len() {
                0 => Op::Look,
                len => {
                    let receipt = self.taken.swap_remove(pick % len);
                    let cost = u128::from(receipt.cost) * u128::from(part) / 256;
                    let cost = u64::try_from(cost).unwrap_or(0);
                    let late = u64::from(!in_time);
                    Op::Return {
                        receipt: receipt.with_cost(cost),
                        by: Timestamp::from_micros(self.now_us.saturating_sub(late)),
                    }
                }
            },
            Act::Latest(cost) => Op::GiveBack(Receipt::latest(self.cost(cost))),
            Act::Test(cost) => Op::Test(self.cost(cost)),
        }
    }

    fn cost(&self, cost: Cost) -> u64 {
        let units = match cost {
            Cost::Exactly(units) => units,
            Cost::Remaining(more) => self.bucket.reading(&self.quota, self.now()).remaining + more,
            Cost::Capacity(more) => self.quota.capacity() + more,
        };
        match self.quota.algorithm() {
            // The model records each unit of a sliding log.
            Algorithm::SlidingLog => units.min(64),
            _ => units,
        }
    }

    pub(crate) fn decide(&mut self, op: Op) -> Outcome {
        let now = self.now();
        let outcome = step::decide_one(&self.quota, &mut self.bucket, op, now);
        if let Op::Take(cost) = op
            && outcome.is_allowed()
            && cost > 0
        {
            self.taken.push(outcome.receipt(now, cost));
        }
        self.last = Some(outcome);
        outcome
    }
}

fn scale(us: u64, parts: u64) -> u64 {
    let scaled = u128::from(us) * u128::from(parts) / 256;
    u64::try_from(scaled).unwrap_or(u64::MAX >> 4)
}

/// Returns the model's answer to the same operation.
pub(crate) fn ask_model(model: &mut ModelBucket, op: Op, now_us: u64) -> ModelAnswer {
    match op {
        Op::Take(cost) => model.take(now_us, cost),
        Op::Force(cost) => model.force(now_us, cost),
        Op::Debit(cost) => model.debit(now_us, cost),
        Op::GiveBack(receipt) if receipt.at == Receipt::latest(0).at => {
            model.give_back_latest(now_us, receipt.cost);
            model.take(now_us, 0)
        }
        Op::GiveBack(receipt) => {
            model.give_back(now_us, receipt.at.as_micros(), receipt.cost);
            model.take(now_us, 0)
        }
        Op::Return { receipt, by } if now_us <= by.as_micros() => {
            model.give_back(now_us, receipt.at.as_micros(), receipt.cost);
            model.take(now_us, 0)
        }
        Op::Test(cost) => model.test(now_us, cost),
        _ => model.take(now_us, 0),
    }
}

/// Converts a decision to the model's type.
pub(crate) fn as_model(outcome: Outcome) -> ModelAnswer {
    ModelAnswer {
        allowed: outcome.is_allowed(),
        remaining: outcome.remaining,
        wait_us: outcome.wait.as_micros(),
        reset_us: outcome.reset_us,
    }
}

/// Returns true if `cost` passes without a wait.
pub(crate) fn passes(quota: &Quota, bucket: &Bucket, cost: u64, at_us: u64) -> bool {
    bucket.wait(quota, cost, Timestamp::from_micros(at_us)) == Wait::NONE
}

// === strategies ===

pub(crate) fn algorithm() -> impl Strategy<Value = Algorithm> {
    // Half of all quotas are token buckets in real life.
    prop_oneof![
        3 => Just(Algorithm::TokenBucket),
        5 => select(&ALGORITHMS[1..]),
    ]
}

fn amount(algorithm: Algorithm) -> BoxedStrategy<u64> {
    let primes = select(&[2, 3, 7, 11, 97, 101, 997, 4_093, 65_537, 999_983][..]);
    match algorithm {
        Algorithm::SlidingLog => prop_oneof![1..=5_u64, Just(7), Just(97), 1..=150_u64].boxed(),
        _ => prop_oneof![
            3 => 1..=5_u64,
            3 => primes,
            2 => 1..=1_000_u64,
            1 => 1..=1_000_000_000_000_u64,
        ]
        .boxed(),
    }
}

fn period_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 1..=50_u64,
        1 => select(&[97, 997, 1_009, 999_983][..]),
        2 => select(&[1_000, 100_000, 1_000_000, 60_000_000, 3_600_000_000][..]),
        1 => select(&[86_400_000_000, 2_592_000_000_000, 31_536_000_000_000][..]),
        1 => 1..=10_000_000_u64,
        1 => 1..=(1_u64 << 45),
    ]
}

fn burst(algorithm: Algorithm, amount: u64) -> BoxedStrategy<Option<u64>> {
    match algorithm {
        Algorithm::TokenBucket => prop_oneof![
            2 => Just(None),
            2 => Just(Some(1)),
            1 => (1..=10_u64).prop_map(Some),
            1 => (1..=amount.saturating_mul(3)).prop_map(Some),
        ]
        .boxed(),
        _ => Just(None).boxed(),
    }
}

/// Any quota, whether it can be represented or not.
pub(crate) fn spec_of(algorithm: impl Strategy<Value = Algorithm>) -> impl Strategy<Value = Spec> {
    (algorithm, period_us(), any::<bool>())
        .prop_flat_map(|(algorithm, period_us, refundable)| {
            let amount = amount(algorithm);
            (Just((algorithm, period_us, refundable)), amount)
        })
        .prop_flat_map(|((algorithm, period_us, refundable), amount)| {
            let overdraft = prop_oneof![
                3 => Just(0),
                1 => 1..=5_u64,
                1 => 1..=amount.saturating_mul(2).min(1_000),
            ];
            (burst(algorithm, amount), overdraft).prop_map(move |(burst, overdraft)| Spec {
                algorithm,
                amount,
                period_us,
                burst,
                overdraft,
                refundable,
            })
        })
}

/// Quotas counted in microseconds.
pub(crate) fn fine_spec_of(
    algorithm: impl Strategy<Value = Algorithm>,
) -> impl Strategy<Value = Spec> {
    spec_of(algorithm).prop_filter("must be representable in microseconds", |spec| {
        spec.fine().is_some()
    })
}

pub(crate) fn start_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..=1_000_000_u64,
        1_700_000_000_000_000..1_800_000_000_000_000_u64,
    ]
}

pub(crate) fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        3 => Just(Pause::None),
        1 => (0..=3_u64).prop_map(Pause::Micros),
        1 => (0..=200_000_u64).prop_map(Pause::Micros),
        2 => (0..=600_u64).prop_map(Pause::Period),
        2 => (0..=1_000_u64).prop_map(Pause::Unit),
        2 => (0..=1_u64).prop_map(Pause::Wait),
        1 => (0..=1_u64).prop_map(Pause::Reset),
    ]
}

pub(crate) fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        1 => Just(Cost::Exactly(0)),
        4 => Just(Cost::Exactly(1)),
        2 => (2..=5_u64).prop_map(Cost::Exactly),
        3 => (0..=1_u64).prop_map(Cost::Remaining),
        1 => (0..=1_u64).prop_map(Cost::Capacity),
    ]
}

/// Takes alone.
pub(crate) fn takes(steps: usize) -> impl Strategy<Value = Trace> {
    prop::collection::vec((pause(), cost().prop_map(Act::Take)), 1..=steps)
}

/// Takes, forced charges and tests; and refunds of the latest charge.
pub(crate) fn charges(steps: usize) -> impl Strategy<Value = Trace> {
    let act = prop_oneof![
        8 => cost().prop_map(Act::Take),
        2 => cost().prop_map(Act::Force),
        2 => cost().prop_map(Act::Debit),
        1 => cost().prop_map(Act::Test),
        1 => cost().prop_map(Act::Latest),
    ];
    prop::collection::vec((pause(), act), 1..=steps)
}

/// Everything.
pub(crate) fn acts(steps: usize) -> impl Strategy<Value = Trace> {
    let act = prop_oneof![
        6 => cost().prop_map(Act::Take),
        1 => cost().prop_map(Act::Force),
        1 => cost().prop_map(Act::Debit),
        3 => any::<usize>().prop_map(Act::GiveBack),
        2 => (any::<usize>(), 0..=256_u64, any::<bool>())
            .prop_map(|(pick, part, in_time)| Act::Return(pick, part, in_time)),
        1 => cost().prop_map(Act::Latest),
        1 => cost().prop_map(Act::Test),
    ];
    prop::collection::vec((pause(), act), 1..=steps)
}
