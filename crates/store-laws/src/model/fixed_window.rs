use super::{AlgorithmModel, ModelQuota};

/// A fixed window: at most the amount is charged between its start and a period later.
///
/// It opens with its first charge, and starts there; or, if *aligned*, at the last multiple of the
/// period since the epoch. If the period is over, or all its charges are refunded, it is as if it
/// had never been opened.
#[derive(Clone, Debug)]
pub(super) struct FixedWindowModel {
    quota: ModelQuota,
    aligned: bool,
    window: Option<ModelWindow>,
}

#[derive(Clone, Copy, Debug)]
struct ModelWindow {
    start_us: u64,
    count: u64,
}

impl FixedWindowModel {
    pub(super) fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            aligned: false,
            window: None,
        }
    }

    pub(super) fn aligned(quota: ModelQuota) -> Self {
        Self {
            aligned: true,
            ..Self::new(quota)
        }
    }

    fn open(&self, now_us: u64) -> Option<ModelWindow> {
        self.window
            .filter(|window| window.count > 0 && now_us < window.start_us + self.quota.period_us)
    }

    fn count(&self, now_us: u64) -> u64 {
        self.open(now_us).map_or(0, |window| window.count)
    }

    fn start_of_a_window_opened_at(&self, now_us: u64) -> u64 {
        if self.aligned {
            now_us - now_us % self.quota.period_us
        } else {
            now_us
        }
    }
}

impl AlgorithmModel for FixedWindowModel {
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
        self.open(now_us)
            .map_or(0, |window| window.start_us + self.quota.period_us - now_us)
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let mut window = self.open(now_us).unwrap_or(ModelWindow {
            start_us: self.start_of_a_window_opened_at(now_us),
            count: 0,
        });
        let room = self.quota.room_above(window.count);
        window.count += cost.min(room);
        self.window = Some(window);
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        if let Some(window) = &mut self.window
            && window.start_us <= taken_at_us
        {
            window.count = window.count.saturating_sub(cost);
        }
    }
    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        if let Some(mut window) = self.open(now_us) {
            window.count = window.count.saturating_sub(cost);
            self.window = Some(window);
        }
    }
}
