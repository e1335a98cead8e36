//! The question: which bucket, by which quota, and what to do with it.

use crate::quota::EXACT_MAX;
use crate::{Quota, Timestamp};

/// The last instant that every store counts exactly, in the year 2255. A store that knows none later
/// takes all of those for this one.
const LAST: Timestamp = Timestamp::from_micros(EXACT_MAX.saturating_sub(1));

/// One bucket that a request meets.
///
/// A request is a slice of these; a store decides it in one step. What crosses to a store is this
/// data and never code, so that a store across the network can decide in one round trip.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Names the subject's bucket: the same bytes, the same bucket, in every store and process.
    /// Several quotas may live under one name; each keeps its own state, told apart by
    /// [`Quota::id`].
    pub bucket: &'a [u8],
    /// How many leading bytes of `bucket` name the limit, the same for all its subjects. A store
    /// that is full puts the limit's new subjects into one bucket of that name.
    pub scope: usize,
    /// How much is allowed.
    pub quota: &'a Quota,
    /// What is asked.
    pub op: Op,
    /// Which limit of the request this bucket belongs to. The buckets of one shadow limit stand or
    /// fall together.
    pub limit: u16,
    /// Whether a refusal here refuses the request.
    pub mode: LimitMode,
}

impl<'a> Ask<'a> {
    /// An enforced take of `cost` units from one bucket.
    #[inline]
    pub fn take(bucket: &'a [u8], quota: &'a Quota, cost: u64) -> Self {
        Self {
            bucket,
            scope: 0,
            quota,
            op: Op::Take(cost),
            limit: 0,
            mode: LimitMode::Enforce,
        }
    }

    /// A look that changes nothing.
    pub fn look(bucket: &'a [u8], quota: &'a Quota) -> Self {
        Self {
            op: Op::Look,
            ..Self::take(bucket, quota, 0)
        }
    }
}

/// What to do with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads what remains. Always allowed, changes nothing.
    Look,
    /// Takes this many units if they fit; 0 is a [`Op::Look`].
    Take(u64),
    /// Takes this many units whether they fit or not, down to the quota's overdraft below empty,
    /// because they have been used already. Refused, though charged all the same, where not one
    /// whole unit was left before.
    Force(u64),
    /// Takes this many units if they fit. Where they do not, refuses as [`Op::Take`] does and charges
    /// them all the same, down to the quota's overdraft below empty: they may have been used
    /// already. 0 charges nothing and refuses where not one whole unit is left; unlike a
    /// [`Op::Test`] it does not keep the request's other debits from being charged.
    Debit(u64),
    /// Gives back units that an earlier reply charged. Always allowed; never gives back more than
    /// cannot have been spent again since.
    GiveBack(Receipt),
    /// Asks whether this many units would fit, and takes none; 0 asks for one. Unlike a
    /// [`Op::Look`] it refuses where they would not, with the wait after which they would.
    Test(u64),
    /// Gives back like [`Op::GiveBack`], but in its turn: only if no enforced take of the request
    /// refuses, and not after `by`. With a take that only one can win beside it, it happens once
    /// however often it is sent.
    Return {
        /// What was charged.
        receipt: Receipt,
        /// The last instant, by the store's clock, at which it comes back.
        by: Timestamp,
    },
    /// Asks whether the limit is closed to the subject, as a [`Op::Test`] of one unit does, and
    /// closes it where the limit refuses: where an enforced take, forced charge or debit of the
    /// same [`Ask::limit`] does so, one unit is charged here, if there is one. So the first refusal blocks
    /// whoever asked for as long as the quota ([`Quota::block`]) says, and those that follow do not
    /// prolong it. A cost that can never pass blocks nobody; neither does a shadow.
    Block,
}

impl Op {
    /// Returns the units that are charged if it is carried out; 0 if it takes none, or only where a limit
    /// refuses.
    #[inline]
    pub const fn cost(self) -> u64 {
        match self {
            Self::Take(cost) | Self::Force(cost) | Self::Debit(cost) => cost,
            Self::Look | Self::Test(_) | Self::GiveBack(_) | Self::Return { .. } | Self::Block => 0,
        }
    }

    /// Returns `true` if it is charged even where it refuses itself, and so keeps no other such charge
    /// back.
    pub fn is_forced(self) -> bool {
        match self {
            Self::Force(_) | Self::Debit(_) => true,
            Self::Look
            | Self::Take(_)
            | Self::GiveBack(_)
            | Self::Test(_)
            | Self::Return { .. }
            | Self::Block => false,
        }
    }

    /// Returns the receipt of the units that it gives back, if it does.
    pub fn receipt(self) -> Option<Receipt> {
        match self {
            Self::GiveBack(receipt) | Self::Return { receipt, .. } => Some(receipt),
            Self::Look
            | Self::Take(_)
            | Self::Force(_)
            | Self::Debit(_)
            | Self::Test(_)
            | Self::Block => None,
        }
    }
}

/// What giving back needs to know of a charge. [`Reply::receipt`](crate::Reply::receipt) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The store's instant at which the units were taken.
    pub at: Timestamp,
    /// How many units were taken.
    pub cost: u64,
    /// When the bucket would have been as good as new, as this charge left it.
    pub until: Timestamp,
    /// What had been credited to the bucket by then: the [`mark`](crate::Outcome::mark) that this
    /// charge was answered with.
    pub mark: u64,
    /// What the giver knows to have been credited since of charges that were made after this one:
    /// the sum of the [marks](crate::Outcome::mark) with which giving those back was answered.
    /// Such a credit takes nothing from under this charge. 0 is always safe.
    pub behind: u64,
}

impl Receipt {
    /// A receipt of somebody who knows when the units were taken and nothing else. What the time
    /// since has paid off of them does not come back.
    pub fn by_the_clock(at: Timestamp, cost: u64) -> Self {
        Self {
            at,
            cost,
            until: at,
            mark: 0,
            behind: 0,
        }
    }

    /// A receipt of somebody who knows how much and nothing else, not even when: what was taken last
    /// comes back first, up to all that is owed.
    ///
    /// A window gives back from its present count, the two-counter estimate from this window's alone,
    /// a log from its newest units backwards, a token bucket from its debt.
    ///
    /// Unlike any other receipt it can let through more than the quota allows: nobody knows whether
    /// the units that it means have not been paid off or left the window long ago, so that others'
    /// come back in their place. Each time that is at most `cost`, and never above the capacity.
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

    /// Returns the receipt of `cost` units, as a part of what was taken.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// Whether it means what was taken last, whenever that was.
    pub(crate) fn is_latest(&self) -> bool {
        self.at >= LAST
    }
}

/// Whether a refusal by a bucket refuses the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitMode {
    /// It does.
    #[default]
    Enforce,
    /// It does not: the bucket is decided in the same step and charged only if the request passes
    /// and its whole limit would have allowed it.
    Shadow,
}
