//! governor with its `DashMap` of keys and its default (TSC) clock: the rival.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Context as _;
use governor::DefaultKeyedRateLimiter;

use crate::subject::Subject;
use crate::workload::{Keys, Quota};

struct Governor(DefaultKeyedRateLimiter<String>);

impl Subject for Governor {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        black_box(self.0.check_key(&keys.names[at])).is_ok()
    }
}

pub(crate) fn build(_keys: usize, quota: Quota) -> anyhow::Result<Box<dyn Subject>> {
    let interval = Duration::from_secs(quota.period_s.into()) / quota.amount;
    let quota = governor::Quota::with_period(interval)
        .zip(NonZeroU32::new(quota.burst))
        .map(|(quota, burst)| quota.allow_burst(burst))
        .context("governor refuses a quota of zero")?;
    Ok(Box::new(Governor(DefaultKeyedRateLimiter::dashmap(quota))))
}
