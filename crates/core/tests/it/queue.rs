//! Places in the debt of a token bucket: in order, never over, and whoever leaves makes room.

use crate::world::{Spec, start_us};
use proptest::prelude::*;
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// A token bucket with a queue. Rates that make a unit take a whole number of microseconds, and
/// others.
fn queue() -> impl Strategy<Value = (Spec, Quota)> {
    let period = prop_oneof![
        Just(1_000_000),
        Just(60_000_000),
        1_000..=3_000_000_u64,
        Just(7)
    ];
    (1..=30_u64, period, 1..=10_u64, 0..=40_u64).prop_map(|(amount, period_us, burst, places)| {
        let spec = Spec {
            burst: Some(burst),
            overdraft: places,
            refundable: true,
            ..Spec::of(Algorithm::TokenBucket, amount, period_us)
        };
        let quota = Quota::new(amount, period_us).burst(burst).queue(places);
        let quota = quota.build().unwrap();
        assert_eq!(quota, spec.build().unwrap());
        (spec, quota)
    })
}

/// What happens next: after so many 256ths of the time of a unit, somebody takes a place, or one of
/// those who wait leaves.
#[derive(Clone, Copy, Debug)]
enum Next {
    Comes(u64),
    Leaves(usize),
}

fn next() -> impl Strategy<Value = (u64, Next)> {
    let pause = prop_oneof![3 => Just(0), 2 => 0..=100_u64, 1 => 0..=1_500_u64];
    let next = prop_oneof![
        4 => (1..=11_u64).prop_map(Next::Comes),
        3 => any::<usize>().prop_map(Next::Leaves),
    ];
    (pause, next)
}

/// One process in which people wait: it knows who lies behind whom, and lets those who wait move up.
struct Line {
    quota: Quota,
    bucket: Bucket,
    now: Timestamp,
    /// Who waits, and when their turn comes.
    waiting: Vec<(Receipt, Timestamp)>,
    /// Whose turn has come: when, and at what cost.
    passed: Vec<(Timestamp, u64)>,
}

impl Line {
    fn new(quota: Quota, now: Timestamp) -> Self {
        Self {
            bucket: Bucket::new(&quota),
            quota,
            now,
            waiting: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Lets time pass, and all go whose turn comes by then.
    fn advance(&mut self, us: u64) {
        let then = self.now.plus(us);
        while let Some((first, turn)) = self.waiting.first().copied() {
            let turn = turn.max(self.now);
            if turn > then {
                break;
            }
            self.passed.push((turn, first.cost));
            self.waiting.remove(0);
        }
        self.now = then;
    }

    /// Tells when the turn comes, if there was a place.
    fn comes(&mut self, cost: u64) -> Option<Timestamp> {
        let take = Op::Take(cost);
        let outcome = step::decide_one(&self.quota.queueing(), &mut self.bucket, take, self.now);
        outcome.is_allowed().then(|| {
            let turn = self.now.plus(self.quota.place(&outcome).wait_us);
            // Nobody overtakes, though rounding may have kept somebody a tick longer.
            let turn = self.waiting.last().map_or(turn, |last| turn.max(last.1));
            let receipt = outcome.receipt(self.now, cost);
            self.waiting.push((receipt, turn));
            turn
        })
    }

    fn leaves(&mut self, nth: usize) -> Receipt {
        let (receipt, _) = self.waiting.remove(nth);
        let back = Op::GiveBack(receipt);
        let outcome = step::decide_one(&self.quota.queueing(), &mut self.bucket, back, self.now);
        let (before, behind) = self.waiting.split_at_mut(nth);
        for (earlier, _) in before.iter_mut() {
            earlier.behind += outcome.mark;
        }
        let sooner_us = self.quota.sooner_us(outcome.mark);
        let mut last = before.last().map_or(self.now, |last| last.1);
        for (_, turn) in behind {
            last = Timestamp::from_micros(turn.as_micros().saturating_sub(sooner_us)).max(last);
            *turn = last;
        }
        receipt
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(3_000)))]

