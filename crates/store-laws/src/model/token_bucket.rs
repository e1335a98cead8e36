use num_rational::BigRational;
use num_traits::Zero;

use super::{AlgorithmModel, ModelQuota, at_least_zero, ceil, floor, whole};

/// A token bucket, seen from below: the *debt* is the number of tokens, whole or not, that are
/// missing from a full bucket.
///
/// A charge raises the debt by its cost. The debt drains at `amount / period` tokens per
/// microsecond until it is zero, and no further. A cost passes if the debt with it is at most the
/// burst.
///
/// A refund rewrites history: it lowers the debt at the instant of the charge, and everything that
/// came since is played again. That lowers the debt of today by the least of the refund and the
/// lowest debt in between, with earlier refunds already taken off (Theorem R): once the bucket was
/// full, it is the same with and without the charge.
#[derive(Clone, Debug)]
pub(super) struct TokenBucketModel {
    quota: ModelQuota,
    history: Vec<ModelStep>,
}

/// A charge (above zero) or a refund (below), and the debt just after it.
#[derive(Clone, Debug)]
struct ModelStep {
    at_us: u64,
    change: BigRational,
    debt: BigRational,
}

impl TokenBucketModel {
    pub(super) fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            history: Vec::new(),
        }
    }

    fn tokens_per_us(&self) -> BigRational {
        whole(self.quota.amount) / whole(self.quota.period_us)
    }

    fn debt(&self, now_us: u64) -> BigRational {
        let Some(last) = self.history.last() else {
            return BigRational::zero();
        };
        let drained = whole(now_us - last.at_us) * self.tokens_per_us();
        at_least_zero(&last.debt - drained)
    }

    fn step(&mut self, at_us: u64, change: BigRational) {
        let debt = at_least_zero(self.debt(at_us) + &change);
        self.history.push(ModelStep {
            at_us,
            change,
            debt,
        });
    }
}

impl AlgorithmModel for TokenBucketModel {
    fn remaining(&self, now_us: u64) -> u64 {
        floor(&(whole(self.quota.burst) - self.debt(now_us)))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        if cost > self.quota.burst {
            return None;
        }
        let excess = self.debt(now_us) + whole(cost) - whole(self.quota.burst);
        Some(ceil(&(excess / self.tokens_per_us())))
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        ceil(&(self.debt(now_us) / self.tokens_per_us()))
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let deepest = whole(self.quota.burst) + whole(self.quota.overdraft);
        let room = at_least_zero(deepest - self.debt(now_us));
        self.step(now_us, whole(cost).min(room));
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        let until = self
            .history
            .partition_point(|step| step.at_us <= taken_at_us);
        let since = self.history.split_off(until);
        self.step(taken_at_us, -whole(cost));
        for step in since {
            self.step(step.at_us, step.change);
        }
    }
    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        self.step(now_us, -whole(cost));
    }
}
