//! Sliding window by two counters: this window's, and the share of the last one that still
//! overlaps the period. An estimate, in exact arithmetic: it takes the last window's units as
//! evenly spread.

use super::{Bucket, BucketState, whole};
use crate::quota::{Basis, EXACT_MAX, same_share};
use crate::{BucketReading, Quota, Receipt, Timestamp, Wait};
use std::num::NonZeroU64;

/// The state of a sliding window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Number of the window, counted from the epoch.
    pub index: u64,
    /// Units counted in it.
    pub current: u64,
    /// Units counted in the window before it.
    pub previous: u64,
}

/// The windows as `now` sees them, and how many ticks of the present one are over.
struct WindowView {
    /// The windows, with the present one as `current`.
    window: SlidingWindow,
    /// Ticks of the present window that are over.
    elapsed: u64,
}

impl SlidingWindow {
    /// Returns the windows at `now`: counts of older windows are dropped.
    #[inline]
    fn at(self, quota: &Quota, now: Timestamp) -> WindowView {
        let tick = now.as_micros() / quota.tick_us;
        let index = tick / quota.period;
        let elapsed = tick % quota.period;
        let (current, previous) = match index.checked_sub(self.index) {
            Some(0) => (self.current, self.previous),
            Some(1) => (0, self.current),
            Some(_) => (0, 0),
            // The clock has gone back: the stored window is taken to have just begun.
            None => {
                return WindowView {
                    window: self,
                    elapsed: 0,
                };
            }
        };
        WindowView {
            window: Self {
                index,
                current,
                previous,
            },
            elapsed,
        }
    }
}

impl SlidingWindow {
    /// Returns the state under `quota`.
    pub(super) fn adapted(self, from: Basis, quota: &Quota, now: Timestamp) -> Self {
        let own = quota.basis();
        let scaled = |used| {
            if from.is_scaled_to(own) {
                same_share(used, from.whole, quota.whole_up())
            } else {
                used
            }
        };
        let scaled = Self {
            index: self.index,
            current: scaled(self.current),
            previous: scaled(self.previous),
        };
        let window = if from.period_us == own.period_us {
            scaled
        } else {
            scaled.of_length(from.period_us, own.period_us, now)
        };
        // A count that a larger amount left; all products of this quota are to stay exact.
        let most = EXACT_MAX.saturating_sub(1) / 2 / quota.period;
        Self {
            current: window.current.min(most),
            previous: window.previous.min(most),
            ..window
        }
    }

    /// Converts the counts to windows of another length. Units of a window count as if taken at its
    /// end, or now if its end is still to come.
    fn of_length(self, from_us: u64, to_us: u64, now: Timestamp) -> Self {
        let start = self.index.saturating_mul(from_us).min(EXACT_MAX);
        let end = start.saturating_add(from_us.saturating_sub(1));
        let latest = end.min(now.as_micros().max(start)) / whole(to_us);
        let before = start.saturating_sub(1) / whole(to_us);
        let newest = if self.current > 0 { latest } else { before };
        let index = newest.max(now.as_micros() / whole(to_us));
        let counted = |window: u64| {
            let at = |used: u64, of: u64| if of == window { used } else { 0 };
            at(self.current, latest).saturating_add(at(self.previous, before))
        };
        Self {
            index,
            current: counted(index),
            previous: index.checked_sub(1).map_or(0, counted),
        }
    }

    /// Writes the state as numbers, and the length of a window.
    pub(super) fn encode(self, quota: &Quota, put: &mut impl FnMut(u64)) {
        put(self.index);
        put(self.current);
        put(self.previous);
        put(quota.period_us());
    }

    /// Reads the state, and the basis that follows it. Earlier versions wrote no length of a window.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
        quota: &Quota,
    ) -> Option<(Bucket, Basis)> {
        if !matches!(numbers.len(), 3..=5) {
            return None;
        }
        let (index, current, previous) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let period_us = numbers.next().unwrap_or(quota.period_us());
        let basis = Basis::decode(numbers.next(), period_us).filter(|_| period_us > 0)?;
        let counts = current > 0 || previous > 0;
        let window = Self {
            index: if counts { index } else { 0 },
            current,
            previous,
        };
        Some((Bucket::Sliding(window), basis))
    }
}

