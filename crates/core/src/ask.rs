//! The check request: a bucket, its quota, and the operation on it.

use crate::{Quota, Receipt, Timestamp};

/// One bucket of a request, with its quota and the operation.
///
/// A request is a slice of these, and a store decides it atomically. A request is data and never
/// code, so that a store across the network can decide in one round trip.
///
/// # Example
///
/// A request that consumes one unit of a limit per second and is counted against a shadow limit:
///
/// ```
/// use tidegate_core::{Ask, LimitMode, Quota};
///
/// let second = Quota::new(10, 1_000_000).build()?;
/// let hour = Quota::new(1_000, 3_600_000_000).build()?;
/// let asks = [
///     Ask::take(b"per-second/alice", &second, 1),
///     Ask { limit: 1, mode: LimitMode::Shadow, ..Ask::take(b"per-hour/alice", &hour, 1) },
/// ];
/// assert_eq!(asks[0].mode, LimitMode::Enforce);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Name of the subject's bucket: the same bytes mean the same bucket, in every store and
    /// process. Several quotas may use one name; each has its own state, identified by
    /// [`Quota::id`].
    pub bucket: &'a [u8],
    /// Number of leading bytes of `bucket` that name the limit, the same for all its subjects. A
    /// store that is full puts the limit's new subjects into one bucket of that name.
    pub scope: usize,
    /// Quota of the bucket.
    pub quota: &'a Quota,
    /// Operation on the bucket.
    pub op: Op,
    /// Number of the limit in the request. The buckets of one shadow limit are charged together or
    /// not at all.
    pub limit: u16,
    /// Effect of a refusal on the request.
    pub mode: LimitMode,
}

impl<'a> Ask<'a> {
    /// Returns an enforced take of `cost` units from one bucket.
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

    /// Returns a look that changes nothing.
    pub fn look(bucket: &'a [u8], quota: &'a Quota) -> Self {
        Self {
            op: Op::Look,
            ..Self::take(bucket, quota, 0)
        }
    }
}

/// An operation on a bucket.
///
/// | operation | charges | refuses |
/// |---|---|---|
/// | [`Look`](Op::Look) | nothing | never |
/// | [`Take`](Op::Take) | if it fits | if it does not fit |
/// | [`Force`](Op::Force) | always | if nothing was left before |
/// | [`Debit`](Op::Debit) | always | if it does not fit |
/// | [`Test`](Op::Test) | nothing | if it would not fit |
/// | [`GiveBack`](Op::GiveBack) | refunds, always | never |
/// | [`Return`](Op::Return) | refunds, if no take refuses | never |
/// | [`Block`](Op::Block) | at a refusal of its limit | while blocked |
/// | [`Acquire`](Op::Acquire) | if it fits, until a release or an end | if it does not fit |
/// | [`Renew`](Op::Renew) | nothing | if the permit has ended |
/// | [`Release`](Op::Release) | releases, always | never |
///
/// ```
/// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
///
/// let quota = Quota::new(5, 1_000_000).overdraft(5).build()?;
/// let (mut bucket, now) = (Bucket::new(&quota), Timestamp::from_millis(1_700_000_000_000));
/// let mut decide = |op| step::decide_one(&quota, &mut bucket, op, now);
/// assert!(decide(Op::Take(4)).is_allowed());
/// assert!(!decide(Op::Test(2)).is_allowed(), "only one is left");
/// assert!(!decide(Op::Debit(2)).is_allowed(), "charged nevertheless");
/// assert_eq!(decide(Op::Look).remaining, 0);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
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
    /// Refunds units that an earlier reply charged. Always allowed. Never refunds units that may
    /// have been spent again since.
    GiveBack(Receipt),
    /// Asks whether this many units would fit, and takes none; 0 asks for one. Unlike a
    /// [`Op::Look`] it refuses where they would not, with the wait after which they would.
    Test(u64),
    /// Refunds like [`Op::GiveBack`], but after the takes: only if no enforced take of the request
    /// refuses, and not after `by`. Together with a take that only one caller can win, it happens
    /// once, even if it is sent several times.
    Return {
        /// Receipt of the charge.
        receipt: Receipt,
        /// The last instant, by the store's clock, at which it comes back.
        by: Timestamp,
    },
    /// Tests whether the subject is blocked, as a [`Op::Test`] of one unit does, and blocks it at a
    /// refusal. If an enforced take, forced charge or debit of the same [`Ask::limit`] refuses, one
    /// unit is charged here, if there is one. So the first refusal blocks the subject for the
    /// length of the quota ([`Quota::block`]), and later refusals do not prolong it. A cost that
    /// can never pass does not block, nor does a shadow limit.
    Block,
    /// Takes permits that end by themselves, unless they are [renewed](Op::Renew) or
    /// [released](Op::Release) before. A repetition with the same id takes no more: it passes, and
    /// prolongs the permits that there are. A bucket of another algorithm is charged the units, like by
    /// a [`Op::Take`].
    Acquire(PermitTerms),
    /// Lets the permits of this id end so much later, counted from now. If the bucket has none, it
    /// refuses: they were released, or have ended, and others may have them by now.
    Renew {
        /// The id that they were acquired with.
        id: PermitId,
        /// Time from now to their new end, in microseconds. An end never moves back.
        ttl_us: u64,
    },
    /// Releases the permits of this id, in any case and before anything else of its request. Always
    /// allowed: if there are none any more, it does nothing.
    Release(PermitId),
}

