//! Quotas: amount, period and algorithm.
//!
//! | module | content |
//! |---|---|
//! | this one | a quota that is known to be representable |
//! | [`spec`] | a quota as written, and its validation |
//! | [`queue`] | places in the debt of a token bucket, and their turns |
//! | `numbers` | a quota as numbers, for other processes |
//! | `share` | a part of a quota, for one instance of several |
//! | `windows` | the windows of a quota that counts by the calendar |
//! | `block` | blocking a subject after a refusal |
//! | `change` | buckets whose quota gets other numbers |
//! | `error` | the reasons for an invalid quota |

mod block;
mod change;
mod error;
mod numbers;
pub mod queue;
mod share;
pub mod spec;
mod windows;

pub use crate::exact::EXACT_MAX;
pub use change::{Basis, OnChange, same_share};
pub use error::QuotaError;
pub use numbers::QuotaNumbers;
pub use queue::QueueTurn;
pub use spec::QuotaSpec;
pub use windows::{CalendarCode, WindowSpan, WindowStarts};

use std::num::NonZeroU64;

/// The most units that a sliding log may hold: it remembers each one.
pub const LOG_UNITS_MAX: u64 = 10_000;

/// Number of parts of a bucketed window. A unit returns at most one part late.
pub const WINDOW_PARTS: u64 = 32;

/// The small number of a [narrow](Quota::is_narrow) state is below this.
pub const NARROW_END: u64 = 1 << 12;

/// The ticks that a quota may count in, finest first: microseconds, milliseconds, seconds.
pub const TICKS_US: [u64; 3] = [1, 1_000, 1_000_000];

/// The way in which a band counts.
///
/// | algorithm | exact | state | use |
/// |---|---|---|---|
/// | token bucket | yes | one instant | default; smooth rate with a burst |
/// | fixed window | per window | one counter | budgets |
/// | calendar window | per window | one counter | budgets per month or local day, billing |
/// | sliding window | no | two counters | large amounts, approximate |
/// | sliding log | yes | one entry per unit | small amounts, exact in any period |
/// | bucketed window | never over | a counter per part | large amounts, never over |
/// | concurrent | yes | a counter | requests in flight, however long each takes |
///
/// ```
/// use tidegate_core::{Algorithm, Align};
///
/// let daily = Algorithm::FixedWindow(Align::Clock);
/// assert_eq!(Algorithm::from_code(daily.code()), Some(daily));
/// assert_eq!(Algorithm::default(), Algorithm::TokenBucket);
/// ```
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
    /// A counter that starts again when a window of the calendar begins, such as a month in a time zone.
    /// The quota [brings the starts](Quota::with_starts).
    CalendarWindow,
    /// Permits that are held from a take to its refund: how many at once, and not how many per time. See
    /// [`Quota::concurrent`].
    Concurrent,
}

/// Start of a fixed window.
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

            /// Returns its number in records and ids: the same in every process
            /// and version.
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

impl Algorithm {
    /// Returns true if a charge takes a place in the bucket's debt, in which requests can wait for their
    /// turn. Of the others, a request can only wait until there is room.
    #[inline]
    pub const fn has_places(self) -> bool {
        match self {
            Self::TokenBucket => true,
            Self::FixedWindow(_)
            | Self::SlidingWindow
            | Self::SlidingLog
            | Self::BucketedWindow
            | Self::CalendarWindow
            | Self::Concurrent => false,
        }
    }

    /// Returns true if all usage ends at one instant, the end of a window. Of the others it ends bit by bit.
    #[inline]
    pub const fn ends_at_once(self) -> bool {
        match self {
            Self::FixedWindow(_) | Self::CalendarWindow => true,
            Self::TokenBucket
            | Self::SlidingWindow
            | Self::SlidingLog
            | Self::BucketedWindow
            | Self::Concurrent => false,
        }
    }

    /// Returns true if the state remembers units, or parts, one by one. Such a state cannot be
    /// [scaled](OnChange::Scale).
    #[inline]
    pub const fn is_log(self) -> bool {
        match self {
            Self::SlidingLog | Self::BucketedWindow => true,
            Self::TokenBucket
            | Self::FixedWindow(_)
            | Self::SlidingWindow
            | Self::CalendarWindow
            | Self::Concurrent => false,
        }
    }

    /// Returns true if it counts requests in flight: units come back when they are released, and not as time
    /// passes.
    #[inline]
    pub const fn is_concurrent(self) -> bool {
        matches!(self, Self::Concurrent)
    }

    /// Those of rates, whose units come back as time passes: all but [`Concurrent`](Self::Concurrent).
    pub const RATES: [Self; 7] = match Self::ALL.first_chunk() {
        Some(rates) => *rates,
        None => unreachable!(),
    };
}

codes! {
    TokenBucket = 0,
    FixedWindow(FirstRequest) = 1,
    FixedWindow(Clock) = 2,
    SlidingWindow = 3,
    SlidingLog = 4,
    BucketedWindow = 5,
    CalendarWindow = 6,
    Concurrent = 7,
}

/// Identity of a quota under one bucket name: the algorithm and the band's label, or its period if
/// it has none. With [`OnChange::Reset`] its numbers are part of it. The same in every process and
/// every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BandId(u64);

