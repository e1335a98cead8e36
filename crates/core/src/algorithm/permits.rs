//! Permits: how many requests may be in flight at once.
//!
//! A take holds its units until they are refunded ([`Op::GiveBack`](crate::Op::GiveBack)), however long that is:
//! its caller keeps a guard, and the guard refunds them when the request ends. An
//! [`Op::Acquire`](crate::Op::Acquire) holds its units under an id until an end, which
//! [`Op::Renew`](crate::Op::Renew) moves, or until [`Op::Release`](crate::Op::Release): for callers that may
//! disappear.
//!
//! A lower limit takes nothing away. It refuses until enough permits are released.

use super::{Bucket, BucketState};
use crate::ask::{PermitId, PermitTerms};
use crate::quota::Basis;
use crate::{BucketReading, Quota, Receipt, Timestamp, Wait};

/// The most ids of one bucket. Each costs memory, and time to search.
pub const TIMED_PERMITS_MAX: usize = 65_536;

/// Count of numbers that each id is encoded as.
const TIMED_NUMBERS: usize = 4;

/// The permits of one bucket that are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Held by guards, without an end.
    held: u64,
    /// Held under an id, the earliest end first. Those that have ended count no more, and are removed by the
    /// next change.
    timed: Vec<TimedPermits>,
}

/// Permits that end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPermits {
    /// Their name in the bucket.
    pub id: PermitId,
    /// The number of permits.
    pub units: u64,
    /// The first instant at which they are free again.
    pub end: Timestamp,
}

impl Permits {
    /// Returns the permits without an end, which guards hold.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the permits that end by themselves and have not by `now`, the earliest end first.
    ///
    /// ```
    /// use tidegate_core::ask::{PermitId, PermitTerms};
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// let (quota, now) = (Quota::concurrent(3).build()?, Timestamp::from_millis(1_700_000_000_000));
    /// let mut bucket = Bucket::new(&quota);
    /// let terms = PermitTerms { id: PermitId([1, 2]), units: 2, ttl_us: 5_000_000 };
    /// assert!(step::decide_one(&quota, &mut bucket, Op::Acquire(terms), now).is_allowed());
    /// let Bucket::Permits(permits) = &bucket else { panic!() };
    /// assert_eq!(permits.timed(now).map(|it| it.units).sum::<u64>(), 2);
    /// assert_eq!(permits.timed(now.plus(5_000_000)).count(), 0);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn timed(&self, now: Timestamp) -> impl Iterator<Item = &TimedPermits> {
        self.timed.iter().filter(move |it| it.end > now)
    }

    /// Returns the same without those that guards hold: what another process may continue with.
    ///
    /// ```
    /// use tidegate_core::ask::{PermitId, PermitTerms};
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// let (quota, now) = (Quota::concurrent(3).build()?, Timestamp::from_millis(1_700_000_000_000));
    /// let mut bucket = Bucket::new(&quota);
    /// let terms = PermitTerms { id: PermitId([1, 2]), units: 1, ttl_us: 5_000_000 };
    /// for op in [Op::Take(2), Op::Acquire(terms)] {
    ///     assert!(step::decide_one(&quota, &mut bucket, op, now).is_allowed());
    /// }
    /// let Bucket::Permits(permits) = bucket else { panic!() };
    /// assert_eq!(permits.clone().without_timed().held(), 2);
    /// let rest = permits.without_guards();
    /// assert_eq!((rest.held(), rest.last_end()), (0, Some(now.plus(5_000_000))));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn without_guards(self) -> Self {
        Self { held: 0, ..self }
    }

    /// Returns the same without those that end by themselves.
    #[must_use]
    pub fn without_timed(self) -> Self {
        Self {
            timed: Vec::new(),
            ..self
        }
    }

    /// Returns the latest end of those that end by themselves.
    pub fn last_end(&self) -> Option<Timestamp> {
        self.timed.last().map(|it| it.end)
    }

    /// Returns the memory of the list, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.timed
            .capacity()
            .saturating_mul(size_of::<TimedPermits>())
    }

    /// Returns the units in use at `now`.
    fn used(&self, now: Timestamp) -> u64 {
        let timed = self.timed(now).map(|it| it.units);
        timed.fold(self.held, u64::saturating_add)
    }

    /// Returns the place of an id that has not ended.
    fn find(&self, id: PermitId, now: Timestamp) -> Option<usize> {
        self.timed.iter().position(|it| it.id == id && it.end > now)
    }

    /// Removes what has ended, and the list's memory once nothing is left.
    fn drop_ended(&mut self, now: Timestamp) {
        self.timed.retain(|it| it.end > now);
        if self.timed.is_empty() {
            self.timed = Vec::new();
        }
    }

    /// Adds permits at the place that their end has.
    fn insert(&mut self, permits: TimedPermits) {
        let place = self.timed.partition_point(|it| it.end <= permits.end);
        self.timed.insert(place, permits);
    }

    /// Moves the end of an id to `end`, if that is later. An end never moves back: a renewal that arrives late must
    /// not undo a later one.
    fn prolong(&mut self, place: usize, end: Timestamp) {
        if self.timed.get(place).is_some_and(|it| it.end < end) {
            let permits = self.timed.remove(place);
            self.insert(TimedPermits { end, ..permits });
        }
    }

    /// Writes the state as numbers: those of guards, then of each id its halves, units and end.
    pub(super) fn encode(&self, put: &mut impl FnMut(u64)) {
        put(self.held);
        for TimedPermits { id, units, end } in &self.timed {
            let [high, low] = id.0;
            [high, low, *units, end.as_micros()]
                .into_iter()
                .for_each(&mut *put);
        }
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
    ) -> Option<(Bucket, Basis)> {
        if numbers.len() % TIMED_NUMBERS != 1 {
            return None;
        }
        let mut permits = Self {
            held: numbers.next()?,
            timed: Vec::new(),
        };
        while let Some(high) = numbers.next() {
            let (low, units) = (numbers.next()?, numbers.next()?);
            permits.insert(TimedPermits {
                id: PermitId([high, low]),
                units,
                end: Timestamp::from_micros(numbers.next()?),
            });
        }
        Some((Bucket::Permits(permits), Basis::PLAIN))
    }
}

