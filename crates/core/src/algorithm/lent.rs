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

use super::token_bucket::{TokenBucket, divide_up, tick_after};
use super::{Meter, Reading};
use crate::{Quota, Receipt, Timestamp, Wait};

/// How many lows are kept. With so many, next to nothing is lost even where sixty charges overlap.
pub const LOWS_MAX: usize = 8;

/// The state of a token bucket that units are lent from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lent {
    /// The bucket.
    pub tokens: TokenBucket,
    /// How low its debt has been.
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
    len: usize,
}

impl Lows {
    /// The lows of a bucket of which nothing is known from before `now`: it may have had no debt.
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

    /// The lows, earliest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Low> + '_ {
        self.list.iter().take(self.len).copied()
    }

    fn last(&self) -> Option<Low> {
        self.iter().next_back()
    }

    /// The lowest debt after `at`, in ticks, as far as it was followed by a charge.
    fn after(&self, at: Timestamp) -> Option<u64> {
        let low = self.iter().find(|low| low.at > at.as_micros())?;
        Some(low.ticks)
    }

    /// Writes down the debt just before a charge.
    fn note(&mut self, low: Low) {
        while self.last().is_some_and(|last| last.ticks >= low.ticks) {
            self.pop();
        }
        // At one instant the first is the lowest. Where the clock has gone back, the low counts as
        // one of the latest instant, so that nobody since then overlooks it.
        if self.last().is_some_and(|last| last.at >= low.at) {
            return;
        }
        if self.len == LOWS_MAX {
            self.merge(low);
        } else {
            self.put(low);
        }
    }

    /// A credit of so many ticks, for a charge that was made at `at`: without that charge, all debts
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

    fn put(&mut self, low: Low) {
        if let Some(place) = self.list.get_mut(self.len) {
            *place = low;
            self.len = self.len.saturating_add(1);
        }
    }

    fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        if let Some(place) = self.list.get_mut(self.len) {
            *place = Low::default();
        }
    }
}

impl Lent {
    /// A bucket of which only the state of a plain one is known.
    pub fn unknown(tokens: TokenBucket, now: Timestamp) -> Self {
        Self {
            tokens,
            lows: Lows::unknown(now),
        }
    }

    /// The low that a charge at `now` leaves.
    fn low(&self, quota: &Quota, now: Timestamp) -> Low {
        let debt = self.tokens.debt_at(quota, tick_after(quota, now));
        Low {
            at: now.as_micros(),
            ticks: debt / quota.drain,
        }
    }
}

impl Meter for Lent {
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

    /// Credits what a token bucket would, or more where the lows know better.
    ///
    /// That several charges are given back, in any order, is safe. Compare with the world in which
    /// what was given back so far had never been charged. There each debt after such a charge was
    /// lower by what it came to at that time, which is at least what was credited in the end; so a low
    /// may seem higher here by as much as too little was credited, and no more comes back of this
    /// charge than that. Where the debt in that world reached zero, what was credited is all that it
    /// came to from then on, and the low is right. Debts of before the charge are the same in both.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        let low = match self.lows.after(receipt.at) {
            Some(ticks) => ticks.saturating_mul(quota.drain.get()),
            // Nobody has charged since: the lowest is the debt of now.
            None => u64::MAX,
        };
        let (credit, counted) = self.tokens.give_back_above(quota, receipt, low, now);
        if credit > 0 {
            self.lows.lower(receipt.at, divide_up(credit, quota.drain));
        }
        counted
    }

    #[inline]
    fn is_ahead(&self, quota: &Quota, now: Timestamp) -> bool {
        self.tokens.is_ahead(quota, now)
    }

    /// Leaves the bucket empty, and nothing known of the time before.
    fn settle(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_ahead(quota, now) {
            self.tokens.settle(quota, now);
            self.lows = Lows::unknown(now);
        }
    }

    fn reading(&self, quota: &Quota, now: Timestamp) -> Reading {
        self.tokens.reading(quota, now)
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        self.tokens.fresh_at(quota)
    }
}
