//! Lending token buckets: parts of a charge are refunded seconds later, never more than the exact
//! amount, and almost never less.
//!
//! The model refunds exactly: it replays history without the refunded part.

use crate::world::{Cost, Pause, Spec, Walk, cost, fine_spec_of, start_us};
use proptest::prelude::*;
use tidegate_core::algorithm::lent::{LOWS_MAX, Low, Lows};
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// The operation of a step.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(Cost),
    Force(Cost),
    /// Refunds this many 256ths of one of the open charges.
    Return(usize, u64),
    /// Drops one of the open charges without a refund.
    Lose(usize),
}

/// Overlapping reservations that last seconds. Some are lost; some charges are forced.
fn reservations(steps: usize, forces: bool) -> impl Strategy<Value = Vec<(Pause, Act)>> {
    let pause = prop_oneof![
        3 => Just(Pause::None),
        2 => (0..=5_u64).prop_map(Pause::Micros),
        4 => (0..=600_u64).prop_map(Pause::Unit),
        1 => (0..=4_000_u64).prop_map(Pause::Unit),
        1 => (0..=1_u64).prop_map(Pause::Wait),
        1 => (0..=1_u64).prop_map(Pause::Reset),
    ];
    let act = prop_oneof![
        6 => cost().prop_map(Act::Take),
        4 => (any::<usize>(), 0..=256_u64).prop_map(|(pick, part)| Act::Return(pick, part)),
        u32::from(forces) => cost().prop_map(Act::Force),
        1 => any::<usize>().prop_map(Act::Lose),
    ];
    prop::collection::vec((pause, act), 1..=steps)
}

/// A bucket whose debt grows with each charge until it has more lows than slots. It then recovers,
/// and loans of all ages are refunded.
fn crowds() -> impl Strategy<Value = Vec<(Pause, Act)>> {
    let few = |most| (1..=most).prop_map(Cost::Exactly);
    let sink = (
        (0..=250_u64).prop_map(Pause::Unit),
        few(4_u64).prop_map(Act::Take),
    );
    let back = (any::<usize>(), 64..=256_u64).prop_map(|(pick, part)| Act::Return(pick, part));
    let rise = ((0..=3_000_u64).prop_map(Pause::Unit), back);
    let round = (
        prop::collection::vec(sink, 6..=16),
        prop::collection::vec(rise, 1..=6),
    );
    let rounds = prop::collection::vec(round, 1..=5);
    rounds.prop_map(|rounds| {
        let each = rounds.into_iter().map(|(sink, rise)| [sink, rise].concat());
        each.collect::<Vec<_>>().concat()
    })
}

fn lending() -> impl Strategy<Value = Spec> {
    let usual = (1..=50_u64, 1_000..=2_000_000_u64, 1..=400_u64, 0..=9_u64).prop_map(
        |(amount, period_us, burst, overdraft)| Spec {
            burst: Some(burst),
            overdraft,
            ..Spec::of(Algorithm::TokenBucket, amount, period_us)
        },
    );
    prop_oneof![3 => usual, 1 => fine_spec_of(Just(Algorithm::TokenBucket))]
        .prop_filter("must be representable in microseconds", |spec| {
            spec.fine().is_some()
        })
}

/// A bucket and its model.
struct Pair {
    walk: Walk,
    model: ModelBucket,
    /// Sum of all refunds.
    credited: u64,
}

impl Pair {
    fn new(spec: &Spec, quota: &Quota, start_us: u64) -> Self {
        Self {
            walk: Walk::new(quota, start_us),
            model: ModelBucket::new(spec.model()),
            credited: 0,
        }
    }

    fn cost(&self, cost: Cost) -> u64 {
        let walk = &self.walk;
        match cost {
            Cost::Exactly(units) => units,
            Cost::Remaining(more) => walk.bucket.reading(&walk.quota, walk.now()).remaining + more,
            Cost::Capacity(more) => walk.quota.capacity() + more,
        }
    }

