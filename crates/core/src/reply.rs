//! The reply of a store: every bucket's answer, and which asks changed their buckets.

use crate::outcome::BLANK;
use crate::{ChargedOutcome, Op, Outcome, Outcomes, Receipt, Timestamp, Wait};

/// The reply to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The store's instant at which the request was decided; the last, if its asks were decided at
    /// several.
    pub at: Timestamp,
    /// True if the request passes: every enforced bucket had room.
    pub passed: bool,
    /// One outcome for each ask, in order.
    pub outcomes: Outcomes,
    /// The asks that changed their buckets.
    pub applied: AppliedAsks,
    /// True if [`at`](Self::at) is in none of the [windows](crate::Quota::with_starts) that a quota knows:
    /// the caller's clock differs too much. Then no ask was decided and no bucket was changed, also no
    /// refund was made. The caller sends the request again with the windows around `at`.
    pub outside: bool,
}

/// The asks of a request that were carried out on their buckets: charged, or refunded.
///
/// A take, forced charge or debit of 0 units changes nothing and is never among them, nor is a look
/// or a test. A block is among them if this request charged it.
///
/// A request of up to 64 asks decided atomically, with no charge cut short, needs no allocation.
///
/// ```
/// use tidegate_core::{AppliedAsks, Op};
///
/// let mut applied = AppliedAsks::NONE;
/// applied.charge(1, Op::Take(3), 3);
/// assert!(!applied.contains(0) && applied.contains(1));
/// assert_eq!(applied.units(1, Op::Take(3)), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedAsks {
    /// A bit for each of the first 64 asks.
    mask: u64,
    /// Details of a request that needs more than the mask.
    details: Option<Box<Details>>,
}

/// The details that few requests have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Details {
    /// A bit for each ask from the 65th on.
    beyond: Vec<u64>,
    /// The ask's number and the whole units charged, where that may not be its cost: the overdraft cut
    /// a forced charge short.
    units: Vec<(usize, u64)>,
    /// The instant of each ask, if they were decided at several.
    each_at: Vec<Timestamp>,
}

impl Reply {
    /// Returns a reply without outcomes: none of the asks has been decided yet.
    #[inline]
    pub const fn new(at: Timestamp, passed: bool) -> Self {
        Self {
            at,
            passed,
            outcomes: Outcomes::new(),
            applied: AppliedAsks::NONE,
            outside: false,
        }
    }

    /// Returns the reply to a request of one ask.
    #[inline]
    pub const fn of_one(
        at: Timestamp,
        passed: bool,
        outcome: Outcome,
        applied: AppliedAsks,
    ) -> Self {
        Self {
            at,
            passed,
            outcomes: Outcomes::one(outcome),
            applied,
            outside: false,
        }
    }

    /// Returns a refusal or a reading that changed no bucket.
    pub fn unchanged(at: Timestamp, passed: bool, outcomes: Outcomes) -> Self {
        Self {
            outcomes,
            ..Self::new(at, passed)
        }
    }

    /// Returns the reply to a request of `asks` asks that was not decided, because `at` is outside the windows
    /// of a quota.
    #[cold]
    pub fn undecided(at: Timestamp, asks: usize) -> Self {
        let outcome = BLANK.with_wait(Wait::from_micros(1));
        Self {
            outcomes: std::iter::repeat_n(outcome, asks).collect(),
            outside: true,
            ..Self::new(at, false)
        }
    }

    /// Creates a reply whose asks were decided at different instants. Each item has the instant,
    /// the answer, and true if the ask changed its bucket.
    pub fn of_instants(
        passed: bool,
        answers: impl IntoIterator<Item = (Timestamp, ChargedOutcome, bool)>,
    ) -> Self {
        let mut reply = Self::new(Timestamp::default(), passed);
        let mut details = Details::default();
        for (nth, (at, answer, is_applied)) in answers.into_iter().enumerate() {
            reply.at = reply.at.max(at);
            reply.outcomes.push(answer.outcome);
            details.each_at.push(at);
            if is_applied {
                reply.applied.add(nth);
                details.units.push((nth, answer.units));
            }
        }
        if let Some(Details { beyond, .. }) = reply.applied.details.as_deref_mut() {
            details.beyond = std::mem::take(beyond);
        }
        reply.applied.details = Some(Box::new(details));
        reply
    }

    /// Returns the receipt for a later [`Op::GiveBack`] of the `nth` ask, which was `op`; `None` if
    /// nothing was charged.
    ///
    /// It has the instant and the units of the charge itself. A later instant would refund units
    /// that the clock has paid off since.
    ///
    /// ```
    /// use tidegate_core::{Ask, Bucket, Quota, Timestamp, step};
    ///
    /// let quota = Quota::new(10, 1_000_000).build()?;
    /// let (asks, mut buckets) = ([Ask::take(b"a", &quota, 3)], [Bucket::new(&quota)]);
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let reply = step::decide(&asks, &[0], &mut buckets, now);
    /// let receipt = reply.receipt(0, asks[0].op).expect("three units were charged");
    /// assert_eq!((receipt.at, receipt.cost), (now, 3));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn receipt(&self, nth: usize, op: Op) -> Option<Receipt> {
        let units = self.applied.units(nth, op);
        let outcome = self.outcomes.get(nth).filter(|_| units > 0)?;
        Some(outcome.receipt(self.applied.at(nth).unwrap_or(self.at), units))
    }
}

impl AppliedAsks {
    /// None of the asks.
    pub const NONE: Self = Self {
        mask: 0,
        details: None,
    };

