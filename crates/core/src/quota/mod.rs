//! How much, per how long, by which algorithm.
//!
//! | module | what it is |
//! |---|---|
//! | this one | a quota that is known to be representable |
//! | [`spec`] | a quota as written, and finding out whether it can be |
//! | [`queue`] | taking a place in the debt of a token bucket, and when its turn comes |
//! | `numbers` | a quota as numbers, to be carried elsewhere |
//! | `share` | a part of a quota, for one instance of several |
//! | `block` | for how long a refusal closes a limit |
//! | `change` | what becomes of a bucket when the numbers change |
//! | `error` | why it cannot |

mod block;
mod change;
mod error;
mod numbers;
pub mod queue;
mod share;
pub mod spec;

pub use change::{Basis, OnChange, same_share};
pub use error::QuotaError;
pub use numbers::QuotaNumbers;
pub use queue::QueueTurn;
pub use spec::QuotaSpec;

use std::num::NonZeroU64;

/// Integers below this are exact in a double, which is all that a Redis script has. Every product
/// that an algorithm forms stays below it, in every store, so that all stores decide alike.
pub const EXACT_MAX: u64 = 1 << 53;

/// The most units that a sliding log may hold: it remembers each one.
pub const LOG_UNITS_MAX: u64 = 10_000;

/// The largest cost that a sliding log takes at once.
pub const LOG_COST_MAX: u64 = 64;

/// How many parts a bucketed window has. A unit returns at most one part late.
pub const WINDOW_PARTS: u64 = 32;

/// The small number of a [narrow](Quota::is_narrow) state is below this.
pub const NARROW_END: u64 = 1 << 12;

/// The ticks that a quota may count in, finest first: microseconds, milliseconds, seconds.
pub const TICKS_US: [u64; 3] = [1, 1_000, 1_000_000];

/// How a band counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A bucket of tokens that refills evenly (the same as a leaky bucket, and as GCRA). Exact.
    #[default]
    TokenBucket,
    /// A counter that starts again each period. At most the amount in a window, at most twice the
    /// amount in any period.
    FixedWindow(Align),
    /// Two counters that estimate a sliding window. Cheap, and not exact: the estimate never
    /// exceeds the amount, the true count may.
    SlidingWindow,
    /// Every unit's instant. Exact in any period, at a cost in memory for each unit.
    SlidingLog,
    /// Counters for parts of the period, the oldest counted whole. Never over in any period, for
    /// any amount; a unit returns at most a part of the period late.
    BucketedWindow,
}

/// Where a fixed window starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Align {
    /// With the first request after the last window ended.
    #[default]
    FirstRequest,
    /// At multiples of the period since the Unix epoch.
    Clock,
}

/// The numbers of the algorithms: one list, so that none can be written that is not read.
macro_rules! codes {
    ($($algorithm:ident $(($align:ident))? = $code:literal),* $(,)?) => {
        impl Algorithm {
            /// All of them, in the order of their codes.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$algorithm $((Align::$align))?),*];

            /// The number that stands for it in records and ids: the same in every process and version.
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$algorithm $((Align::$align))? => $code,)*
                }
            }

            /// Returns the algorithm of this [code](Self::code).
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$algorithm $((Align::$align))?),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    TokenBucket = 0,
    FixedWindow(FirstRequest) = 1,
    FixedWindow(Clock) = 2,
    SlidingWindow = 3,
    SlidingLog = 4,
    BucketedWindow = 5,
}

/// Tells the quotas under one bucket name apart: the algorithm and the band's label, or its period
/// where it has none; and its numbers, where other numbers are to begin with new buckets
/// ([`OnChange::Reset`]). The same in every process and every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BandId(u64);

impl BandId {
    /// The number that stands for it in keys and records.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// A quota that is known to be representable: no arithmetic on it can overflow.
///
/// ```
/// use tidegate_core::{Algorithm, Quota};
///
/// let steady = Quota::new(10, 1_000_000).burst(50).build()?;
/// assert_eq!(steady.capacity(), 50);
///
/// let hourly = Quota::new(1_000, 3_600_000_000).algorithm(Algorithm::SlidingLog).build()?;
/// assert_eq!(hourly.capacity(), 1_000);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub(crate) algorithm: Algorithm,
    pub(crate) refundable: bool,
    /// Token bucket: whether it remembers how low its debt has been. Only if it is refundable.
    pub(crate) lends: bool,
    pub(crate) id: BandId,
    /// The same without the numbers.
    pub(crate) family: BandId,
    pub(crate) on_change: OnChange,
    pub(crate) amount: u64,
    /// Burst for a token bucket, amount for windows.
    pub(crate) capacity: u64,
    /// Units of cost below empty that a forced charge may go.
    pub(crate) overdraft: u64,
    /// Microseconds per tick: the unit of every other time in here.
    pub(crate) tick_us: NonZeroU64,
    pub(crate) period: NonZeroU64,
    /// Token bucket: how much debt one tick pays off.
    pub(crate) drain: NonZeroU64,
    /// Token bucket: the debt that one unit of cost incurs.
    pub(crate) price: NonZeroU64,
    /// Token bucket: the deepest debt that a charge which fits can leave. That of an empty bucket,
    /// capacity × price; of a queueing quota, the floor.
    pub(crate) brim: u64,
    /// Token bucket: the deepest debt there can be, (capacity + overdraft) × price.
    pub(crate) floor: u64,
    /// Token bucket: no debt takes more ticks than this to pay off.
    pub(crate) ahead_max: u64,
    pub(crate) narrow: bool,
    pub(crate) lifetime_us_max: u64,
}

