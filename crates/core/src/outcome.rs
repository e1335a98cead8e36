//! The answer of each bucket.

use crate::{Receipt, Timestamp, Wait};

/// Answer of one bucket.
///
/// ```
/// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
///
/// let quota = Quota::new(3, 3_000_000).build()?;
/// let (mut bucket, now) = (Bucket::new(&quota), Timestamp::from_millis(1_700_000_000_000));
/// let outcome = step::decide_one(&quota, &mut bucket, Op::Take(2), now);
/// assert_eq!((outcome.remaining, outcome.reset_us), (1, 2_000_000));
/// let refused = step::decide_one(&quota, &mut bucket, Op::Take(2), now);
/// assert_eq!(refused.wait.as_micros(), Some(1_000_000));
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Whole units left: after the charge, if one was made.
    pub remaining: u64,
    /// Time until this cost would pass without other requests; [`Wait::NONE`] if it is allowed.
    pub wait: Wait,
    /// Whole units that it owes below empty, rounded up: by an overdraft, or by places in its queue.
    pub overdrawn: u64,
    /// Microseconds until the bucket is full again.
    pub reset_us: u64,
    /// Credit count of a refundable token bucket, in ticks of its quota; 0 for any other bucket.
    /// After a charge it is the count so far, for the [`Receipt`]. After an
    /// [`Op::GiveBack`](crate::Op::GiveBack) it is the increase by that credit.
    pub mark: u64,
}

/// Level of a bucket at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketReading {
    /// Whole units left.
    pub remaining: u64,
    /// Whole units that it owes below empty, rounded up.
    pub overdrawn: u64,
    /// Microseconds until the bucket is full again.
    pub reset_us: u64,
    /// Credit count, if there is one and the bucket has a debt; see [`Outcome::mark`].
    pub mark: u64,
}

impl Outcome {
    /// Returns true if this bucket had room. A bucket with room is charged only if the request
    /// passed.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.wait.is_none()
    }

    /// Returns the answer of a bucket that counts no credits and owes nothing.
    #[inline]
    pub fn new(remaining: u64, wait: Wait, reset_us: u64) -> Self {
        Self {
            remaining,
            wait,
            overdrawn: 0,
            reset_us,
            mark: 0,
        }
    }

    /// Returns the answer of a bucket that reads `reading` and makes the cost wait for `wait`.
    #[inline]
    pub fn of(wait: Wait, reading: BucketReading) -> Self {
        Self {
            remaining: reading.remaining,
            wait,
            overdrawn: reading.overdrawn,
            reset_us: reading.reset_us,
            mark: reading.mark,
        }
    }

    /// Returns the same answer with another wait.
    #[must_use]
    pub fn with_wait(self, wait: Wait) -> Self {
        Self { wait, ..self }
    }

    /// Returns the receipt for a later refund ([`Op::GiveBack`](crate::Op::GiveBack)) of `cost`
    /// units, if this is the outcome of their charge at `at`.
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
    overdrawn: 0,
    reset_us: 0,
    mark: 0,
};

/// One outcome, with the whole units that were charged or refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedOutcome {
    /// The bucket's answer.
    pub outcome: Outcome,
    /// Units charged, or units of the refunded receipt. Less than the cost if the overdraft cut a
    /// forced charge short; 0 if the bucket was not changed.
    pub units: u64,
}

/// A list of outcomes; up to four live in place, so that the usual decision allocates nothing.
#[derive(Clone)]
pub struct Outcomes {
    few: [Outcome; INLINE],
    /// Number of valid entries in `few`.
    len: usize,
    /// All of them, once there are too many to live in place.
    many: Vec<Outcome>,
}

impl Outcomes {
    /// Creates an empty list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            few: [BLANK; INLINE],
            len: 0,
            many: Vec::new(),
        }
    }

    /// Returns a list of one outcome, put together where it stays.
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
    fn a_list_keeps_its_order_inline_and_on_the_heap() {
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
