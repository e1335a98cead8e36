use super::{AlgorithmModel, ModelQuota};

/// A sliding log: the instant of every admission, one entry for each unit of cost.
///
/// Those of the last period count: the window at `t` is `(t - period, t]`, so that an entry leaves
/// exactly a period after it came. A cost passes if the count with it is at most the amount; no
/// window of one period, wherever it starts, ever holds more.
#[derive(Clone, Debug)]
pub(super) struct SlidingLogModel {
    quota: ModelQuota,
    admitted_us: Vec<u64>,
}

impl SlidingLogModel {
    pub(super) fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            admitted_us: Vec::new(),
        }
    }

    /// Returns the time for which the entry with `newer` entries after it still counts.
    fn leaves_in_us(&self, newer: u64, now_us: u64) -> u64 {
        usize::try_from(newer)
            .ok()
            .and_then(|newer| self.admitted_us.iter().rev().nth(newer))
            .map_or(0, |at_us| {
                (at_us + self.quota.period_us).saturating_sub(now_us)
            })
    }

    fn count(&self, now_us: u64) -> u64 {
        let counts = |at_us: &&u64| now_us < **at_us + self.quota.period_us;
        self.admitted_us.iter().filter(counts).map(|_| 1).sum()
    }
}

impl AlgorithmModel for SlidingLogModel {
    fn remaining(&self, now_us: u64) -> u64 {
        self.quota.amount.saturating_sub(self.count(now_us))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        // So many of the newest entries may stay next to the cost; the one before them must leave.
        let may_stay = self.quota.amount.checked_sub(cost)?;
        Some(self.leaves_in_us(may_stay, now_us))
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        self.leaves_in_us(0, now_us)
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let room = self.quota.room_above(self.count(now_us));
        for _ in 0..cost.min(room) {
            self.admitted_us.push(now_us);
        }
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        let mut left = cost;
        self.admitted_us.retain(|at_us| {
            let goes = left > 0 && *at_us == taken_at_us;
            left -= u64::from(goes);
            !goes
        });
    }
    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        let counts = self.count(now_us).min(cost);
        for _ in 0..counts {
            self.admitted_us.pop();
        }
    }
}
