//! Random quotas and requests.

use proptest::prelude::*;
use proptest::sample::select;
use std::num::NonZeroU64;
use tidegate_core::quota::CalendarCode;
use tidegate_core::{Algorithm, Align, OnChange, Quota, QuotaError, Receipt, Timestamp};

/// The algorithms whose state is two numbers.
pub(super) const USUAL: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::TokenBucket,
    Algorithm::FixedWindow(Align::FirstRequest),
    Algorithm::FixedWindow(Align::Clock),
];

pub(super) const WINDOWS: [Algorithm; 5] = [
    Algorithm::FixedWindow(Align::FirstRequest),
    Algorithm::FixedWindow(Align::Clock),
    Algorithm::SlidingLog,
    Algorithm::BucketedWindow,
    Algorithm::CalendarWindow,
];

pub(super) const ALL: [Algorithm; 9] = [
    Algorithm::TokenBucket,
    Algorithm::TokenBucket,
    Algorithm::TokenBucket,
    Algorithm::FixedWindow(Align::FirstRequest),
    Algorithm::FixedWindow(Align::Clock),
    Algorithm::SlidingWindow,
    Algorithm::SlidingLog,
    Algorithm::BucketedWindow,
    Algorithm::CalendarWindow,
];

/// The settings of a quota.
#[derive(Clone, Copy, Debug)]
struct Spec {
    algorithm: Algorithm,
    amount: u64,
    period_us: u64,
    burst: Option<u64>,
    overdraft: u64,
    refundable: bool,
    lends: bool,
    scales: bool,
}

impl Spec {
    fn on_change(self) -> OnChange {
        match self.algorithm {
            Algorithm::SlidingLog | Algorithm::BucketedWindow => OnChange::Keep,
            _ if self.scales => OnChange::Scale,
            _ => OnChange::Keep,
        }
    }

    /// Builds the quota, or the nearest valid one.
    fn build(mut self, label: &str) -> Option<Quota> {
        for _ in 0..4 {
            let spec = Quota::new(self.amount, self.period_us)
                .algorithm(self.algorithm)
                .overdraft(self.overdraft)
                .refundable(self.refundable)
                .on_change(self.on_change())
                .label(label);
            // Every other follows a calendar, and is given starts when it is used.
            let spec = if self.refundable {
                spec.calendar(CalendarCode::new(NonZeroU64::MIN))
            } else {
                spec
            };
            let built = match self.burst {
                Some(burst) => spec.burst(burst).build(),
                None => spec.build(),
            };
            match built {
                Ok(quota) => return Some(quota.with_lending(self.lends)),
                Err(QuotaError::TooLarge { nearest } | QuotaError::LogTooLong { nearest }) => {
                    if self.algorithm == Algorithm::TokenBucket {
                        self.burst = Some(nearest);
                    } else {
                        self.amount = nearest;
                    }
                }
                Err(QuotaError::OverdraftTooLarge { nearest }) => self.overdraft = nearest,
                Err(_) => return None,
            }
        }
        None
    }
}

fn amount() -> impl Strategy<Value = u64> {
    let primes = select(&[2, 3, 7, 97, 997, 65_537, 999_983, 4_294_967_291][..]);
    prop_oneof![
        4 => 1..=5_u64,
        3 => primes,
        2 => 1..=1_000_u64,
        1 => 1..=1_000_000_000_000_u64,
        1 => (1_u64 << 50)..(1_u64 << 53),
        1 => Just(0),
    ]
}

fn period_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 1..=50_u64,
        1 => select(&[97, 997, 1_009, 999_983][..]),
        3 => select(&[1_000, 100_000, 1_000_000, 60_000_000, 3_600_000_000][..]),
        1 => select(&[86_400_000_000, 2_592_000_000_000, 31_536_000_000_000][..]),
        1 => 1..=10_000_000_u64,
        1 => 1..=(1_u64 << 45),
        1 => (1_u64 << 48)..(1_u64 << 53),
    ]
}