impl WindowView {
    /// Returns the estimate times the period, in units × ticks.
    #[inline]
    fn weight(&self, quota: &Quota) -> u64 {
        let left = quota.period.get().saturating_sub(self.elapsed);
        let before = self.window.previous.saturating_mul(left);
        before.saturating_add(self.window.current.saturating_mul(quota.period.get()))
    }

    /// Returns the beginning of the present window, in ticks.
    #[inline]
    fn start(&self, quota: &Quota) -> u64 {
        self.window.index.saturating_mul(quota.period.get())
    }

    /// Ticks from the present window's beginning until `cost` fits.
    fn fits_after(&self, quota: &Quota, cost: u64) -> u64 {
        let period = quota.period.get();
        let room = quota.amount.saturating_sub(cost);
        // Offset into a window at which the previous one, with `counted` units, leaves `room`.
        let into = |room: u64, counted: u64| match NonZeroU64::new(counted) {
            Some(counted) => period.saturating_sub(room.saturating_mul(period) / counted),
            None => 0,
        };
        match room.checked_sub(self.window.current) {
            Some(room) => into(room, self.window.previous),
            None => period.saturating_add(into(room, self.window.current)),
        }
    }
}

impl BucketState for SlidingWindow {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.amount {
            return Wait::NEVER;
        }
        let view = self.at(quota, now);
        let period = quota.period.get();
        let after = view
            .weight(quota)
            .saturating_add(cost.saturating_mul(period));
        if after <= quota.amount.saturating_mul(period) {
            return Wait::NONE;
        }
        let tick = view
            .start(quota)
            .saturating_add(view.fits_after(quota, cost));
        Wait::from_micros(
            tick.saturating_mul(quota.tick_us.get())
                .saturating_sub(now.as_micros()),
        )
    }

    #[inline]
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        *self = self.at(quota, now).window;
        self.current = self.current.saturating_add(cost);
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        *self = self.at(quota, now).window;
        let most = quota
            .amount
            .saturating_add(quota.overdraft)
            .max(self.current);
        let before = self.current;
        self.current = before.saturating_add(cost).min(most);
        self.current.saturating_sub(before)
    }

    /// Refunds to the window that was charged; [`Receipt::latest`] refunds to the present one.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        *self = self.at(quota, now).window;
        let charged = receipt.at.as_micros() / quota.tick_us / quota.period;
        match self.index.saturating_sub(charged) {
            0 => self.current = self.current.saturating_sub(receipt.cost),
            1 => self.previous = self.previous.saturating_sub(receipt.cost),
            _ => {}
        }
        0
    }

    #[inline]
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        let index = now.as_micros() / quota.tick_us / quota.period;
        let counts = self.current > 0 || self.previous > 0;
        counts && self.index > index.saturating_add(1)
    }

    /// Leaves both windows full.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_beyond_reach(quota, now) {
            *self = Self {
                index: now.as_micros() / quota.tick_us / quota.period,
                current: quota.amount,
                previous: quota.amount,
            };
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let view = self.at(quota, now);
        let weight = view.weight(quota);
        let full = quota.amount.saturating_mul(quota.period.get());
        let fresh = view.window.fresh_at(quota);
        BucketReading {
            remaining: full.saturating_sub(weight) / quota.period,
            overdrawn: match weight.checked_sub(full) {
                None | Some(0) => 0,
                Some(excess) => excess.div_ceil(quota.period.get()),
            },
            reset_us: fresh.since(now),
            mark: 0,
        }
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let windows: u64 = match (self.current, self.previous) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        let tick = self
            .index
            .saturating_add(windows)
            .saturating_mul(quota.period.get());
        Timestamp::from_micros(tick.saturating_mul(quota.tick_us.get()))
    }
}
