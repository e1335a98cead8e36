//! One bucket while requests wait for it: these requests in order, and the credits.
//!
//! A request that leaves frees a gap, and the gap must not be filled from the end alone. A newcomer that
//! takes it would pass at the same time as requests that were given that time before, and the time of the
//! request that left would pass unused. There are two ways to close the gap.
//!
//! - The bucket is credited, and all requests behind [move up](BucketCredits::move_up) by as much. This
//!   requires that every request that waits for the bucket is in this process.
//! - Nothing is credited, and the place is [handed over](BucketCredits::hand_over) to the next request here,
//!   whose own place goes to the one after it. Requests that wait in other instances need not know. The last
//!   place expires.

use std::collections::BTreeMap;
use std::mem::swap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The order of a charge among all charges to its bucket: its time, and among charges of the same time, the
/// sum of all charges up to and including it.
pub(super) type ChargeOrder = (Timestamp, u64);

/// A [`ChargeOrder`], and a number that distinguishes requests closer to each other than a tick.
pub(super) type WaiterKey = (ChargeOrder, u64);

/// The credits of one bucket. Credits between two remaining requests are kept as one sum, because those
/// requests need no more detail.
#[derive(Default)]
pub(super) struct BucketCredits {
    /// The remaining requests.
    waiting: BTreeMap<WaiterKey, BucketWaiter>,
    /// The ticks credited behind each remaining request, up to the next one, if there are any.
    gaps: BTreeMap<ChargeOrder, u64>,
}

/// A request that waits, as far as this bucket is concerned.
pub(super) struct BucketWaiter {
    place: CreditTurn,
    cost: u64,
    /// The time by which credits brought its turn forward.
    sooner: Duration,
    /// Notified when its turn is brought forward, so that it checks again.
    bell: Arc<Notify>,
    /// True if it was notified and has not checked yet.
    is_rung: bool,
}

/// The time at which a request may pass, and the cost it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CreditTurn {
    turn: Instant,
    room: u64,
}

impl BucketWaiter {
    pub(super) fn new(turn: Instant, cost: u64, bell: &Arc<Notify>) -> Self {
        Self {
            place: CreditTurn { turn, room: cost },
            cost,
            sooner: Duration::ZERO,
            bell: Arc::clone(bell),
            is_rung: false,
        }
    }

    fn ring(&mut self) {
        if !self.is_rung {
            self.is_rung = true;
            self.bell.notify_one();
        }
    }

    fn move_up(&mut self, by: Duration, now: Instant) {
        self.sooner = self.sooner.saturating_add(by);
        if self.place.turn > now {
            let turn = self.place.turn.checked_sub(by).unwrap_or(now);
            self.place.turn = turn.max(now);
            self.ring();
        }
    }
}

impl BucketCredits {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn enter(&mut self, key: WaiterKey, waiter: BucketWaiter) {
        self.waiting.insert(key, waiter);
    }

    /// Returns the turn of the last request. The next one must not pass before it, although rounding may have
    /// delayed it by a tick.
    pub(super) fn last_turn(&self) -> Option<Instant> {
        let (_, last) = self.waiting.last_key_value()?;
        Some(last.place.turn)
    }

    /// Returns the current turn of `key`, and notifies it of changes from now on.
    pub(super) fn look(&mut self, key: WaiterKey) -> Option<Instant> {
        let waiter = self.waiting.get_mut(&key)?;
        waiter.is_rung = false;
        Some(waiter.place.turn)
    }

    /// Returns the time by which credits brought the turn of `key` forward.
    pub(super) fn sooner(&self, key: WaiterKey) -> Duration {
        let waiter = self.waiting.get(&key);
        waiter.map_or(Duration::ZERO, |waiter| waiter.sooner)
    }

    /// Removes a request. Credits behind it are also behind the request before it.
    pub(super) fn leave(&mut self, key: WaiterKey) -> Option<BucketWaiter> {
        let waiter = self.waiting.remove(&key)?;
        let (standing, _) = key;
        let mut same = self.waiting.range((standing, 0)..=(standing, u64::MAX));
        if same.next().is_none()
            && let Some(ticks) = self.gaps.remove(&standing)
        {
            self.add(standing, ticks);
        }
        Some(waiter)
    }

    /// Adds a credit for the place at `standing`. Requests behind it need not know.
    pub(super) fn add(&mut self, standing: ChargeOrder, ticks: u64) {
        if let Some(((before, _), _)) = self.waiting.range(..(standing, 0)).next_back() {
            let gap = self.gaps.entry(*before).or_default();
            *gap = gap.saturating_add(ticks);
        }
    }

    /// Returns the known credits for places behind `standing`.
    pub(super) fn behind(&self, standing: ChargeOrder) -> u64 {
        let behind = self.gaps.range(standing..);
        behind.fold(0, |sum: u64, (_, ticks)| sum.saturating_add(*ticks))
    }

    /// Moves up all requests behind `standing`, which was credited.
    pub(super) fn move_up(&mut self, standing: ChargeOrder, by: Duration, now: Instant) {
        let behind = self.waiting.range_mut((standing, u64::MAX)..);
        behind.for_each(|(_, waiter)| waiter.move_up(by, now));
    }

