//! Sliding window by two counters: this window's, and the share of the last one that still
//! overlaps the period. An estimate, in exact arithmetic: it takes the last window's units as
//! evenly spread.

use super::{Meter, Reading};
use crate::{Quota, Receipt, Timestamp, Wait};
use std::num::NonZeroU64;

/// The state of a sliding window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Which window, counted from the epoch.
    pub index: u64,
    /// Units counted in it.
    pub current: u64,
    /// Units counted in the window before it.
    pub previous: u64,
}

/// The windows as `now` sees them, and how many ticks of the present one are over.
struct View {
    window: SlidingWindow,
    elapsed: u64,
}

impl SlidingWindow {
    #[inline]
    fn at(self, quota: &Quota, now: Timestamp) -> View {
        let tick = now.as_micros() / quota.tick_us;
        let index = tick / quota.period;
        let elapsed = tick % quota.period;
        let (current, previous) = match index.checked_sub(self.index) {
            Some(0) => (self.current, self.previous),
            Some(1) => (0, self.current),
            Some(_) => (0, 0),
            // The clock has gone back: the stored window is taken to have just begun.
            None => {
                return View {
                    window: self,
                    elapsed: 0,
                };
            }
        };
        View {
            window: Self {
                index,
                current,
                previous,
            },
            elapsed,
        }
    }
}

impl View {
    /// The estimate times the period, in units × ticks.
    #[inline]
    fn weight(&self, quota: &Quota) -> u64 {
        let left = quota.period.get().saturating_sub(self.elapsed);
        let before = self.window.previous.saturating_mul(left);
        before.saturating_add(self.window.current.saturating_mul(quota.period.get()))
    }

    /// The beginning of the present window, in ticks.
    #[inline]
    fn start(&self, quota: &Quota) -> u64 {
        self.window.index.saturating_mul(quota.period.get())
    }

    /// Ticks from the present window's beginning until `cost` fits.
    fn fits_after(&self, quota: &Quota, cost: u64) -> u64 {
        let period = quota.period.get();
        let room = quota.amount.saturating_sub(cost);
        // How far into a window the one before it, with `counted` units, leaves `room`.
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

impl Meter for SlidingWindow {
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

    /// From whichever of the two windows was charged; what was taken last was taken from this one.
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
    fn is_ahead(&self, quota: &Quota, now: Timestamp) -> bool {
        let index = now.as_micros() / quota.tick_us / quota.period;
        let counts = self.current > 0 || self.previous > 0;
        counts && self.index > index.saturating_add(1)
    }

    /// Leaves both windows full.
    fn settle(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_ahead(quota, now) {
            *self = Self {
                index: now.as_micros() / quota.tick_us / quota.period,
                current: quota.amount,
                previous: quota.amount,
            };
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> Reading {
        let view = self.at(quota, now);
        let full = quota.amount.saturating_mul(quota.period.get());
        let fresh = view.window.fresh_at(quota);
        Reading {
            remaining: full.saturating_sub(view.weight(quota)) / quota.period,
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