/// Names permits that end by themselves, within their bucket. The caller chooses it, at random or from
/// something that is only its own.
///
/// ```
/// use tidegate_core::ask::{PermitId, PermitTerms};
/// use tidegate_core::{Ask, Op, Quota};
///
/// let jobs = Quota::concurrent(5).build()?;
/// let terms = PermitTerms { id: PermitId([7, 9]), units: 1, ttl_us: 30_000_000 };
/// let asks = [Op::Acquire(terms), Op::Renew { id: terms.id, ttl_us: 30_000_000 }, Op::Release(terms.id)];
/// let asks = asks.map(|op| Ask { op, ..Ask::look(b"jobs/ann", &jobs) });
/// assert_eq!(asks.map(|ask| ask.op.cost()), [1, 0, 0]);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(pub [u64; 2]);

/// The permits of an [`Op::Acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitTerms {
    /// Their name.
    pub id: PermitId,
    /// The number of permits.
    pub units: u64,
    /// Time from now to their end, in microseconds.
    pub ttl_us: u64,
}

impl Op {
    /// Returns the units that are charged if it is carried out; 0 if it takes none, or only where a limit
    /// refuses.
    #[inline]
    pub const fn cost(self) -> u64 {
        match self {
            Self::Take(cost) | Self::Force(cost) | Self::Debit(cost) => cost,
            Self::Acquire(terms) => terms.units,
            Self::Look
            | Self::Test(_)
            | Self::GiveBack(_)
            | Self::Return { .. }
            | Self::Block
            | Self::Renew { .. }
            | Self::Release(_) => 0,
        }
    }

    /// Returns the units that a bucket must have left for it to be allowed; 0 if it does not ask for room.
    #[inline]
    pub const fn needs(self) -> u64 {
        match self {
            // A renewal asks for its permits, and for no room.
            Self::Look
            | Self::GiveBack(_)
            | Self::Return { .. }
            | Self::Force(0)
            | Self::Renew { .. }
            | Self::Release(_) => 0,
            Self::Acquire(terms) => terms.units,
            // Charged in any case, or where others refuse: they ask if anything is left.
            Self::Force(_) | Self::Block | Self::Debit(0) | Self::Test(0) => 1,
            Self::Take(cost) | Self::Debit(cost) | Self::Test(cost) => cost,
        }
    }

    /// Returns `true` if it is charged even where it refuses itself, and so keeps no other such charge
    /// back.
    #[inline]
    pub fn is_forced(self) -> bool {
        match self {
            Self::Force(_) | Self::Debit(_) => true,
            Self::Look
            | Self::Take(_)
            | Self::GiveBack(_)
            | Self::Test(_)
            | Self::Return { .. }
            | Self::Block
            | Self::Acquire(_)
            | Self::Renew { .. }
            | Self::Release(_) => false,
        }
    }

    /// Returns the receipt of the units that it refunds, if any.
    #[inline]
    pub fn receipt(self) -> Option<Receipt> {
        match self {
            Self::GiveBack(receipt) | Self::Return { receipt, .. } => Some(receipt),
            Self::Look
            | Self::Take(_)
            | Self::Force(_)
            | Self::Debit(_)
            | Self::Test(_)
            | Self::Block
            | Self::Acquire(_)
            | Self::Renew { .. }
            | Self::Release(_) => None,
        }
    }

    /// Returns true if it changes its bucket where the request passes.
    #[inline]
    pub(crate) fn acts(self) -> bool {
        self.cost() > 0 || matches!(self, Self::Renew { .. })
    }
}

/// Effect of a bucket's refusal on the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitMode {
    /// It does.
    #[default]
    Enforce,
    /// It does not: the bucket is decided in the same step and charged only if the request passes
    /// and its whole limit would have allowed it.
    Shadow,
}