    /// Applies the step to both; returns the readings of the bucket and the model.
    fn act(&mut self, pause: Pause, act: Act) -> Result<(), TestCaseError> {
        self.walk.pause(pause);
        let now_us = self.walk.now_us;
        match act {
            Act::Take(cost) => {
                let cost = self.cost(cost);
                if self.walk.decide(Op::Take(cost)).is_allowed() {
                    prop_assert!(self.model.take(now_us, cost).allowed);
                }
            }
            Act::Force(cost) => {
                // Keep clear of the overdraft limit: the bucket and the model may reach it at
                // different charges.
                let left = self.cost(Cost::Remaining(0));
                if left > 0 {
                    let cost = self.cost(cost).clamp(1, left + self.walk.quota.overdraft());
                    self.walk.decide(Op::Force(cost));
                    self.model.force(now_us, cost);
                }
            }
            Act::Return(pick, part) if !self.walk.taken.is_empty() => {
                let pick = pick % self.walk.taken.len();
                let receipt = self.walk.taken.swap_remove(pick);
                let cost = u128::from(receipt.cost) * u128::from(part) / 256;
                let cost = u64::try_from(cost).expect("a part");
                let before = self.walk.bucket.reading(&self.walk.quota, self.walk.now());
                let back = Op::GiveBack(receipt.with_cost(cost));
                let after = self.walk.decide(back);
                self.credited += before.reset_us - after.reset_us;
                self.model.give_back(now_us, receipt.at.as_micros(), cost);
            }
            Act::Lose(pick) if !self.walk.taken.is_empty() => {
                let pick = pick % self.walk.taken.len();
                self.walk.taken.swap_remove(pick);
            }
            Act::Return(..) | Act::Lose(_) => {}
        }
        Ok(())
    }

    fn readings(&self) -> [(u64, u64); 2] {
        let Walk { bucket, quota, .. } = &self.walk;
        let found = bucket.reading(quota, self.walk.now());
        let exact = self.model.would(self.walk.now_us, 0);
        [
            (found.remaining, found.reset_us),
            (exact.remaining, exact.reset_us),
        ]
    }
}