    /// Returns the first `count` asks, of which there are at most 64.
    #[inline]
    pub fn first(count: usize) -> Self {
        let unused = u32::try_from(count).map_or(0, |count| u64::BITS.saturating_sub(count));
        Self {
            mask: u64::MAX.checked_shr(unused).unwrap_or(0),
            details: None,
        }
    }

    /// Adds the `nth` ask.
    #[inline]
    pub fn add(&mut self, nth: usize) {
        match mask_of(nth) {
            Some(mask) => self.mask |= mask,
            None => self.add_beyond(nth),
        }
    }

    /// Adds the `nth` ask, which was `op` and charged this many whole units.
    #[inline]
    pub fn charge(&mut self, nth: usize, op: Op, units: u64) {
        self.add(nth);
        if units < op.cost() {
            self.details().units.push((nth, units));
        }
    }

    /// Returns true if the `nth` ask changed its bucket.
    #[inline]
    pub fn contains(&self, nth: usize) -> bool {
        match mask_of(nth) {
            Some(mask) => self.mask & mask != 0,
            None => self.contains_beyond(nth),
        }
    }

    /// Returns true if no ask changed its bucket.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let beyond = || {
            let details = self.details.iter();
            details
                .flat_map(|it| &it.beyond)
                .fold(0, |all, bits| all | bits)
        };
        self.mask == 0 && (self.details.is_none() || beyond() == 0)
    }

    /// Returns the whole units that the `nth` ask was charged, which was `op`.
    pub fn units(&self, nth: usize, op: Op) -> u64 {
        if !self.contains(nth) {
            return 0;
        }
        let mut known = self.details.iter().flat_map(|details| &details.units);
        let known = known.find(|(ask, _)| *ask == nth);
        known.map_or_else(|| op.cost(), |(_, units)| *units)
    }

    /// Returns the instant of the `nth` ask, if the asks were decided at several.
    fn at(&self, nth: usize) -> Option<Timestamp> {
        self.details.as_ref()?.each_at.get(nth).copied()
    }

    /// Returns the details, and allocates them at first use.
    #[cold]
    fn details(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// Adds an ask from the 65th on.
    #[cold]
    fn add_beyond(&mut self, nth: usize) {
        let (word, mask) = beyond(nth);
        let words = &mut self.details().beyond;
        if words.len() <= word {
            words.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = words.get_mut(word) {
            *bits |= mask;
        }
    }

    /// Returns true if an ask from the 65th on changed its bucket.
    #[cold]
    fn contains_beyond(&self, nth: usize) -> bool {
        let (word, mask) = beyond(nth);
        let bits = self.details.as_ref().and_then(|it| it.beyond.get(word));
        bits.is_some_and(|bits| bits & mask != 0)
    }
}

/// Returns the bit of one of the first 64 asks.
#[inline]
fn mask_of(nth: usize) -> Option<u64> {
    1_u64.checked_shl(u32::try_from(nth).ok()?)
}

/// Returns the word and the bit of a later ask.
fn beyond(nth: usize) -> (usize, u64) {
    let word = (nth / 64).saturating_sub(1);
    (word, mask_of(nth % 64).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{AppliedAsks, Reply};
    use crate::{ChargedOutcome, Op, Outcome, Timestamp, Wait};

    const OUTCOME: Outcome = Outcome {
        remaining: 3,
        wait: Wait::NONE,
        overdrawn: 0,
        reset_us: 1,
        mark: 0,
    };

    #[test]
    fn each_charge_has_the_instant_of_its_step() {
        let [early, late] = [7, 9].map(Timestamp::from_micros);
        let answers = [(late, 1), (early, 1), (late, 0)];
        let answers = answers.map(|(at, units)| {
            let outcome = OUTCOME;
            (at, ChargedOutcome { outcome, units }, units > 0)
        });
        let reply = Reply::of_instants(true, answers);
        assert_eq!(reply.at, late);
        let dates = [0, 1, 2, 3].map(|nth| reply.receipt(nth, Op::Take(1)).map(|it| it.at));
        assert_eq!(dates, [Some(late), Some(early), None, None]);
    }

    #[test]
    fn a_clipped_charge_refunds_at_most_what_it_took() {
        let mut reply = Reply::new(Timestamp::from_micros(7), false);
        for (nth, units) in [4, 0].into_iter().enumerate() {
            reply.outcomes.push(OUTCOME);
            reply.applied.charge(nth, Op::Force(10), units);
        }
        assert_eq!(reply.receipt(0, Op::Force(10)).map(|it| it.cost), Some(4));
        assert_eq!(reply.receipt(1, Op::Force(10)), None, "nothing was taken");
        assert!(reply.applied.contains(1));
    }

    #[test]
    fn any_number_of_asks_can_be_distinguished() {
        let all = [0, 1, 63, 64, 65, 127, 128, 1_000];
        let mut applied = AppliedAsks::default();
        for (added, nth) in all.into_iter().enumerate() {
            applied.add(nth);
            let contained = (0..2_000).filter(|nth| applied.contains(*nth)).count();
            assert_eq!(contained, added + 1);
            assert_eq!(applied.units(nth, Op::Take(5)), 5);
        }
        assert_eq!(AppliedAsks::first(0), AppliedAsks::NONE);
        for count in [1, 2, 63, 64] {
            let first = AppliedAsks::first(count);
            let contained = (0..200).filter(|nth| first.contains(*nth)).count();
            assert_eq!(contained, count);
        }
    }
}
