//! throttlecrab with its adaptive store. It decides through `&mut`, so it needs a mutex.

use std::hint::black_box;
use std::time::SystemTime;

use parking_lot::Mutex;
use throttlecrab::{AdaptiveStore, RateLimiter};

use crate::subject::Subject;
use crate::workload::{Keys, Quota};

struct Throttlecrab {
    limiter: Mutex<RateLimiter<AdaptiveStore>>,
    burst: i64,
    amount: i64,
    period_s: i64,
}

impl Subject for Throttlecrab {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        let answer = self.limiter.lock().rate_limit(
            &keys.names[at],
            self.burst,
            self.amount,
            self.period_s,
            1,
            SystemTime::now(),
        );
        black_box(answer).is_ok_and(|(allowed, _)| allowed)
    }
}

pub(crate) fn build(keys: usize, quota: Quota) -> anyhow::Result<Box<dyn Subject>> {
    let store = AdaptiveStore::builder().capacity(keys.max(1_024)).build();
    Ok(Box::new(Throttlecrab {
        limiter: Mutex::new(RateLimiter::new(store)),
        // With a burst of 1 throttlecrab 0.4.40 never refuses: what it stores expires at once.
        burst: i64::from(quota.burst).max(2),
        amount: quota.amount.into(),
        period_s: quota.period_s.into(),
    }))
}