fn spec(algorithms: &'static [Algorithm]) -> impl Strategy<Value = Spec> {
    let burst = prop_oneof![
        2 => Just(None),
        3 => (1..=10_u64).prop_map(Some),
        2 => (1..=1_000_000_u64).prop_map(Some),
        // As large as possible.
        1 => Just(Some(u64::MAX >> 1)),
    ];
    let overdraft = prop_oneof![
        4 => Just(0),
        2 => 1..=5_u64,
        1 => 1..=1_000_u64,
        1 => Just(u64::MAX >> 1),
    ];
    let numbers = (amount(), period_us(), burst, overdraft);
    let remembers = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.3));
    (select(algorithms), numbers, remembers).prop_map(
        |(algorithm, (amount, period_us, burst, overdraft), (refundable, lends, scales))| Spec {
            algorithm,
            amount: match algorithm {
                Algorithm::SlidingLog => amount % 200,
                _ => amount,
            },
            period_us,
            burst: burst.filter(|_| algorithm == Algorithm::TokenBucket && amount > 0),
            overdraft,
            refundable,
            lends: lends && refundable,
            scales,
        },
    )
}

/// A token bucket that lends, before and after a policy change (usually).
pub(super) fn lending_band() -> impl Strategy<Value = [Quota; 2]> {
    let amount = select(&[1, 1, 3, 7, 100, 997][..]);
    let period_us = select(&[1_000, 999_983, 1_000_000, 60_000_000][..]);
    let numbers = (amount, period_us, 20..=400_u64, 0..=9_u64);
    (numbers, numbers_after(), 0..4_u8).prop_filter_map(
        "must be representable",
        |((amount, period_us, burst, overdraft), (amount_after, burst_after), what)| {
            let old = Spec {
                algorithm: Algorithm::TokenBucket,
                amount,
                period_us,
                burst: Some(burst),
                overdraft,
                refundable: true,
                lends: true,
                scales: what == 3,
            };
            let new = Spec {
                amount: amount_after,
                burst: Some(burst_after),
                lends: what > 0,
                refundable: what > 1 || what == 0,
                ..old
            };
            Some([old.build("lent")?, new.build("lent")?])
        },
    )
}

fn numbers_after() -> impl Strategy<Value = (u64, u64)> {
    (1..=1_000_u64, 1..=400_u64)
}

/// Two versions of one band: before and after a policy change. A bucket that takes longer than this
/// to refill cannot be counted exactly (see `at_the_end_of_time`).
pub(super) fn band(
    label: &'static str,
    algorithms: &'static [Algorithm],
    lifetime_us_max: u64,
) -> impl Strategy<Value = [Quota; 2]> {
    let change = (amount(), period_us(), any::<bool>(), 0..6_u8);
    (spec(algorithms), change).prop_filter_map("must be representable", move |(spec, change)| {
        let old = spec.build(label)?;
        let (amount, period_us, refundable, what) = change;
        let new = match what {
            0 => spec,
            4 => Spec {
                scales: !spec.scales,
                ..spec
            },
            1 => Spec {
                amount: amount.max(1)
                    % if spec.algorithm == Algorithm::SlidingLog {
                        200
                    } else {
                        u64::MAX
                    },
                ..spec
            },
            2 => Spec {
                refundable,
                lends: refundable && !spec.lends,
                ..spec
            },
            _ => Spec {
                amount: if spec.algorithm == Algorithm::SlidingLog {
                    amount % 200
                } else {
                    amount
                },
                burst: spec.burst.filter(|_| amount > 0),
                period_us,
                refundable,
                lends: refundable && spec.lends,
                ..spec
            },
        };
        // A sliding window with another tick or length is another band, which is fine too.
        let new = new.build(label).unwrap_or(old);
        let (old, new) = match what {
            // Some asks queue and some do not, or all do.
            4 => (old, old.queueing()),
            5 => (old.queueing(), new.queueing()),
            _ => (old, new),
        };
        let fits = |quota: &Quota| quota.tick_us() > 1 || quota.lifetime_us_max() < lifetime_us_max;
        (fits(&old) && fits(&new)).then_some([old, new])
    })
}

/// The start of a trace, early enough to end before 2^53.
pub(super) fn start_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..=1_000_000_u64,
        4 => 1_700_000_000_000_000..1_800_000_000_000_000_u64,
    ]
}

/// The change of the clock before a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pause {
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
    BackMicros(u64),
    /// Goes back by this many 256ths of a period.
    BackPeriod(u64),
}