/// Returns the lows of a lending bucket.
fn lows(bucket: &Bucket) -> Vec<Low> {
    match bucket {
        Bucket::Lent(lent) => lent.lows.iter().collect(),
        other => panic!("{other:?} does not lend"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(4_000)))]

    #[test]
    fn refunds_of_loans_never_exceed_the_exact_amount(
        spec in lending(),
        start_us in start_us(),
        trace in reservations(60, true),
    ) {
        let quota = spec.fine().unwrap().with_lending(true);
        let mut pair = Pair::new(&spec, &quota, start_us);
        for (pause, act) in trace {
            pair.act(pause, act)?;
            let [(remaining, reset_us), (exact, exact_us)] = pair.readings();
            prop_assert!(remaining <= exact, "{act:?} at {}", pair.walk.now_us);
            prop_assert!(reset_us >= exact_us, "{act:?} at {}", pair.walk.now_us);
            let lows = lows(&pair.walk.bucket);
            prop_assert!(lows.len() <= LOWS_MAX);
            let rises = |pair: &[Low]| pair[0].at < pair[1].at && pair[0].ticks < pair[1].ticks;
            prop_assert!(lows.windows(2).all(rises), "{lows:?}");
        }
    }

    #[test]
    fn refunds_of_many_loans_never_exceed_the_exact_amount(
        (price, burst) in (1..=50_000_u64, 20..=100_u64),
        start_us in start_us(),
        trace in crowds(),
    ) {
        let spec = Spec { burst: Some(burst), ..Spec::of(Algorithm::TokenBucket, 1, price) };
        let quota = spec.fine().unwrap().with_lending(true);
        let mut pair = Pair::new(&spec, &quota, start_us);
        for (pause, act) in trace {
            pair.act(pause, act)?;
            let [(remaining, reset_us), (exact, exact_us)] = pair.readings();
            prop_assert!(remaining <= exact, "{act:?} at {}", pair.walk.now_us);
            prop_assert!(reset_us >= exact_us, "{act:?} at {}", pair.walk.now_us);
        }
    }

    /// With a slot for each low and a rate of whole ticks per unit, refunds are exact to the
    /// microsecond.
    #[test]
    fn refunds_of_loans_are_exact_while_all_lows_fit(
        (price, burst) in (1..=50_000_u64, 1..=400_u64),
        start_us in start_us(),
        trace in reservations(40, false),
    ) {
        let spec = Spec { burst: Some(burst), ..Spec::of(Algorithm::TokenBucket, 1, price) };
        let quota = spec.fine().unwrap().with_lending(true);
        let mut pair = Pair::new(&spec, &quota, start_us);
        for (pause, act) in trace {
            pair.act(pause, act)?;
            if lows(&pair.walk.bucket).len() == LOWS_MAX {
                break;
            }
            let [found, exact] = pair.readings();
            prop_assert_eq!(found, exact, "{:?} at {}", act, pair.walk.now_us);
        }
    }

    /// The units admitted and not refunded in any interval, against burst + amount × length /
    /// period. Counted without a model.
    #[test]
    fn usage_with_loans_never_exceeds_the_envelope(
        spec in lending(),
        start_us in start_us(),
        trace in reservations(60, false),
    ) {
        let quota = spec.fine().unwrap().with_lending(true);
        let mut pair = Pair::new(&spec, &quota, start_us);
        let mut kept: Vec<Receipt> = Vec::new();
        for (pause, act) in trace {
            let before = pair.walk.taken.clone();
            pair.act(pause, act)?;
            match act {
                Act::Return(pick, part) if !before.is_empty() => {
                    let receipt = before[pick % before.len()];
                    let cost = u128::from(receipt.cost) * u128::from(part) / 256;
                    let cost = receipt.cost - u64::try_from(cost).expect("a part");
                    kept.push(receipt.with_cost(cost));
                }
                Act::Lose(pick) if !before.is_empty() => kept.push(before[pick % before.len()]),
                _ => {}
            }
        }
        kept.append(&mut pair.walk.taken);
        kept.sort_by_key(|receipt| receipt.at);
        let (amount, period) = (u128::from(spec.amount), u128::from(spec.period_us));
        let burst = u128::from(quota.capacity());
        for (i, from) in kept.iter().enumerate() {
            let mut sum = 0;
            for to in &kept[i..] {
                sum += u128::from(to.cost);
                let length = u128::from(to.at.since(from.at));
                prop_assert!(sum * period <= burst * period + amount * length);
            }
        }
    }

    /// Lending does not change decisions on takes. It changes refunds only, and never lowers them.
    #[test]
    fn lending_changes_only_refunds(
        spec in lending(),
        start_us in start_us(),
        trace in reservations(40, true),
    ) {
        let lends = spec.fine().unwrap().with_lending(true);
        let quota = lends.with_lending(false);
        prop_assert!(quota.is_refundable() && !quota.lends());
        prop_assert_eq!(quota.id(), lends.id());
        let (mut lent, mut plain) = (Walk::new(&lends, start_us), Walk::new(&quota, start_us));
        for (pause, act) in trace {
            lent.pause(pause);
            plain.now_us = lent.now_us;
            let op = match act {
                Act::Take(Cost::Exactly(units)) => Op::Take(units),
                Act::Force(Cost::Exactly(units)) => Op::Force(units),
                Act::Take(_) | Act::Force(_) => Op::Take(1),
                Act::Return(..) | Act::Lose(_) => Op::Look,
            };
            prop_assert_eq!(lent.decide(op), plain.decide(op));
        }
        if let Some(receipt) = plain.taken.first() {
            let back = Op::GiveBack(*receipt);
            prop_assert!(lent.decide(back).remaining >= plain.decide(back).remaining);
        }
    }

    /// Lows that are read from any stored numbers are in rising order.
    #[test]
    fn decoded_lows_rise_and_are_bounded(
        list in prop::collection::vec((0..50_u64, 0..50_u64), 0..30),
    ) {
        let list = list.into_iter().map(|(at, ticks)| Low { at, ticks });
        let read: Vec<Low> = Lows::from_list(list.clone()).iter().collect();
        prop_assert!(read.len() <= LOWS_MAX);
        let rises = |pair: &[Low]| pair[0].at < pair[1].at && pair[0].ticks < pair[1].ticks;
        prop_assert!(read.windows(2).all(rises), "{read:?}");
        // No low is lost that is lower than all later ones.
        let lowest = list.map(|low| low.ticks).min();
        prop_assert_eq!(read.first().map(|low| low.ticks), lowest);
    }
}

