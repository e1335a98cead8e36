//! limitador in memory. It counts in fixed windows, so the burst is the amount of an hour.

use std::collections::HashMap;
use std::hint::black_box;

use anyhow::Context as _;
use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace, Predicate};

use crate::subject::Subject;
use crate::workload::{Keys, Quota};

struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Subject for Limitador {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        // Part of the cost: every caller must build this map for each request.
        let values = HashMap::from([("user".to_owned(), keys.names[at].clone())]);
        let context = Context::from(values);
        let answer = self
            .limiter
            .check_rate_limited_and_update(&self.namespace, &context, 1);
        black_box(answer).is_ok_and(|answer| !answer.limited)
    }
}

pub(crate) fn build(keys: usize, quota: Quota) -> anyhow::Result<Box<dyn Subject>> {
    // Twice the keys; otherwise its cache begins to drop counters before it is full.
    let limiter = RateLimiter::new((keys as u64 * 2).max(1_000));
    let user = "user"
        .try_into()
        .ok()
        .context("limitador knows no variable `user`")?;
    limiter.add_limit(Limit::new(
        "bench",
        quota.burst.into(),
        3_600,
        Vec::<Predicate>::new(),
        vec![user],
    ));
    Ok(Box::new(Limitador {
        limiter,
        namespace: "bench".into(),
    }))
}