pub(super) fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        5 => Just(Pause::None),
        2 => (0..=3_u64).prop_map(Pause::Micros),
        2 => (0..=300_000_u64).prop_map(Pause::Micros),
        2 => (0..=600_u64).prop_map(Pause::Period),
        3 => (0..=1_000_u64).prop_map(Pause::Unit),
        3 => (0..=1_u64).prop_map(Pause::Wait),
        2 => (0..=1_u64).prop_map(Pause::Reset),
        1 => (0..=200_000_u64).prop_map(Pause::BackMicros),
        1 => (0..=900_u64).prop_map(Pause::BackPeriod),
    ]
}

/// The cost of an ask.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cost {
    Exactly(u64),
    /// Everything that remains, plus this many.
    Remaining(u64),
    /// The capacity, plus this many.
    Capacity(u64),
}

pub(super) fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        1 => Just(Cost::Exactly(0)),
        6 => Just(Cost::Exactly(1)),
        3 => (2..=5_u64).prop_map(Cost::Exactly),
        1 => (60..=70_u64).prop_map(Cost::Exactly),
        1 => any::<u64>().prop_map(Cost::Exactly),
        4 => (0..=1_u64).prop_map(Cost::Remaining),
        1 => (0..=1_u64).prop_map(Cost::Capacity),
    ]
}

/// The operation of an ask.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Look,
    Take(Cost),
    Force(Cost),
    Debit(Cost),
    Test(Cost),
    /// Charges a block if its limit refuses.
    Block,
    /// Refunds one of the charges so far.
    GiveBack(usize),
    /// Refunds this many 256ths of one of the charges so far, dated relative to now by this many
    /// microseconds.
    Return(usize, u64, i64),
    /// Refunds the latest charge.
    Latest(Cost),
    /// Refunds a charge that may never have been made: this long ago, with a receipt whose `until`
    /// is this much later.
    Invent(u64, Receipt),
    Drop,
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Look),
        10 => cost().prop_map(Act::Take),
        3 => cost().prop_map(Act::Force),
        3 => cost().prop_map(Act::Debit),
        2 => cost().prop_map(Act::Test),
        3 => Just(Act::Block),
        3 => any::<usize>().prop_map(Act::GiveBack),
        3 => (any::<usize>(), 0..=256_u64, -2..=3_i64)
            .prop_map(|(pick, part, by)| Act::Return(pick, part, by)),
        1 => cost().prop_map(Act::Latest),
        1 => invention(),
        1 => Just(Act::Drop),
    ]
}

fn invention() -> impl Strategy<Value = Act> {
    let any_size = || any::<u64>().prop_map(|number| number >> (number % 64));
    let numbers = (any_size(), any_size(), any_size(), any_size());
    (0..400_000_u64, numbers).prop_map(|(ago, (cost, until, mark, behind))| {
        let mut receipt = Receipt::by_the_clock(Timestamp::default(), cost);
        receipt.until = Timestamp::from_micros(until);
        receipt.mark = mark >> 8;
        receipt.behind = behind;
        Act::Invent(ago, receipt)
    })
}

/// Calls that lend and refund, with short pauses.
pub(super) fn lending_trace(calls: usize) -> impl Strategy<Value = Vec<CallSpec>> {
    let pause = prop_oneof![
        2 => Just(Pause::None),
        8 => (0..=400_u64).prop_map(Pause::Unit),
        1 => (0..=9_000_u64).prop_map(Pause::Unit),
        1 => (0..=200_u64).prop_map(Pause::BackMicros),
    ];
    let act = prop_oneof![
        8 => (1..=4_u64).prop_map(|units| Act::Take(Cost::Exactly(units))),
        1 => (1..=4_u64).prop_map(|units| Act::Force(Cost::Exactly(units))),
        4 => (any::<usize>(), 0..=256_u64, 0..=1_i64)
            .prop_map(|(pick, part, by)| Act::Return(pick, part, by)),
        1 => (1..=4_u64).prop_map(|units| Act::Latest(Cost::Exactly(units))),
    ];
    let request = (act, 0..30_u8, 0..2_usize).prop_map(|(act, version, key)| RequestSpec {
        asks: vec![AskSpec {
            key,
            band: 0,
            act,
            shadow: false,
            limit: 0,
        }],
        version: usize::from(version == 0),
        times: 1,
        distinct: true,
    });
    let requests = prop::collection::vec(request, 1..=3);
    prop::collection::vec((pause, requests), 1..=calls)
}

/// One ask of a step: key, band, operation, shadow mode, limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskSpec {
    pub(super) key: usize,
    pub(super) band: usize,
    pub(super) act: Act,
    pub(super) shadow: bool,
    pub(super) limit: u16,
}