    /// Removes the request `key` without a credit. Its place goes to the next request behind it that fits
    /// into it, whose own place goes to the next one behind that, and so on. The last place is not used. Nor
    /// is a place whose time has come, because other requests may have passed in its stead since.
    pub(super) fn hand_over(&mut self, key: WaiterKey, now: Instant) {
        let Some(gone) = self.leave(key) else {
            return;
        };
        let mut free = gone.place;
        if free.turn <= now {
            return;
        }
        for (_, waiter) in self.waiting.range_mut(key..) {
            if waiter.cost <= free.room && waiter.place.turn > free.turn {
                swap(&mut waiter.place, &mut free);
                waiter.ring();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(place: u64) -> ChargeOrder {
        (Timestamp::from_micros(1), place)
    }

    fn waiter(turn: Instant, cost: u64) -> BucketWaiter {
        BucketWaiter::new(turn, cost, &Arc::new(Notify::new()))
    }

    /// Returns a line with one request for each cost, whose turns are a second apart.
    fn line(now: Instant, costs: &[u64]) -> BucketCredits {
        let mut given = BucketCredits::default();
        let mut turn = now;
        for (nth, cost) in (0..).zip(costs) {
            turn += SECOND;
            given.enter((at(nth), nth), waiter(turn, *cost));
        }
        given
    }

    fn turns(given: &BucketCredits, now: Instant) -> Vec<u64> {
        let waiting = given.waiting.values();
        waiting
            .map(|waiter| (waiter.place.turn - now).as_secs())
            .collect()
    }

    proptest! {
        #[test]
        fn remaining_waiters_are_credited_for_all_that_left_behind_them(
            order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(),
            passes in prop::collection::vec(any::<bool>(), 40),
        ) {
            let mut given = line(Instant::now(), &[1; 40]);
            let mut gone: Vec<u64> = Vec::new();
            for (nth, place) in order.iter().enumerate() {
                let behind = gone.iter().filter(|other| *other > place);
                prop_assert_eq!(given.behind(at(*place)), behind.count() as u64);
                // Some pass, and are credited nothing.
                if passes[nth] {
                    given.add(at(*place), 1);
                    gone.push(*place);
                }
                given.leave((at(*place), *place));
                prop_assert!(given.gaps.len() <= given.waiting.len());
            }
            prop_assert!(given.is_empty() && given.gaps.is_empty());
        }

        #[test]
        fn freed_places_go_to_fitting_waiters_and_delay_no_other(
            costs in prop::collection::vec(1..=5_u64, 1..30),
            goers in prop::collection::vec(any::<prop::sample::Index>(), 1..30),
        ) {
            let now = Instant::now();
            let mut given = line(now, &costs);
            for goer in goers {
                let before: Vec<(WaiterKey, CreditTurn)> =
                    given.waiting.iter().map(|(key, it)| (*key, it.place)).collect();
                let Some((gone, _)) = before.get(goer.index(costs.len())) else {
                    continue;
                };
                given.hand_over(*gone, now);
                let mut used = Vec::new();
                for (key, place) in before.iter().filter(|(key, _)| key != gone) {
                    let waiter = &given.waiting[key];
                    prop_assert!(waiter.cost <= waiter.place.room);
                    prop_assert!(waiter.place.turn <= place.turn);
                    prop_assert!(key > gone || waiter.place == *place);
                    prop_assert!(before.iter().any(|(_, place)| *place == waiter.place));
                    used.push(waiter.place.turn);
                }
                used.sort_unstable();
                used.dedup();
                prop_assert_eq!(used.len(), before.len() - 1, "no place is used twice");
            }
        }
    }

    #[test]
    fn a_non_waiting_request_gets_credits_only_from_behind_others() {
        let mut given = BucketCredits::default();
        for (number, place) in (0..).zip([10, 20, 20]) {
            given.enter((at(place), number), waiter(Instant::now(), 1));
        }
        for place in [5, 15, 25, 26] {
            given.add(at(place), 1);
        }
        assert_eq!(
            given.behind(at(1)),
            3,
            "not of the place before all waiters"
        );
        assert_eq!(
            given.behind(at(12)),
            2,
            "it may queue behind the place at 15"
        );
        assert_eq!(given.behind(at(30)), 0);
        given.leave((at(20), 1));
        assert_eq!(given.behind(at(20)), 2);
        given.leave((at(20), 2));
        assert_eq!((given.behind(at(20)), given.behind(at(10))), (0, 3));
    }

    #[test]
    fn all_waiters_behind_a_credit_move_up_but_never_into_the_past() {
        let now = Instant::now();
        let mut given = line(now, &[1; 4]);
        given.move_up(at(1), SECOND, now);
        assert_eq!(turns(&given, now), [1, 2, 2, 3]);
        given.move_up(at(0), 9 * SECOND, now);
        assert_eq!(turns(&given, now), [1, 0, 0, 0]);
        assert_eq!(given.sooner((at(1), 1)), 9 * SECOND);
    }

    #[test]
    fn a_freed_place_goes_to_the_next_waiter_and_the_last_expires() {
        let now = Instant::now();
        let mut given = line(now, &[1; 5]);
        given.hand_over((at(1), 1), now);
        assert_eq!(turns(&given, now), [1, 2, 3, 4]);
        given.hand_over((at(4), 4), now);
        assert_eq!(turns(&given, now), [1, 2, 3]);
        // A place whose time has come is not handed over any more.
        given.hand_over((at(0), 0), now + SECOND);
        assert_eq!(turns(&given, now), [2, 3]);
    }

    #[test]
    fn a_freed_place_never_goes_to_a_waiter_with_a_larger_cost() {
        let now = Instant::now();
        let mut given = line(now, &[2, 3, 1, 2]);
        given.hand_over((at(0), 0), now);
        assert_eq!(turns(&given, now), [2, 1, 4], "by the waiter that fits");
        // A place of two that holds a cost of one still has room for two.
        given.hand_over((at(2), 2), now);
        assert_eq!(turns(&given, now), [2, 1]);
    }
}
