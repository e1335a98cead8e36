//! The queue of a token bucket: in order, never over the quota, and a waiter that leaves makes
//! room.

use crate::world::{Spec, start_us};
use proptest::prelude::*;
use tidegate_core::{Algorithm, Bucket, BucketState, Op, Quota, Receipt, Timestamp, step};
use tidegate_testkit::model::ModelBucket;

/// A token bucket with a queue. In some, a unit takes a whole number of microseconds.
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

/// A step after this many 256ths of a unit's time: a request joins the queue, or a waiter leaves.
#[derive(Clone, Copy, Debug)]
enum QueueEvent {
    Comes(u64),
    Leaves(usize),
}

fn next() -> impl Strategy<Value = (u64, QueueEvent)> {
    let pause = prop_oneof![3 => Just(0), 2 => 0..=100_u64, 1 => 0..=1_500_u64];
    let next = prop_oneof![
        4 => (1..=11_u64).prop_map(QueueEvent::Comes),
        3 => any::<usize>().prop_map(QueueEvent::Leaves),
    ];
    (pause, next)
}

/// A process with waiting requests. It knows their order, and moves the later ones up when one
/// leaves.
struct Line {
    quota: Quota,
    bucket: Bucket,
    now: Timestamp,
    /// Waiting requests, and when the turn of each comes.
    waiting: Vec<(Receipt, Timestamp)>,
    /// Requests whose turn came: instant and cost.
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

    /// Advances the clock, and passes all requests whose turn comes by then.
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

    /// Joins the queue; returns the instant of its turn, if there was a place.
    fn comes(&mut self, cost: u64) -> Option<Timestamp> {
        let take = Op::Take(cost);
        let outcome = step::decide_one(&self.quota.queueing(), &mut self.bucket, take, self.now);
        outcome.is_allowed().then(|| {
            let turn = self.now.plus(self.quota.place(&outcome).wait_us);
            // No request overtakes, although rounding may have delayed an earlier one by a tick.
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

    /// All guarantees of a queue at once. It has as many places as the bucket has units. Turns are
    /// in order and not earlier than reported. The instants of passing keep within the quota. After
    /// a waiter leaves, the bucket is as if it had never joined.
    #[test]
    fn a_queue_is_ordered_never_exceeds_and_drops_leavers(
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
                QueueEvent::Comes(cost) => {
                    let place = line.comes(cost);
                    let fits = cost <= quota.capacity() && deep.would(now_us, cost).allowed;
                    if let Some(turn) = place {
                        prop_assert!(fits && deep.take(now_us, cost).allowed);
                        let owed_us = deep.would(now_us, 0).reset_us;
                        let exact_us = owed_us.saturating_sub(quota.brim() / drain);
                        let wait_us = turn.since(line.now);
                        let lost = if drain > 1 { 2 + left } else { 0 };
                        prop_assert!(wait_us <= exact_us + lost, "it passes as soon as possible");
                    } else {
                        // Rounding may cost one tick for each waiter that left.
                        prop_assert!(!fits || (drain > 1 && left > 0));
                    }
                }
                QueueEvent::Leaves(pick) if !line.waiting.is_empty() => {
                    let receipt = line.leaves(pick % line.waiting.len());
                    deep.give_back(now_us, receipt.at.as_micros(), receipt.cost);
                    left += 1;
                }
                QueueEvent::Leaves(_) => {}
            }
            let reset_us = line.bucket.reading(&quota, line.now).reset_us;
            let exact_us = deep.would(now_us, 0).reset_us;
            prop_assert!(reset_us >= exact_us, "it passes no earlier than the exact model");
            let lost = if drain > 1 { left } else { 0 };
            prop_assert!(reset_us <= exact_us + lost, "{reset_us} {exact_us} {left}");
        }
        line.advance(u64::MAX >> 4);
        prop_assert!(line.waiting.is_empty());
        let mut plain = ModelBucket::new(spec.model());
        let mut before = Timestamp::default();
        for (nth, (at, cost)) in (0..).zip(line.passed) {
            prop_assert!(at >= before, "turns are in order");
            // A request that is a tick late because of rounding loses that tick of a full bucket.
            let late_us = if drain > 1 { nth * (1 + left) } else { 0 };
            let passes = plain.take(at.as_micros() + late_us, cost).allowed;
            prop_assert!(passes, "over at {at:?}");
            before = at;
        }
    }

    /// Requests that do not wait, and those with no wait limit, see the same as without a queue.
    #[test]
    fn a_queue_without_waiting_equals_the_plain_quota(
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
fn a_quota_without_a_queue_queues_no_request() {
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
    // Half of the quota, for use without the other instances, has no queue.
    let half = |quota: Quota| {
        let two = std::num::NonZeroU32::new(2).unwrap();
        quota.at_share(std::num::NonZeroU32::MIN, two)
    };
    assert_eq!(half(quota.queueing()).brim(), half(quota).brim());
}

/// A cost above the capacity gets no place in a queue of any length: it would pass at once with
/// more than the bucket ever holds.
#[test]
fn a_cost_above_the_capacity_is_not_queued() {
    let quota = Quota::new(5, 1_000_000).queue(100).build().unwrap();
    let mut bucket = Bucket::new(&quota);
    let now = Timestamp::from_millis(1_700_000_000_000);
    let outcome = step::decide_one(&quota.queueing(), &mut bucket, Op::Take(6), now);
    assert!(outcome.wait.is_never());
    assert_eq!(quota.place(&outcome).remaining, 5);
}