fn ask_spec() -> impl Strategy<Value = AskSpec> {
    (0..3_usize, 0..4_usize, act(), 0..5_u8, 0..2_u16).prop_map(
        |(key, band, act, shadow, limit)| AskSpec {
            key,
            band,
            act,
            shadow: shadow == 0,
            limit,
        },
    )
}

/// One request: its asks, the version of the policy, and its repetitions.
#[derive(Clone, Debug)]
pub(super) struct RequestSpec {
    pub(super) asks: Vec<AskSpec>,
    pub(super) version: usize,
    pub(super) times: usize,
    /// True if no bucket is used twice.
    pub(super) distinct: bool,
}

fn request_spec(times_max: usize) -> impl Strategy<Value = RequestSpec> {
    let times = prop_oneof![6 => Just(1_usize), 1 => 1..=times_max];
    (
        prop::collection::vec(ask_spec(), 1..=4),
        prop_oneof![5 => Just(0_usize), 1 => Just(1_usize)],
        times,
    )
        .prop_map(|(asks, version, times)| RequestSpec {
            asks,
            version,
            times,
            distinct: false,
        })
}

/// One call: its pause and its requests.
pub(super) type CallSpec = (Pause, Vec<RequestSpec>);

/// A typical request: takes of one cost from all bands of some keys.
fn usual_spec() -> impl Strategy<Value = RequestSpec> {
    let times = prop_oneof![4 => Just(1_usize), 1 => 2..=9_usize];
    (1..8_usize, cost(), 0..40_u8, times).prop_map(|(keys, cost, version, times)| {
        let keys = (0..3).filter(move |key| keys & (1 << key) != 0);
        let ask = move |key, band| AskSpec {
            key,
            band,
            act: Act::Take(cost),
            shadow: false,
            limit: 0,
        };
        RequestSpec {
            asks: keys
                .flat_map(|key| (0..3).map(move |band| ask(key, band)))
                .collect(),
            version: usize::from(version == 0),
            times,
            distinct: true,
        }
    })
}

/// A block before and after a policy change: the same band with another length.
pub(super) fn block() -> impl Strategy<Value = [Quota; 2]> {
    (period_us(), period_us()).prop_filter_map("must be representable", |(old, new)| {
        Some([Quota::block(old).ok()?, Quota::block(new).ok()?])
    })
}

/// Calls of requests that match one or two limits of one or two bands each, with a block as the
/// third band.
pub(super) fn blocking_trace(calls: usize) -> impl Strategy<Value = Vec<CallSpec>> {
    let act = prop_oneof![
        8 => cost().prop_map(Act::Take),
        3 => cost().prop_map(Act::Force),
        3 => cost().prop_map(Act::Debit),
        1 => cost().prop_map(Act::Test),
        1 => Just(Act::Look),
    ];
    let limit = (0..3_usize, act, 1..=2_usize, 0..8_u8, 0..8_u8);
    let limits = prop::collection::vec(limit, 1..=2);
    let times = prop_oneof![4 => Just(1_usize), 1 => 2..=9_usize];
    let request = (limits, 0..40_u8, times).prop_map(|(limits, version, times)| RequestSpec {
        asks: (0..)
            .zip(limits)
            .flat_map(|(limit, (key, act, bands, shadow, open))| {
                let ask = move |band, act| AskSpec {
                    key,
                    band,
                    act,
                    shadow: shadow == 0,
                    limit,
                };
                let block = (open > 0).then(|| ask(2, Act::Block));
                (0..bands).map(move |band| ask(band, act)).chain(block)
            })
            .collect(),
        version: usize::from(version == 0),
        times,
        distinct: false,
    });
    let requests = prop::collection::vec(request, 1..=4);
    prop::collection::vec((pause(), requests), 1..=calls)
}

/// Calls of typical requests.
pub(super) fn usual_trace(calls: usize) -> impl Strategy<Value = Vec<CallSpec>> {
    let requests = prop::collection::vec(usual_spec(), 1..=5);
    prop::collection::vec((pause(), requests), 1..=calls)
}

/// Calls of at most this many requests.
pub(super) fn trace(calls: usize, requests: usize) -> impl Strategy<Value = Vec<CallSpec>> {
    let requests = prop::collection::vec(request_spec(requests), 1..=requests);
    prop::collection::vec((pause(), requests), 1..=calls)
}
