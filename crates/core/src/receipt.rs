//! The receipt of a charge, which a refund needs.

use crate::Timestamp;
use crate::exact::EXACT_MAX;

/// The last instant that every store counts exactly, in the year 2255. A store that knows none later
/// takes all of those for this one.
const LAST: Timestamp = Timestamp::from_micros(EXACT_MAX.saturating_sub(1));

/// Record of a charge, needed to refund it. [`Reply::receipt`](crate::Reply::receipt) makes one.
///
/// ```
/// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
///
/// let quota = Quota::new(10, 60_000_000).refundable(true).build()?;
/// let (mut bucket, now) = (Bucket::new(&quota), Timestamp::from_millis(1_700_000_000_000));
/// let receipt = step::decide_one(&quota, &mut bucket, Op::Take(8), now).receipt(now, 8);
///
/// // Five of the eight were not needed.
/// let refund = Op::GiveBack(receipt.with_cost(5));
/// assert_eq!(step::decide_one(&quota, &mut bucket, refund, now).remaining, 7);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The store's instant at which the units were taken.
    pub at: Timestamp,
    /// Number of units taken.
    pub cost: u64,
    /// Instant at which the bucket would have been full again after this charge.
    pub until: Timestamp,
    /// Credits of the bucket at the charge: the [`mark`](crate::Outcome::mark) of its outcome.
    pub mark: u64,
    /// Credits since then of charges made after this one, as far as the holder knows: the sum of
    /// the [marks](crate::Outcome::mark) of the outcomes of those refunds. Such a credit takes
    /// nothing from under this charge. 0 is always safe.
    pub behind: u64,
}

impl Receipt {
    /// Creates a receipt from the time of the charge and nothing else. Units that the time since
    /// has paid off are not refunded.
    pub fn by_the_clock(at: Timestamp, cost: u64) -> Self {
        Self {
            at,
            cost,
            until: at,
            mark: 0,
            behind: 0,
        }
    }

    /// Creates a receipt from the number of units and nothing else, not even the time. It refunds
    /// the units taken last first, up to all that is owed.
    ///
    /// A window refunds from its present count, the two-counter estimate from this window's alone,
    /// a log from its newest units backwards, a token bucket from its debt.
    ///
    /// Unlike any other receipt it can admit more than the quota allows. The units that it means
    /// may have been paid off, or have left the window, long ago; then it refunds others' units in
    /// their place. Each time that is at most `cost`, and never above the capacity.
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Receipt, Timestamp, step};
    ///
    /// let quota = Quota::new(10, 60_000_000).build()?;
    /// let (mut bucket, now) = (Bucket::new(&quota), Timestamp::from_millis(1_700_000_000_000));
    /// step::decide_one(&quota, &mut bucket, Op::Take(10), now);
    /// let back = Op::GiveBack(Receipt::latest(4));
    /// assert_eq!(step::decide_one(&quota, &mut bucket, back, now.plus(1)).remaining, 4);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn latest(cost: u64) -> Self {
        Self::by_the_clock(Timestamp::from_micros(u64::MAX), cost)
    }

    /// Returns the receipt of `cost` units, as a part of the charge.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// Returns true if it means the units taken last, at any time.
    pub(crate) fn is_latest(&self) -> bool {
        self.at >= LAST
    }
}