/// Merged lows keep the lower debt, so that no debt seems too high, and the later instant, so that
/// the low covers every earlier charge.
#[test]
fn the_closest_two_of_too_many_lows_are_merged() {
    let debts = [0, 10, 20, 30, 33, 50, 60, 70, 80];
    let low = |(at, ticks): (u64, u64)| Low { at, ticks };
    let lows = Lows::from_list((1..).zip(debts).map(low));
    let expected = [
        (1, 0),
        (2, 10),
        (3, 20),
        (5, 30),
        (6, 50),
        (7, 60),
        (8, 70),
        (9, 80),
    ];
    assert_eq!(lows.iter().collect::<Vec<_>>(), expected.map(low));
    // The new low may be one of the two. Of equal differences, the first is merged.
    let debts = [0, 10, 20, 30, 40, 50, 60, 70, 71];
    let lows = Lows::from_list((1..).zip(debts).map(low));
    assert_eq!(lows.iter().next_back(), Some(low((9, 70))));
    let lows = Lows::from_list((1..=9).zip((0..).step_by(10)).map(low));
    assert_eq!(lows.iter().next(), Some(low((2, 0))));
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + ms)
}

/// A hundred per second, kept in debt by other clients: one unit every ten milliseconds.
fn busy(lends: bool) -> (Quota, Bucket, Receipt) {
    let quota = Quota::new(100, 1_000_000).refundable(true).build().unwrap();
    let quota = quota.with_lending(lends);
    let mut bucket = Bucket::new(&quota);
    let lent = step::decide_one(&quota, &mut bucket, Op::Take(50), at(0));
    for n in 1..500 {
        assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), at(n * 10)).is_allowed());
    }
    (quota, bucket, lent.receipt(at(0), 50))
}

/// Regression: a bucket that would have refilled within a reservation's lifetime refunded none of
/// it, even though other clients had kept it in debt all the time.
#[test]
fn a_reservation_outliving_a_refill_was_not_refunded() {
    for (lends, expected) in [(false, 0), (true, 40)] {
        let (quota, mut bucket, receipt) = busy(lends);
        let before = bucket.reading(&quota, at(5_000)).remaining;
        let back = Op::GiveBack(receipt.with_cost(40));
        let after = step::decide_one(&quota, &mut bucket, back, at(5_000)).remaining;
        assert_eq!(after - before, expected, "lends: {lends}");
        // The refunded units can be taken again, and no more.
        let passes = |bucket: &Bucket, cost| bucket.wait(&quota, cost, at(5_000)).is_none();
        assert!(passes(&bucket, after) && !passes(&bucket, after + 1));
    }
}

/// The bucket was without debt for a moment after the loan. It would have been just as full without
/// the loan.
#[test]
fn a_paid_off_loan_is_not_refunded() {
    let (quota, mut bucket, receipt) = busy(true);
    let much_later = at(60_000);
    step::decide_one(&quota, &mut bucket, Op::Take(90), much_later);
    let back = Op::GiveBack(receipt);
    let outcome = step::decide_one(&quota, &mut bucket, back, much_later);
    assert_eq!(outcome.remaining, 10);
}

