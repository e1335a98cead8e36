//! A token bucket that units are lent from: it remembers how low its debt has been, so that what
//! turns out not to be needed comes back seconds later too.
//!
//! Had a charge never been made, the debt would be lower by the charge or by the lowest that the debt
//! has been since, whichever is less ([`TokenBucket::give_back`]). A [`TokenBucket`] bounds that low by
//! what the charge left and the clock has not paid off; it cannot see that later charges kept the
//! bucket in debt. This one writes the lows down.
//!
//! Between two charges a debt only falls. So its lowest over any time is found just before a charge, or
//! now. Of those instants only such matter as no later one was lower than: a list in which instants and
//! debts both rise, from which a charge drops all that it undercuts. It is short, and where it would
//! become longer than [`LOWS_MAX`], two neighbours become one with the lower debt and the later instant:
//! that can only make a low seem lower than it was.

use super::token_bucket::{CreditCount, TokenBucket, divide_up, tick_after};
use super::{Bucket, BucketState};
use crate::quota::Basis;
use crate::{BucketReading, Quota, Receipt, Timestamp, Wait};

/// Number of lows that a bucket keeps. Eight lose next to nothing even if sixty charges overlap.
pub const LOWS_MAX: usize = 8;

/// The most numbers that a token bucket is written as: two, its credits, its lows and a basis.
const NUMBERS_MAX: usize = 4 + 2 * LOWS_MAX + 1;

/// The state of a token bucket that units are lent from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LendingBucket {
    /// The bucket.
    pub tokens: TokenBucket,
    /// Lowest debts since earlier charges, as far as they are kept.
    pub lows: Lows,
}

/// A debt that was not undercut since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Low {
    /// When it was so, in microseconds.
    pub at: u64,
    /// The debt in whole ticks, rounded down. Ticks and not units of debt, so that a change of the
    /// rate does not change what they are worth.
    pub ticks: u64,
}

/// At most [`LOWS_MAX`] lows, of which both instants and debts rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lows {
    /// Those beyond `len` are blank.
    list: [Low; LOWS_MAX],
    /// Number of valid entries in `list`.
    len: usize,
}

impl Lows {
    /// Returns the lows of a bucket of which nothing is known from before `now`: it may have had no
    /// debt.
    pub fn unknown(now: Timestamp) -> Self {
        let mut lows = Self::default();
        lows.put(Low {
            at: now.as_micros(),
            ticks: 0,
        });
        lows
    }

    /// These lows; those that are out of order are left out, the higher ones first.
    pub fn from_list(list: impl IntoIterator<Item = Low>) -> Self {
        let mut lows = Self::default();
        for low in list {
            lows.note(low);
        }
        lows
    }

    /// Returns the lows, earliest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Low> + '_ {
        self.list.iter().take(self.len).copied()
    }

    /// Returns the latest low.
    fn last(&self) -> Option<Low> {
        self.iter().next_back()
    }

    /// Returns the lowest debt after `at`, in ticks, as far as it was followed by a charge.
    fn after(&self, at: Timestamp) -> Option<u64> {
        let low = self.iter().find(|low| low.at > at.as_micros())?;
        Some(low.ticks)
    }

    /// Records the debt just before a charge.
    fn note(&mut self, low: Low) {
        while self.last().is_some_and(|last| last.ticks >= low.ticks) {
            self.pop();
        }
        // At one instant the first low is the lowest. If the clock has gone back, the low counts as
        // one of the latest instant, so that no later refund overlooks it.
        if self.last().is_some_and(|last| last.at >= low.at) {
            return;
        }
        if self.len == LOWS_MAX {
            self.merge(low);
        } else {
            self.put(low);
        }
    }

    /// Applies a credit of this many ticks, for a charge that was made at `at`: without that charge, all debts
    /// since then would have been lower by as much, and those before as they were.
    fn lower(&mut self, at: Timestamp, ticks: u64) {
        let before = *self;
        *self = Self::default();
        for low in before.iter() {
            let credited = if low.at > at.as_micros() { ticks } else { 0 };
            self.note(Low {
                ticks: low.ticks.saturating_sub(credited),
                ..low
            });
        }
    }

    /// Adds a low where there is no place for it: the two neighbours that differ least become one.
    fn merge(&mut self, low: Low) {
        let next = |i: usize| {
            let next = self.list.get(i.saturating_add(1)).copied();
            next.unwrap_or(low)
        };
        let apart = |(i, it): (usize, &Low)| next(i).ticks.saturating_sub(it.ticks);
        let nearest = self.list.iter().enumerate().min_by_key(|it| apart(*it));
        let first = nearest.map_or(0, |(i, _)| i);
        let all = self.list.into_iter().chain([low]);
        let merged = next(first).at;
        let mut lows = Self::default();
        for (i, it) in all.enumerate() {
            if i == first {
                lows.put(Low { at: merged, ..it });
            } else if i != first.saturating_add(1) {
                lows.put(it);
            }
        }
        *self = lows;
    }

    /// Appends a low, if there is room.
    fn put(&mut self, low: Low) {
        if let Some(place) = self.list.get_mut(self.len) {
            *place = low;
            self.len = self.len.saturating_add(1);
        }
    }

    /// Removes the latest low.
    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        if let Some(place) = self.list.get_mut(self.len) {
            *place = Low::default();
        }
    }
}

impl LendingBucket {
    /// Returns a bucket of which only the state of a plain one is known.
    pub fn unknown(tokens: TokenBucket, now: Timestamp) -> Self {
        Self {
            tokens,
            lows: Lows::unknown(now),
        }
    }