    /// All that can be said of a queue at once: the places are those that the bucket has without it;
    /// turns are in order and no earlier than told; what passes, by the instants at which it does,
    /// is what the quota itself lets pass at these instants; and a bucket that somebody has left is
    /// as if they had never come.
    #[test]
    fn a_queue_is_in_order_never_over_and_forgets_those_who_leave(
        (spec, quota) in queue(),
        start_us in start_us(),
        trace in prop::collection::vec(next(), 1..=40),
    ) {
        let (drain, price) = quota.drain_and_price();
        let mut line = Line::new(quota, Timestamp::from_micros(start_us));
        let mut deep = ModelBucket::new(tidegate_testkit::model::ModelQuota {
            burst: quota.capacity() + quota.overdraft(),
            overdraft: 0,
            ..spec.model()
        });
        let mut left = 0_u64;
        for (pause, next) in trace {
            line.advance(price / drain * pause / 256);
            let now_us = line.now.as_micros();
            match next {
                Next::Comes(cost) => {
                    let place = line.comes(cost);
                    let fits = cost <= quota.capacity() && deep.would(now_us, cost).allowed;
                    if let Some(turn) = place {
                        prop_assert!(fits && deep.take(now_us, cost).allowed);
                        let owed_us = deep.would(now_us, 0).reset_us;
                        let exact_us = owed_us.saturating_sub(quota.brim() / drain);
                        let wait_us = turn.since(line.now);
                        let lost = if drain > 1 { 2 + left } else { 0 };
                        prop_assert!(wait_us <= exact_us + lost, "as soon as can be");
                    } else {
                        // Rounding may hold back a tick for each who left.
                        prop_assert!(!fits || (drain > 1 && left > 0));
                    }
                }
                Next::Leaves(pick) if !line.waiting.is_empty() => {
                    let receipt = line.leaves(pick % line.waiting.len());
                    deep.give_back(now_us, receipt.at.as_micros(), receipt.cost);
                    left += 1;
                }
                Next::Leaves(_) => {}
            }
            let reset_us = line.bucket.reading(&quota, line.now).reset_us;
            let exact_us = deep.would(now_us, 0).reset_us;
            prop_assert!(reset_us >= exact_us, "never more than exactly");
            let lost = if drain > 1 { left } else { 0 };
            prop_assert!(reset_us <= exact_us + lost, "{reset_us} {exact_us} {left}");
        }
        line.advance(u64::MAX >> 4);
        prop_assert!(line.waiting.is_empty());
        let mut plain = ModelBucket::new(spec.model());
        let mut before = Timestamp::default();
        for (nth, (at, cost)) in (0..).zip(line.passed) {
            prop_assert!(at >= before, "in order");
            // Who comes a tick late because of rounding lets a full bucket lose that tick.
            let late_us = if drain > 1 { nth * (1 + left) } else { 0 };
            let passes = plain.take(at.as_micros() + late_us, cost).allowed;
            prop_assert!(passes, "over at {at:?}");
            before = at;
        }
    }

    /// Who would not wait sees the same as if nobody could, and so does who waits for nothing.
    #[test]
    fn without_a_wait_it_is_the_quota_itself(
        (_, quota) in queue(),
        start_us in start_us(),
        trace in prop::collection::vec((0..=600_u64, 1..=11_u64, any::<bool>()), 1..=40),
    ) {
        let (drain, price) = quota.drain_and_price();
        let (mut plain, mut now) = (Bucket::new(&quota), Timestamp::from_micros(start_us));
        for (pause, cost, waits) in trace {
            now = now.plus(price / drain * pause / 256);
            let mut queued = plain.clone();
            let place = step::decide_one(&quota.queueing(), &mut queued, Op::Take(cost), now);
            let before = plain.clone();
            let outcome = step::decide_one(&quota, &mut plain, Op::Take(cost), now);
            prop_assert_eq!(
                outcome.is_allowed(),
                place.is_allowed() && quota.place(&place).wait_us == 0
            );
            if outcome.is_allowed() {
                prop_assert_eq!(&plain, &queued);
                prop_assert_eq!(quota.place(&place).remaining, outcome.remaining);
            } else if place.is_allowed() {
                prop_assert!(quota.place(&place).wait_us >= outcome.wait.as_micros().unwrap());
                plain = if waits { queued } else { before };
            }
        }
    }
}

#[test]
fn a_quota_without_a_queue_queues_nobody() {
    for spec in [
        Quota::new(5, 1_000_000),
        Quota::new(5, 1_000_000).overdraft(3),
        Quota::new(5, 1_000_000).algorithm(Algorithm::SlidingLog),
        Quota::new(5, 1_000_000).algorithm(Algorithm::FixedWindow(tidegate_core::Align::Clock)),
        Quota::new(0, 1_000_000),
    ] {
        let quota = spec.build().unwrap();
        assert_eq!(quota.queueing(), quota);
    }
    let quota = Quota::new(5, 1_000_000).queue(3).build().unwrap();
    assert_ne!(quota.queueing(), quota);
    assert_eq!(quota.queueing().id(), quota.id());
    assert_eq!(quota.queueing().cost_max(), quota.cost_max());
    assert!(!quota.queueing().is_narrow() && !quota.is_narrow());
    // A part of it, for who cannot ask the others, keeps nobody waiting.
    let half = |quota: Quota| {
        let two = std::num::NonZeroU32::new(2).unwrap();
        quota.at_share(std::num::NonZeroU32::MIN, two)
    };
    assert_eq!(half(quota.queueing()).brim(), half(quota).brim());
}

/// However long the queue, what is larger than the bucket would pass at once with more than the
/// bucket ever holds.
#[test]
fn a_cost_above_the_capacity_gets_no_place() {
    let quota = Quota::new(5, 1_000_000).queue(100).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    let now = Timestamp::from_millis(1_700_000_000_000);
    let outcome = step::decide_one(&quota.queueing(), &mut bucket, Op::Take(6), now);
    assert!(outcome.wait.is_never());
    assert_eq!(quota.place(&outcome).remaining, 5);
}
