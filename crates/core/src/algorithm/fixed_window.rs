//! Fixed window: a counter that starts again each period.

use super::count::WindowTake;
use super::{Bucket, BucketState};
use crate::quota::{Basis, same_share};
use crate::{Algorithm, Align, BucketReading, Outcome, Quota, Receipt, Timestamp, Wait};

/// The state of a fixed window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedWindow {
    /// When the window began, in microseconds.
    pub start: u64,
    /// Units counted in it. Where this is 0 there is no window.
    pub used: u64,
}

impl FixedWindow {
    /// Returns the window that `now` falls into; a new, empty one if the stored one is over.
    #[inline]
    fn at(self, quota: &Quota, now: Timestamp) -> Self {
        let now = now.as_micros();
        let period = quota.period.get();
        if self.used == 0 || now >= self.start.saturating_add(period) {
            Self {
                start: opening(quota, now),
                used: 0,
            }
        } else {
            self
        }
    }

    /// Returns the microseconds until the window ends; 0 if it has ended.
    #[inline]
    fn left(self, quota: &Quota, now: Timestamp) -> u64 {
        self.start
            .saturating_add(quota.period.get())
            .saturating_sub(now.as_micros())
    }
}

impl FixedWindow {
    /// Takes `cost` units, at least one, if they fit: the state afterwards and the answer, or `None`
    /// where something is out of the ordinary and [`BucketState::take`] has to see to it.
    #[expect(
        clippy::inline_always,
        reason = "a call would put the state and the answer into memory"
    )]
    #[inline(always)]
    pub fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        if cost > quota.amount || self.is_beyond_reach(quota, now) {
            return None;
        }
        let window = self.at(quota, now);
        let take = WindowTake::new(quota, window.used, cost, window.left(quota, now));
        let next = Self {
            used: take.used,
            ..window
        };
        Some((if take.fits { next } else { *self }, take.outcome))
    }
}

impl FixedWindow {
    /// Returns the state under `quota`.
    pub(super) fn adapted(self, from: Basis, quota: &Quota) -> Self {
        if !from.is_scaled_to(quota.basis()) {
            return self;
        }
        Self {
            used: same_share(self.used, from.whole, quota.whole_up()),
            ..self
        }
    }

    /// Writes the state as numbers.
    pub(super) fn encode(self, put: &mut impl FnMut(u64)) {
        put(self.start);
        put(self.used);
    }

    /// Reads the state, and the basis that follows it.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
    ) -> Option<(Bucket, Basis)> {
        if !matches!(numbers.len(), 2 | 3) {
            return None;
        }
        let (start, used) = (numbers.next()?, numbers.next()?);
        let start = if used == 0 { 0 } else { start };
        let window = Bucket::Fixed(Self { start, used });
        Some((window, Basis::decode(numbers.next(), 0)?))
    }
}

/// Returns the start of a window that is opened at `now`.
#[inline]
fn opening(quota: &Quota, now: u64) -> u64 {
    if quota.algorithm == Algorithm::FixedWindow(Align::Clock) {
        now.saturating_sub(now % quota.period)
    } else {
        now
    }
}

impl BucketState for FixedWindow {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.amount {
            return Wait::NEVER;
        }
        let window = self.at(quota, now);
        if window.used.saturating_add(cost) <= quota.amount {
            Wait::NONE
        } else {
            Wait::from_micros(window.left(quota, now))
        }
    }

    #[inline]
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        *self = self.at(quota, now);
        self.used = self.used.saturating_add(cost);
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        *self = self.at(quota, now);
        let most = quota.amount.saturating_add(quota.overdraft).max(self.used);
        let before = self.used;
        self.used = before.saturating_add(cost).min(most);
        self.used.saturating_sub(before)
    }

    /// Only where the window that was charged is still open.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        let window = self.at(quota, now);
        if window.used > 0 && receipt.at.as_micros() >= window.start {
            *self = window;
            self.used = self.used.saturating_sub(receipt.cost);
        }
        0
    }

    #[inline]
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        self.used > 0 && self.start > now.as_micros().saturating_add(quota.period.get())
    }

    /// Leaves a full window.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_beyond_reach(quota, now) {
            self.start = opening(quota, now.as_micros());
            self.used = self.used.max(quota.amount);
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let window = self.at(quota, now);
        BucketReading {
            remaining: quota.amount.saturating_sub(window.used),
            overdrawn: window.used.saturating_sub(quota.amount),
            reset_us: if window.used == 0 {
                0
            } else {
                window.left(quota, now)
            },
            mark: 0,
        }
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let end = self.start.saturating_add(quota.period.get());
        Timestamp::from_micros(if self.used == 0 { self.start } else { end })
    }
}
