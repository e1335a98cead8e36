//! Places in a queue: debt that is taken on now for a turn that comes later.
//!
//! A token bucket needs no list of waiting requests. Its debt is the queue. A request that charges
//! it beyond the brim has its turn when the clock has paid the debt down to the brim again. The
//! next request adds to that debt and so comes after. No request has to retry, and no later request
//! can overtake.

use super::{Algorithm, Quota};
use crate::Outcome;

/// A place that an [`Op::Take`](crate::Op::Take) by a [queueing](Quota::queueing) quota took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueTurn {
    /// Microseconds until its turn; 0 if the units were there at once.
    pub wait_us: u64,
    /// Whole units left for requests that do not wait.
    pub remaining: u64,
    /// Whole units that requests in the queue have taken below empty.
    pub overdrawn: u64,
}

impl Quota {
    /// Returns the same quota for requests that may wait: a take fits if its turn comes before the
    /// overdraft is used up. It is the same band, with the same state; [`place`](Self::place)
    /// returns the time of the turn.
    ///
    /// A cost above the capacity still never passes. A quota that was built without a
    /// [queue](super::QuotaSpec::queue), or that is no token bucket, is returned unchanged.
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// // One a second, and two may wait.
    /// let quota = Quota::new(1, 1_000_000).queue(2).build()?;
    /// let (waiting, mut bucket) = (quota.queueing(), Bucket::new(&quota));
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// for expected_us in [0, 1_000_000, 2_000_000] {
    ///     let outcome = step::decide_one(&waiting, &mut bucket, Op::Take(1), now);
    ///     assert!(outcome.is_allowed());
    ///     assert_eq!(quota.place(&outcome).wait_us, expected_us);
    /// }
    /// let refused = step::decide_one(&waiting, &mut bucket, Op::Take(1), now);
    /// assert_eq!(refused.wait.as_micros(), Some(1_000_000)); // until a place is free
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn queueing(&self) -> Self {
        if self.algorithm != Algorithm::TokenBucket || !self.refundable {
            return *self;
        }
        Self {
            brim: self.floor,
            overdraft: 0,
            ..*self
        }
    }

    /// Returns the microseconds by which the turns of all places behind a released one come sooner.
    /// `mark` is the [mark](Outcome::mark) of the outcome of the refund.
    ///
    /// Requests that wait behind it have to move up by this much. The place is free for a new
    /// request at the end of the queue. If those in between did not move, as many would pass at the
    /// end as were to pass before, and more at a time than the quota allows.
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// let quota = Quota::new(1, 1_000_000).queue(2).build()?;
    /// let (waiting, mut bucket) = (quota.queueing(), Bucket::new(&quota));
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let [_, second, third] = [(); 3].map(|()| {
    ///     step::decide_one(&waiting, &mut bucket, Op::Take(1), now)
    /// });
    /// let back = Op::GiveBack(second.receipt(now, 1));
    /// let back = step::decide_one(&waiting, &mut bucket, back, now);
    /// assert_eq!(quota.place(&third).wait_us, 2_000_000);
    /// assert_eq!(quota.sooner_us(back.mark), 1_000_000);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn sooner_us(&self, mark: u64) -> u64 {
        // A credit is counted in whole ticks, rounded up; a turn must not be early.
        let rounded = u64::from(self.drain.get() > 1);
        mark.saturating_sub(rounded)
            .saturating_mul(self.tick_us.get())
    }

    /// Returns the place of a charge that was just made by the [queueing](Self::queueing) quota
    /// with this `outcome`: the time of its turn, and the units left for requests that do not wait.
    ///
    /// The turn is never early and at most one tick late.
    pub fn place(&self, outcome: &Outcome) -> QueueTurn {
        if self.algorithm != Algorithm::TokenBucket || outcome.remaining >= self.overdraft {
            return QueueTurn {
                wait_us: 0,
                remaining: outcome.remaining.saturating_sub(self.overdraft),
                overdrawn: outcome.overdrawn,
            };
        }
        let brim_us = (self.brim / self.drain).saturating_mul(self.tick_us.get());
        QueueTurn {
            wait_us: outcome.reset_us.saturating_sub(brim_us),
            remaining: 0,
            overdrawn: self.overdraft.saturating_sub(outcome.remaining),
        }
    }
}