impl BucketState for Permits {
    /// Until enough permits have ended by themselves; [`Wait::RELEASE`] if those are not enough.
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.amount {
            return Wait::NEVER;
        }
        let used = self.used(now);
        let Some(mut missing) = used
            .saturating_add(cost)
            .checked_sub(quota.amount)
            .filter(|missing| *missing > 0)
        else {
            return Wait::NONE;
        };
        for permits in self.timed(now) {
            missing = missing.saturating_sub(permits.units);
            if missing == 0 {
                return Wait::from_micros(permits.end.since(now));
            }
        }
        Wait::RELEASE
    }

    fn charge(&mut self, _quota: &Quota, cost: u64, now: Timestamp) {
        self.drop_ended(now);
        self.held = self.held.saturating_add(cost);
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let most = quota.amount.saturating_add(quota.overdraft);
        let units = cost.min(most.saturating_sub(self.used(now)));
        self.charge(quota, units, now);
        units
    }

    /// Releases permits of guards. The caller refunds each guard at most once.
    fn give_back(&mut self, _quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        self.drop_ended(now);
        self.held = self.held.saturating_sub(receipt.cost);
        0
    }

    /// Never: an end is as far ahead as its caller asked for, and guards have none.
    fn is_beyond_reach(&self, _quota: &Quota, _now: Timestamp) -> bool {
        false
    }

    fn clamp_to_now(&mut self, _quota: &Quota, _now: Timestamp) {}

    /// The time until all is free again is that of the permits that end by themselves. It is unknown while guards
    /// hold any, and then at least that of a [`Wait::RELEASE`].
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let used = self.used(now);
        let unknown = Wait::RELEASE.as_micros().unwrap_or_default();
        BucketReading {
            remaining: quota.amount.saturating_sub(used),
            overdrawn: used.saturating_sub(quota.amount),
            reset_us: self
                .last_end()
                .map_or(0, |end| end.since(now))
                .max(if self.held > 0 { unknown } else { 0 }),
            mark: 0,
        }
    }

    /// Never while a guard holds a permit, or else when the last one has ended.
    fn fresh_at(&self, _quota: &Quota) -> Timestamp {
        if self.held > 0 {
            Timestamp::from_micros(u64::MAX)
        } else {
            self.last_end().unwrap_or_default()
        }
    }

    fn has_permits(&self, id: PermitId, now: Timestamp) -> bool {
        self.find(id, now).is_some()
    }

    fn acquire_wait(&self, quota: &Quota, terms: PermitTerms, beside: u64, now: Timestamp) -> Wait {
        if terms.units == 0 || self.has_permits(terms.id, now) {
            return Wait::NONE;
        }
        let room = self.wait(quota, terms.units.saturating_add(beside), now);
        match self.timed(now).next() {
            Some(first) if self.timed(now).count() >= TIMED_PERMITS_MAX => {
                room.max(Wait::from_micros(first.end.since(now)))
            }
            _ => room,
        }
    }

    fn acquire(&mut self, _quota: &Quota, terms: PermitTerms, now: Timestamp) -> u64 {
        let PermitTerms { id, units, ttl_us } = terms;
        let end = now.plus(ttl_us);
        self.drop_ended(now);
        if let Some(place) = self.find(id, now) {
            self.prolong(place, end);
            return 0;
        }
        if ttl_us > 0 {
            self.insert(TimedPermits { id, units, end });
        }
        units
    }

    fn renew(&mut self, id: PermitId, ttl_us: u64, now: Timestamp) {
        if let Some(place) = self.find(id, now) {
            self.prolong(place, now.plus(ttl_us));
        }
    }

    fn release(&mut self, id: PermitId, now: Timestamp) -> u64 {
        self.drop_ended(now);
        match self.find(id, now) {
            Some(place) => self.timed.remove(place).units,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Op, Outcome, step};

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn acquire(id: u64, units: u64, ttl_us: u64) -> Op {
        Op::Acquire(PermitTerms {
            id: PermitId([id, 0]),
            units,
            ttl_us,
        })
    }

    fn permits(bucket: &Bucket) -> &Permits {
        match bucket {
            Bucket::Permits(permits) => permits,
            _ => panic!("it has permits"),
        }
    }

    /// Decides one operation after the other on one bucket, each at its microsecond.
    fn run(quota: &Quota, bucket: &mut Bucket, ops: &[(u64, Op)]) -> Vec<Outcome> {
        let decide = |(at, op): &(u64, Op)| step::decide_one(quota, bucket, *op, START.plus(*at));
        ops.iter().map(decide).collect()
    }

    #[test]
    fn a_refusal_tells_the_end_that_makes_room_or_waits_for_a_release() {
        let quota = Quota::concurrent(5).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let outcomes = run(
            &quota,
            &mut bucket,
            &[
                (0, Op::Take(2)),
                (0, acquire(1, 1, 300)),
                (0, acquire(2, 2, 100)),
                (10, Op::Take(2)),
                (10, Op::Take(3)),
                (10, Op::Take(4)),
                (10, Op::Take(6)),
                (99, Op::Take(2)),
                (100, Op::Take(2)),
            ],
        );
        let waits: Vec<Wait> = outcomes.iter().map(|it| it.wait).collect();
        assert_eq!(
            waits[3..],
            [
                Wait::from_micros(90),
                Wait::from_micros(290),
                Wait::RELEASE,
                Wait::NEVER,
                Wait::from_micros(1),
                Wait::NONE,
            ]
        );
        assert_eq!(bucket.fresh_at(&quota), Timestamp::from_micros(u64::MAX));
    }

    #[test]
    fn a_repeated_acquire_takes_no_more_and_never_ends_earlier() {
        let quota = Quota::concurrent(2).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let ops = [
            (0, acquire(1, 2, 100)),
            (10, acquire(1, 2, 200)),
            (10, acquire(1, 2, 5)),
            (10, Op::Take(1)),
            (209, Op::Look),
            (210, Op::Look),
        ];
        let outcomes = run(&quota, &mut bucket, &ops);
        assert!(outcomes[..3].iter().all(Outcome::is_allowed));
        assert_eq!(outcomes[3].wait, Wait::from_micros(200));
        assert_eq!((outcomes[4].remaining, outcomes[5].remaining), (0, 2));
    }

    #[test]
    fn only_permits_that_are_there_are_renewed_and_released_once() {
        let quota = Quota::concurrent(2).build().unwrap();
        let mut bucket = Bucket::new(&quota);
        let id = PermitId([1, 0]);
        let renew = Op::Renew { id, ttl_us: 100 };
        let outcomes = run(
            &quota,
            &mut bucket,
            &[
                (0, renew),
                (0, acquire(1, 1, 100)),
                (99, renew),
                (198, renew),
                (298, renew),
            ],
        );
        let allowed: Vec<bool> = outcomes.iter().map(Outcome::is_allowed).collect();
        assert_eq!(allowed, [false, true, true, true, false]);
        assert_eq!(outcomes[4].wait, Wait::NEVER);

        run(&quota, &mut bucket, &[(300, acquire(1, 2, 100))]);
        let at = |at| START.plus(at);
        assert_eq!(bucket.release(id, at(310)), 2);
        assert_eq!(bucket.release(id, at(310)), 0);
        assert_eq!(permits(&bucket).heap_bytes() > 0, bucket.heap_bytes() > 0);
    }

    #[test]
    fn a_lower_limit_takes_nothing_away() {
        let (old, new) = (Quota::concurrent(5), Quota::concurrent(2));
        let (old, new) = (old.build().unwrap(), new.build().unwrap());
        assert_eq!(old.id(), new.id());
        let mut bucket = Bucket::new(&old);
        let receipt = step::decide_one(&old, &mut bucket, Op::Take(4), START).receipt(START, 4);
        let mut bucket = bucket.adapted(old.basis(), &new, START).unwrap();
        let look = step::decide_one(&new, &mut bucket, Op::Look, START);
        assert_eq!((look.remaining, look.overdrawn), (0, 2));
        assert!(look.reset_us > 0, "it is in use");
        let back = Op::GiveBack(receipt.with_cost(2));
        assert!(!step::decide_one(&new, &mut bucket, Op::Take(1), START).is_allowed());
        step::decide_one(&new, &mut bucket, back, START);
        assert!(!step::decide_one(&new, &mut bucket, Op::Take(1), START).is_allowed());
        step::decide_one(&new, &mut bucket, Op::GiveBack(receipt.with_cost(1)), START);
        assert!(step::decide_one(&new, &mut bucket, Op::Take(1), START).is_allowed());
    }

    /// Every request moves these, also those that hold no permits.
    #[test]
    fn permits_make_no_operation_and_no_bucket_larger() {
        assert!(size_of::<Op>() <= 56, "{}", size_of::<Op>());
        assert!(size_of::<Bucket>() <= 40, "{}", size_of::<Bucket>());
        assert!(size_of::<Outcome>() <= 40, "{}", size_of::<Outcome>());
    }

    #[test]
    fn two_asks_of_one_request_need_room_together() {
        let quota = Quota::concurrent(3).build().unwrap();
        let ask = |op| Ask {
            op,
            ..Ask::take(b"a", &quota, 0)
        };
        let mut buckets = [Bucket::new(&quota)];
        let mut decide = |ops: [Op; 2]| {
            let asks = ops.map(ask);
            step::decide(&asks, &[0, 0], &mut buckets, START).passed
        };
        assert!(!decide([Op::Take(2), acquire(1, 2, 50)]));
        assert!(decide([Op::Take(2), acquire(1, 1, 50)]));
        // A release comes before the takes of its request, in any order of asks.
        assert!(decide([Op::Take(1), Op::Release(PermitId([1, 0]))]));
    }
}
