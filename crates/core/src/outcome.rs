//! The answer: what each bucket said, and when.

use crate::{Reading, Receipt, Timestamp, Wait};

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
    pub fn of(wait: Wait, reading: Reading) -> Self {
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

/// The answer to a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The store's instant at which everything was decided; the last, if it took several steps.
    pub at: Timestamp,
    /// Whether the request passes: every enforced bucket had room.
    pub passed: bool,
    /// One outcome for each ask, in order.
    pub outcomes: Outcomes,
    /// When each ask was decided, if it took several steps.
    each_at: Option<Box<[Timestamp]>>,
}

impl Reply {
    /// An answer that was found in one step.
    #[inline]
    pub fn new(at: Timestamp, passed: bool, outcomes: Outcomes) -> Self {
        Self {
            at,
            passed,
            outcomes,
            each_at: None,
        }
    }

    /// An answer that took several steps: what each ask was answered, in order, and when.
    pub fn of_steps(
        passed: bool,
        answered: impl IntoIterator<Item = (Timestamp, Outcome)>,
    ) -> Self {
        let (each_at, outcomes): (Vec<Timestamp>, Vec<Outcome>) = answered.into_iter().unzip();
        Self {
            at: each_at.iter().copied().max().unwrap_or_default(),
            passed,
            outcomes: outcomes.into_iter().collect(),
            each_at: Some(each_at.into_boxed_slice()),
        }
    }

    /// The same with other outcomes, one for each ask as before.
    #[must_use]
    pub fn with_outcomes(&self, outcomes: Outcomes) -> Self {
        Self {
            outcomes,
            each_at: self.each_at.clone(),
            ..*self
        }
    }

    /// The instant from which on everything that it charged counts: that of its first step.
    pub fn charged_at(&self) -> Timestamp {
        let first = self.each_at.iter().flatten().min();
        first.copied().unwrap_or(self.at)
    }

    /// What a later [`Op::GiveBack`](crate::Op::GiveBack) needs of the `cost` units that the ask
    /// numbered `ask` was charged.
    ///
    /// It is dated by the step that charged it. A later date would give back what has been paid off
    /// since, and an earlier one nothing at all where the charge found no debt.
    pub fn receipt(&self, ask: usize, cost: u64) -> Receipt {
        let each_at = self.each_at.as_ref().and_then(|each| each.get(ask));
        let at = each_at.copied().unwrap_or(self.at);
        match self.outcomes.get(ask) {
            Some(outcome) => outcome.receipt(at, cost),
            None => Receipt::by_the_clock(self.charged_at(), cost),
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
    use super::{BLANK, Outcome, Outcomes, Reply};
    use crate::{Receipt, Timestamp};

    fn outcome(remaining: u64) -> Outcome {
        Outcome { remaining, ..BLANK }
    }

    #[test]
    fn each_charge_is_dated_by_the_step_that_made_it() {
        let [early, late] = [7, 9].map(Timestamp::from_micros);
        let steps = [(late, outcome(1)), (early, outcome(2)), (late, outcome(3))];
        let reply = Reply::of_steps(true, steps);
        assert_eq!((reply.at, reply.charged_at()), (late, early));
        let dates = |reply: &Reply| [0, 1, 2, 3].map(|ask| reply.receipt(ask, 1).at);
        assert_eq!(dates(&reply), [late, early, late, early]);
        let other = reply.with_outcomes([outcome(4); 3].into_iter().collect());
        assert_eq!(dates(&other), dates(&reply));
        assert_eq!(other.outcomes[0].remaining, 4);
        let once = Reply::new(early, true, Outcomes::new());
        assert_eq!(once.charged_at(), early);
        assert_eq!(once.receipt(0, 5), Receipt::by_the_clock(early, 5));
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