impl BandId {
    /// Returns its number in keys and records.
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
    /// Algorithm.
    pub(crate) algorithm: Algorithm,
    /// True if charges may be refunded.
    pub(crate) refundable: bool,
    /// Token bucket: whether it remembers how low its debt has been. Only if it is refundable.
    pub(crate) lends: bool,
    /// Identity under a bucket name.
    pub(crate) id: BandId,
    /// The same without the numbers.
    pub(crate) family: BandId,
    /// Treatment of buckets when the numbers change.
    pub(crate) on_change: OnChange,
    /// Units per period.
    pub(crate) amount: u64,
    /// Burst for a token bucket, amount for windows.
    pub(crate) capacity: u64,
    /// Units of cost below empty that a forced charge may go.
    pub(crate) overdraft: u64,
    /// Microseconds per tick: the unit of every other time in here.
    pub(crate) tick_us: NonZeroU64,
    /// Period in ticks.
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
    /// True if the state fits a word; see [`Quota::is_narrow`].
    pub(crate) narrow: bool,
    /// Longest time that a bucket can matter, in microseconds.
    pub(crate) lifetime_us_max: u64,
    /// Calendar window: what its starts are computed by.
    pub(crate) calendar: Option<CalendarCode>,
    /// Calendar window: consecutive starts around the caller's clock, in microseconds.
    pub(crate) starts: [u64; 4],
}

impl Quota {
    /// Starts a quota of `amount` units per `period_us` microseconds. Default: a token bucket whose
    /// burst is the amount.
    #[expect(clippy::new_ret_no_self, reason = "reads as `Quota::new(..).build()`")]
    pub fn new(amount: u64, period_us: u64) -> QuotaSpec<'static> {
        QuotaSpec::new(amount, period_us)
    }

    /// Starts a limit of `permits` requests in flight. A take holds its units until it is refunded, however
    /// long that is; see [`algorithm::permits`](crate::algorithm::permits).
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, Wait, step};
    ///
    /// let (quota, now) = (Quota::concurrent(1).build()?, Timestamp::from_millis(1_700_000_000_000));
    /// let mut bucket = Bucket::new(&quota);
    /// let receipt = step::decide_one(&quota, &mut bucket, Op::Take(1), now).receipt(now, 1);
    /// let later = now.plus(86_400_000_000);
    /// assert_eq!(step::decide_one(&quota, &mut bucket, Op::Take(1), later).wait, Wait::RELEASE);
    /// step::decide_one(&quota, &mut bucket, Op::GiveBack(receipt), later);
    /// assert!(step::decide_one(&quota, &mut bucket, Op::Take(1), later).is_allowed());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn concurrent(permits: u64) -> QuotaSpec<'static> {
        QuotaSpec::new(permits, spec::NO_PERIOD_US).algorithm(Algorithm::Concurrent)
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the identity of this quota under a bucket name.
    pub fn id(&self) -> BandId {
        self.id
    }

    /// Returns the units per period.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Returns the period in microseconds.
    pub fn period_us(&self) -> u64 {
        self.period.get().saturating_mul(self.tick_us.get())
    }

    /// Returns the most units that can be there at once: the burst of a token bucket, the amount of
    /// a window.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the largest cost that can ever pass.
    pub fn cost_max(&self) -> u64 {
        self.capacity
    }

    /// Returns the units below empty that a forced charge may go.
    pub fn overdraft(&self) -> u64 {
        self.overdraft
    }

    /// Returns true if charges may be refunded, so that the state remembers the credits.
    pub fn is_refundable(&self) -> bool {
        self.refundable
    }

    /// Returns true if the state also remembers the lowest debts of the token bucket, for refunds
    /// after seconds. A window needs nothing for that, because its charges carry their time.
    pub fn lends(&self) -> bool {
        self.lends
    }

    /// Returns the tick that instants and waits of this quota are multiples of, in microseconds: 1
    /// unless the quota is too large for that.
    pub fn tick_us(&self) -> u64 {
        self.tick_us.get()
    }

    /// Token bucket: `(drain, price)`; a tick pays off `drain`, a unit of cost incurs `price`.
    pub fn drain_and_price(&self) -> (u64, u64) {
        (self.drain.get(), self.price.get())
    }

    /// Returns the most that charges that fit can take from a new bucket. For a token bucket it is
    /// the debt of an empty one, or of a full queue if it is [queueing](Quota::queueing); for a
    /// window, units.
    pub fn brim(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => self.brim,
            Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => self.capacity,
        }
    }

    /// Returns true if a bucket's whole state is an instant in microseconds and a number below
    /// [`NARROW_END`], without data for refunds or scaling. Of a calendar window it is the end, a whole
    /// second, and the minutes between it and the last charge. A store may keep it in one word.
    #[inline]
    pub fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// Returns the longest time that a bucket can matter after its last change, in microseconds.
    #[inline]
    pub fn lifetime_us_max(&self) -> u64 {
        self.lifetime_us_max
    }

    /// Returns the same quota with or without the state that refunds need. It stays the same band.
    #[must_use]
    pub fn with_refundable(self, refundable: bool) -> Self {
        let brim = if self.algorithm == Algorithm::TokenBucket && !refundable {
            // A place in the queue that cannot be released would be lost, so no queue without
            // refunds.
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

    /// Returns the same quota with or without lending: units taken as an estimate, of which the
    /// unused part is refunded later. A quota that lends is [refundable](Quota::with_refundable).
    /// It stays the same band.
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
            // A change of the clock's offset may make a window longer than its period.
            Algorithm::CalendarWindow
                if self.period.get().is_multiple_of(windows::SECOND_US)
                    && windows::reach_us(self.period.get()) <= windows::NARROW_REACH_US =>
            {
                (
                    self.amount.saturating_add(self.overdraft),
                    windows.saturating_mul(2),
                )
            }
            // Until it is released.
            Algorithm::Concurrent => (u64::MAX, spec::LIFETIME_US_END),
            Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow => (u64::MAX, windows.saturating_mul(2)),
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