/// A policy that starts or stops lending keeps the state, without any history of lows.
#[test]
fn a_state_survives_a_change_of_lending() {
    let (quota, bucket, receipt) = busy(false);
    let lends = quota.with_lending(true);
    let debt = |bucket: &Bucket| bucket.reading(&quota, at(5_000)).reset_us;
    let mut lent = bucket
        .clone()
        .adapted(quota.basis(), &lends, at(5_000))
        .unwrap();
    assert_eq!(debt(&lent), debt(&bucket));
    let outcome = step::decide_one(&lends, &mut lent.clone(), Op::GiveBack(receipt), at(5_000));
    assert_eq!(
        outcome.mark, 0,
        "without history, it may have had no debt before"
    );
    let now = at(5_000);
    let new = step::decide_one(&lends, &mut lent, Op::Take(9), now).receipt(now, 9);
    for n in 501..900 {
        step::decide_one(&lends, &mut lent, Op::Take(1), at(n * 10));
    }
    let before = lent.reading(&lends, at(9_000)).remaining;
    let plain = lent
        .clone()
        .adapted(lends.basis(), &quota, at(9_000))
        .unwrap();
    assert_eq!(plain.reading(&quota, at(9_000)).remaining, before);
    assert!(matches!(plain, Bucket::Tokens(_)));
    let outcome = step::decide_one(&lends, &mut lent, Op::GiveBack(new), at(9_000));
    assert_eq!(outcome.remaining, before + 9);
    let fixed = Quota::new(3, 1_000).algorithm(Algorithm::SlidingWindow);
    let fixed = fixed.build().unwrap();
    assert_eq!(plain.adapted(quota.basis(), &fixed, at(9_000)), None);
}

/// A clock that goes back leaves the lows in place. They count for later charges.
#[test]
fn a_backward_clock_raises_no_low() {
    let (quota, mut bucket, receipt) = busy(true);
    let before = lows(&bucket);
    step::decide_one(&quota, &mut bucket, Op::Take(1), at(4_000));
    assert_eq!(lows(&bucket).len(), before.len());
    let back = Op::GiveBack(receipt);
    let remaining = bucket.reading(&quota, at(4_000)).remaining;
    let outcome = step::decide_one(&quota, &mut bucket, back, at(4_000));
    assert!(outcome.remaining <= remaining + 50);
    // Far back: the bucket is empty as of then, and has no lows.
    let long_ago = Timestamp::from_micros(at(0).as_micros() - 3_600_000_000);
    bucket.clamp_to_now(&quota, long_ago);
    let nothing = Low {
        at: long_ago.as_micros(),
        ticks: 0,
    };
    assert_eq!(lows(&bucket), [nothing]);
}

/// Regression: the lows were kept if the credits looked unknown already, and counted microseconds
/// where the new quota counts milliseconds. A refund then credited a thousand times too much.
#[test]
fn lows_in_another_tick_are_dropped_at_the_first_charge() {
    const DAY_US: u64 = 86_400_000_000;
    let quota = |amount| {
        let spec = Quota::new(amount, DAY_US).refundable(true);
        spec.build().unwrap().with_lending(true)
    };
    let (fine, coarse) = (quota(1_000_000), quota(1_000_003));
    assert_eq!((fine.tick_us(), coarse.tick_us()), (1, 1_000));
    let at = |us| Timestamp::from_micros(DAY_US + us);
    let mut bucket = Bucket::new(&fine);
    bucket.charge(&fine, 500_000, at(0));
    bucket.charge(&fine, 1, at(0));
    let adapted = bucket.adapted(fine.basis(), &coarse, at(0));
    let Some(Bucket::Lent(state)) = adapted else {
        panic!("{adapted:?}");
    };
    assert_eq!(state.lows, Lows::unknown(at(0)));
}
