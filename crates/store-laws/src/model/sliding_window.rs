use std::collections::BTreeMap;

use num_rational::BigRational;

use super::{AlgorithmModel, ModelQuota, ceil, floor, whole};

/// The two-counter estimate of a sliding window.
///
/// Charges are counted by windows that start at multiples of the period since the epoch. At a time
/// `e` into the current window the *estimate* is the current count, plus the previous count times
/// the part of its window that a sliding window would still cover, `(period - e) / period`. A cost
/// passes if the estimate with it is at most the amount.
///
/// The estimate never exceeds the amount; the true count in some sliding window can.
#[derive(Clone, Debug)]
pub(super) struct SlidingWindowModel {
    quota: ModelQuota,
    counts: BTreeMap<u64, u64>,
}

impl SlidingWindowModel {
    pub(super) fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            counts: BTreeMap::new(),
        }
    }

    fn window(&self, at_us: u64) -> u64 {
        at_us / self.quota.period_us
    }

    fn elapsed_us(&self, now_us: u64) -> u64 {
        now_us % self.quota.period_us
    }

    fn current(&self, now_us: u64) -> u64 {
        self.counts.get(&self.window(now_us)).copied().unwrap_or(0)
    }

    fn previous(&self, now_us: u64) -> u64 {
        let window = self.window(now_us).checked_sub(1);
        window
            .and_then(|window| self.counts.get(&window).copied())
            .unwrap_or(0)
    }

    fn estimate(&self, now_us: u64) -> BigRational {
        let still_covered = self.quota.period_us - self.elapsed_us(now_us);
        let share = whole(still_covered) / whole(self.quota.period_us);
        whole(self.current(now_us)) + whole(self.previous(now_us)) * share
    }

    /// Returns the time into a window at which the share of the previous window's count has fallen
    /// to `target`.
    fn elapsed_us_when_falls_to(&self, previous: u64, target: u64) -> u64 {
        if previous <= target {
            return 0;
        }
        let share = whole(target) / whole(previous);
        ceil(&(whole(self.quota.period_us) * (whole(1) - share)))
    }
}

impl AlgorithmModel for SlidingWindowModel {
    fn remaining(&self, now_us: u64) -> u64 {
        floor(&(whole(self.quota.amount) - self.estimate(now_us)))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        let room_beside_cost = self.quota.amount.checked_sub(cost)?;
        let (current, previous) = (self.current(now_us), self.previous(now_us));
        let elapsed_us = self.elapsed_us(now_us);
        match room_beside_cost.checked_sub(current) {
            // It passes in this window, once the previous count has faded.
            Some(room) => {
                let then_us = self.elapsed_us_when_falls_to(previous, room);
                Some(then_us.saturating_sub(elapsed_us))
            }
            // It passes in the next window, where this window's count is the one that fades.
            None => {
                let then_us = self.elapsed_us_when_falls_to(current, room_beside_cost);
                Some(self.quota.period_us - elapsed_us + then_us)
            }
        }
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        let rest_us = self.quota.period_us - self.elapsed_us(now_us);
        if self.current(now_us) > 0 {
            rest_us + self.quota.period_us
        } else if self.previous(now_us) > 0 {
            rest_us
        } else {
            0
        }
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let room = self.quota.room_above(self.current(now_us));
        *self.counts.entry(self.window(now_us)).or_insert(0) += cost.min(room);
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        if let Some(count) = self.counts.get_mut(&self.window(taken_at_us)) {
            *count = count.saturating_sub(cost);
        }
    }
    /// This window's alone.
    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        self.give_back(now_us, cost);
    }
}