impl Quota {
    /// Begins a quota of `amount` units per `period_us` microseconds: a token bucket whose burst is
    /// the amount, unless told otherwise.
    #[expect(clippy::new_ret_no_self, reason = "reads as `Quota::new(..).build()`")]
    pub fn new(amount: u64, period_us: u64) -> QuotaSpec<'static> {
        QuotaSpec::new(amount, period_us)
    }

    /// How it counts.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Tells this quota apart from others under the same bucket name.
    pub fn id(&self) -> BandId {
        self.id
    }

    /// Units per period.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// The period in microseconds.
    pub fn period_us(&self) -> u64 {
        self.period.get().saturating_mul(self.tick_us.get())
    }

    /// The most units that can be there at once: the burst of a token bucket, the amount of a
    /// window.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The largest cost that can ever pass.
    pub fn cost_max(&self) -> u64 {
        match self.algorithm {
            Algorithm::SlidingLog => self.capacity.min(LOG_COST_MAX),
            Algorithm::TokenBucket
            | Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::BucketedWindow => self.capacity,
        }
    }

    /// Units below empty that a forced charge may go.
    pub fn overdraft(&self) -> u64 {
        self.overdraft
    }

    /// Whether charges may be given back, so that the state must remember what that needs.
    pub fn is_refundable(&self) -> bool {
        self.refundable
    }

    /// Whether the state remembers what giving back needs after seconds as well: how low the debt of
    /// the token bucket has been. A window, whose charges can be told apart, needs nothing for that.
    pub fn lends(&self) -> bool {
        self.lends
    }

    /// The tick that instants and waits of this quota are multiples of, in microseconds: 1 unless
    /// the quota is too large for that.
    pub fn tick_us(&self) -> u64 {
        self.tick_us.get()
    }

    /// Token bucket: `(drain, price)`; a tick pays off `drain`, a unit of cost incurs `price`.
    pub fn drain_and_price(&self) -> (u64, u64) {
        (self.drain.get(), self.price.get())
    }

    /// What charges that fit can take of a new bucket. Of a token bucket that is the debt of an empty
    /// one, or of a full queue where it is [queueing](Quota::queueing); of a window, units.
    pub fn brim(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => self.brim,
            Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow => self.capacity,
        }
    }

    /// Whether a bucket's whole state is an instant in microseconds and a number below
    /// [`NARROW_END`], with nothing to remember for giving back or scaling, so that a store may keep it
    /// in one word.
    #[inline]
    pub fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// How long a bucket can matter after its last change, in microseconds.
    #[inline]
    pub fn lifetime_us_max(&self) -> u64 {
        self.lifetime_us_max
    }

    /// The same quota, whose state does or does not remember what giving back needs. It stays the
    /// same band.
    #[must_use]
    pub fn with_refundable(self, refundable: bool) -> Self {
        let brim = if self.algorithm == Algorithm::TokenBucket && !refundable {
            // Nobody queues who could not give the place back.
            self.capacity.saturating_mul(self.price.get())
        } else {
            self.brim
        };
        Self {
            refundable,
            lends: self.lends && refundable,
            brim,
            ..self
        }
        .derive()
    }

    /// The same quota, from which units are or are not lent: taken as an estimate, of which the part
    /// that was not needed comes back later. Whoever lends gives back, so that it is
    /// [refundable](Quota::with_refundable) if it lends. It stays the same band.
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// // Half of it is lent, for five seconds; others keep the bucket in debt.
    /// let quota = Quota::new(100, 1_000_000).build()?.with_lending(true);
    /// let (mut bucket, start) = (Bucket::new(&quota), Timestamp::from_millis(1_700_000_000_000));
    /// let lent = step::decide_one(&quota, &mut bucket, Op::Take(50), start).receipt(start, 50);
    /// let later = |ms: u64| start.plus(ms * 1_000);
    /// for ms in (10..5_000).step_by(10) {
    ///     step::decide_one(&quota, &mut bucket, Op::Take(1), later(ms));
    /// }
    /// // Ten were needed.
    /// let back = Op::GiveBack(lent.with_cost(40));
    /// let before = step::decide_one(&quota, &mut bucket, Op::Look, later(5_000)).remaining;
    /// let after = step::decide_one(&quota, &mut bucket, back, later(5_000)).remaining;
    /// assert_eq!(after - before, 40);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn with_lending(self, lends: bool) -> Self {
        let quota = self.with_refundable(self.refundable || lends);
        Self {
            lends: lends && self.algorithm == Algorithm::TokenBucket,
            ..quota
        }
    }

    /// Fills in what follows from the rest.
    fn derive(self) -> Self {
        let windows = self.period.get().saturating_mul(2);
        let (small_max, ticks) = match self.algorithm {
            Algorithm::TokenBucket => (
                self.drain.get().saturating_sub(1),
                self.ahead_max.saturating_add(1),
            ),
            Algorithm::FixedWindow(_) => (self.amount.saturating_add(self.overdraft), windows),
            Algorithm::SlidingWindow | Algorithm::SlidingLog | Algorithm::BucketedWindow => {
                (u64::MAX, windows)
            }
        };
        Self {
            narrow: small_max < NARROW_END
                && self.tick_us.get() == 1
                && !self.refundable
                && !self.scales(),
            lifetime_us_max: ticks.saturating_mul(self.tick_us.get()),
            ..self
        }
    }
}
