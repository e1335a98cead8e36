use super::{AlgorithmModel, ModelQuota};

/// A calendar window: at most the amount is charged between two starts.
///
/// Here the starts are the multiples of the period since the epoch, as they are for a quota without a calendar.
/// Charges of earlier windows do not count.
#[derive(Clone, Debug)]
pub(super) struct CalendarWindowModel {
    quota: ModelQuota,
    /// The last charge.
    charged_at_us: u64,
    /// The units that were charged in its window.
    count: u64,
}

impl CalendarWindowModel {
    pub(super) fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            charged_at_us: 0,
            count: 0,
        }
    }

    fn window_of(&self, at_us: u64) -> u64 {
        at_us / self.quota.period_us
    }

    fn count(&self, now_us: u64) -> u64 {
        if self.window_of(self.charged_at_us) == self.window_of(now_us) {
            self.count
        } else {
            0
        }
    }
}

impl AlgorithmModel for CalendarWindowModel {
    fn remaining(&self, now_us: u64) -> u64 {
        self.quota.amount.saturating_sub(self.count(now_us))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        if cost > self.quota.amount {
            None
        } else if cost <= self.remaining(now_us) {
            Some(0)
        } else {
            Some(self.reset_us(now_us))
        }
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        match self.count(now_us) {
            0 => 0,
            _ => self.quota.period_us - now_us % self.quota.period_us,
        }
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let count = self.count(now_us);
        let room = self.quota.room_above(count);
        self.count = count + cost.min(room);
        self.charged_at_us = now_us;
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        if self.window_of(taken_at_us) == self.window_of(self.charged_at_us) {
            self.count = self.count.saturating_sub(cost);
        }
    }

    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        self.count = self.count(now_us).saturating_sub(cost);
    }
}
