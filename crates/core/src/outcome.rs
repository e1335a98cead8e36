//! The answer of each bucket.

use crate::{BucketReading, Receipt, Timestamp, Wait};

/// What one bucket answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Whole units left: after the charge, if one was made.
    pub remaining: u64,
    /// When this cost would pass if nobody else came: none if allowed.
    pub wait: Wait,
    /// Microseconds until the bucket is as good as new.
    pub reset_us: u64,
    /// What a refundable token bucket has counted of credits, in ticks of its quota; 0 for any
    /// other bucket. After a charge it is the count so far, for the [`Receipt`]; for an
    /// [`Op::GiveBack`](crate::Op::GiveBack) it is what that very credit added.
    pub mark: u64,
}

impl Outcome {
    /// Whether this bucket had room. A bucket that had room is charged only if the request passed.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.wait.is_none()
    }

    /// The answer of a bucket that counts no credits.
    #[inline]
    pub fn new(remaining: u64, wait: Wait, reset_us: u64) -> Self {
        Self {
            remaining,
            wait,
            reset_us,
            mark: 0,
        }
    }

    /// The answer of a bucket that reads `reading` and makes the cost wait for `wait`.
    #[inline]
    pub fn of(wait: Wait, reading: BucketReading) -> Self {
        Self {
            remaining: reading.remaining,
            wait,
            reset_us: reading.reset_us,
            mark: reading.mark,
        }
    }

    /// Returns the same answer with another wait.
    #[must_use]
    pub fn with_wait(self, wait: Wait) -> Self {
        Self { wait, ..self }
    }

    /// What a later [`Op::GiveBack`](crate::Op::GiveBack) of `cost` units needs, which were charged
    /// at `at` and so answered.
    pub fn receipt(&self, at: Timestamp, cost: u64) -> Receipt {
        Receipt {
            at,
            cost,
            until: at.plus(self.reset_us),
            mark: self.mark,
            behind: 0,
        }
    }
}

/// The most outcomes that are kept without an allocation.
const INLINE: usize = 4;

/// All zeros, so that making a list costs next to nothing.
pub(crate) const BLANK: Outcome = Outcome {
    remaining: 0,
    wait: Wait::NONE,
    reset_us: 0,
    mark: 0,
};

/// One answer, and the whole units that were charged or given back for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedOutcome {
    /// The bucket's answer.
    pub outcome: Outcome,
    /// The units charged, or those of the receipt that was given back. Less than the cost of a forced
    /// charge that the overdraft cut short; 0 if the bucket was not changed.
    pub units: u64,
}

/// A list of outcomes; up to four live in place, so that the usual decision allocates nothing.
#[derive(Clone)]
pub struct Outcomes {
    few: [Outcome; INLINE],
    /// How many of `few` are meant.
    len: usize,
    /// All of them, once there are too many to live in place.
    many: Vec<Outcome>,
}

impl Outcomes {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            few: [BLANK; INLINE],
            len: 0,
            many: Vec::new(),
        }
    }

    /// A list of one outcome, put together where it stays.
    #[inline]
    pub const fn one(outcome: Outcome) -> Self {
        Self {
            few: [outcome, BLANK, BLANK, BLANK],
            len: 1,
            many: Vec::new(),
        }
    }

    /// Appends an outcome.
    #[inline]
    pub fn push(&mut self, outcome: Outcome) {
        let at = self.len;
        if at < INLINE {
            self.len = at.saturating_add(1);
        } else {
            self.spill();
        }
        // No call gets the outcome's address, so that it never has to be in memory before it is here.
        if let Some(slot) = self.few.get_mut(at) {
            *slot = outcome;
        } else if let Some(slot) = self.many.last_mut() {
            *slot = outcome;
        }
    }

    /// Makes room for one more elsewhere.
    #[cold]
    fn spill(&mut self) {
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(BLANK);
    }
}

impl Default for Outcomes {
    fn default() -> Self {
        Self::new()
    }
}

impl std::ops::Deref for Outcomes {
    type Target = [Outcome];

    #[inline]
    fn deref(&self) -> &[Outcome] {
        if self.many.is_empty() {
            self.few.get(..self.len).unwrap_or(&self.few)
        } else {
            &self.many
        }
    }
}

impl std::ops::DerefMut for Outcomes {
    fn deref_mut(&mut self) -> &mut [Outcome] {
        if self.many.is_empty() {
            let len = self.len.min(INLINE);
            self.few.split_at_mut(len).0
        } else {
            &mut self.many
        }
    }
}

impl std::fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Outcome> for Outcomes {
    fn from_iter<I: IntoIterator<Item = Outcome>>(iter: I) -> Self {
        let mut outcomes = Self::new();
        for outcome in iter {
            outcomes.push(outcome);
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::{BLANK, Outcome, Outcomes};

    fn outcome(remaining: u64) -> Outcome {
        Outcome { remaining, ..BLANK }
    }

    #[test]
    fn a_list_keeps_its_order_whether_in_place_or_not() {
        for len in 0..12_u64 {
            let mut outcomes = Outcomes::new();
            for n in 0..len {
                outcomes.push(outcome(n));
            }
            let numbers: Vec<u64> = outcomes.iter().map(|it| it.remaining).collect();
            assert_eq!(numbers, (0..len).collect::<Vec<_>>());
            for it in outcomes.iter_mut() {
                it.remaining += 1;
            }
            let raised: Outcomes = outcomes.iter().copied().collect();
            let expected: Vec<_> = (1..=len).map(outcome).collect();
            assert_eq!(raised[..], expected[..]);
        }
    }
}