    /// Returns the low that a charge at `now` leaves.
    fn low(&self, quota: &Quota, now: Timestamp) -> Low {
        let debt = self.tokens.debt_at(quota, tick_after(quota, now));
        Low {
            at: now.as_micros(),
            ticks: debt / quota.drain,
        }
    }
}

/// Numeric form of a token bucket: `at`, `fraction`; if it is refundable, its credits `since`,
/// `ticks`; if it lends, its lows of `at`, `ticks`. If a basis follows, a refundable bucket without
/// lows writes one low of 0 and 0, so that the length distinguishes the records.
impl LendingBucket {
    /// Writes the state as numbers.
    pub(super) fn encode(&self, quota: &Quota, put: &mut impl FnMut(u64)) {
        let TokenBucket {
            at,
            fraction,
            credits: CreditCount { since, ticks },
        } = self.tokens;
        let has_none = self.lows.len == 0 && quota.basis_code().is_some();
        let blank = has_none.then(Low::default);
        let lows = self.lows.iter().chain(blank);
        let lows = lows.flat_map(|low| [low.at, low.ticks]);
        [at, fraction, since, ticks]
            .into_iter()
            .chain(lows)
            .for_each(put);
    }

    /// Writes the state of a bucket that does not lend as numbers.
    pub(super) fn encode_tokens(tokens: TokenBucket, quota: &Quota, put: &mut impl FnMut(u64)) {
        if quota.is_refundable() {
            let lows = Lows::default();
            Self { tokens, lows }.encode(quota, put);
        } else {
            put(tokens.at);
            put(tokens.fraction);
        }
    }

    /// Reads the state of a token bucket, whether it lends or not, and the basis that follows it.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
        quota: &Quota,
        now: Timestamp,
    ) -> Option<(Bucket, Basis)> {
        let count = numbers.len();
        if count > NUMBERS_MAX {
            return None;
        }
        // Earlier versions wrote five numbers, the last three of which are not needed.
        let (is_coded, pairs) = match count {
            5 => (false, 1),
            count => (count % 2 == 1, count / 2),
        };
        let mut pair = || Some((numbers.next()?, numbers.next()?));
        let at = pair()?;
        let credits = if pairs > 1 { pair() } else { None };
        let credits = credits.map(|(since, ticks)| CreditCount { since, ticks });
        let lows = (2..pairs).map_while(|_| pair());
        let lows = Lows::from_list(lows.map(|(at, ticks)| Low { at, ticks }));
        let is_blank = is_coded && pairs == 3 && lows == Lows::from_list([Low::default()]);
        let lows = (pairs > 2 && !is_blank).then_some(lows);
        let code = if is_coded { numbers.next() } else { None };
        let bucket = Bucket::of_tokens(at, (credits, lows), quota, now);
        Some((bucket, Basis::decode(code, 0)?))
    }
}

impl Bucket {
    /// Returns the state of a token bucket from its `at` and `fraction` and as much as is known of its
    /// credits and lows, as far as `quota` needs them.
    pub fn of_tokens(
        (at, fraction): (u64, u64),
        (credits, lows): (Option<CreditCount>, Option<Lows>),
        quota: &Quota,
        now: Timestamp,
    ) -> Self {
        // A quota with a larger drain may have left it: it is less than a tick.
        let fits = fraction < quota.drain.get();
        let credits = credits.unwrap_or(CreditCount::unknown(now));
        let tokens = TokenBucket {
            at: if fits { at } else { at.saturating_add(1) },
            fraction: if fits { fraction } else { 0 },
            credits: if quota.refundable {
                credits
            } else {
                CreditCount::default()
            },
        };
        if quota.lends {
            let lows = lows.unwrap_or(Lows::unknown(now));
            Self::Lent(Box::new(LendingBucket { tokens, lows }))
        } else {
            Self::Tokens(tokens)
        }
    }
}

impl BucketState for LendingBucket {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        self.tokens.wait(quota, cost, now)
    }

    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        self.lows.note(self.low(quota, now));
        self.tokens.charge(quota, cost, now);
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let (before, low) = (self.tokens, self.low(quota, now));
        let units = self.tokens.force(quota, cost, now);
        if self.tokens != before {
            self.lows.note(low);
        }
        units
    }

    /// Credits the same as a token bucket, or more if the recorded lows prove that more is safe.
    ///
    /// Refunding several charges, in any order, is safe. Compare with the world in which the
    /// charges refunded so far had never been made. There each debt after such a charge was lower
    /// by the gap at that time, which is at least the amount credited in the end. So a low may seem
    /// higher here by the amount that was credited too little, and this charge gets no more than
    /// that. If the debt in that world reached zero, the credit equals the gap from then on, and
    /// the low is right. Debts from before the charge are the same in both worlds.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        let low = match self.lows.after(receipt.at) {
            Some(ticks) => ticks.saturating_mul(quota.drain.get()),
            // No charge since: the lowest debt is the present one.
            None => u64::MAX,
        };
        let (credit, counted) = self.tokens.refund_above(quota, receipt, low, now);
        if credit > 0 {
            self.lows.lower(receipt.at, divide_up(credit, quota.drain));
        }
        counted
    }

    #[inline]
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        self.tokens.is_beyond_reach(quota, now)
    }

    /// Leaves the bucket empty, and nothing known of the time before.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_beyond_reach(quota, now) {
            self.tokens.clamp_to_now(quota, now);
            self.lows = Lows::unknown(now);
        }
    }

    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        self.tokens.reading(quota, now)
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        self.tokens.fresh_at(quota)
    }
}
