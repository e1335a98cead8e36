//! One count, by who decided.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::DecidedBy;

/// In the order of [`DECIDERS`].
#[derive(Debug, Default)]
pub(super) struct ByDecider([AtomicU64; 3]);

const DECIDERS: [DecidedBy; 3] = [DecidedBy::Store, DecidedBy::Local, DecidedBy::Failure];

impl ByDecider {
    pub(super) fn add(&self, by: DecidedBy) {
        let mut counters = DECIDERS.iter().zip(&self.0);
        if let Some((_, counter)) = counters.find(|(decider, _)| **decider == by) {
            counter.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(|counter| counter.load(Relaxed) == 0)
    }

    pub(super) fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (policy, limit, outcome): (&str, &str, &str),
    ) -> fmt::Result {
        for (by, counter) in DECIDERS.iter().zip(&self.0) {
            let count = counter.load(Relaxed);
            // Series of a store that never failed would be noise; the others start at zero, so
            // that a rate over their first increase is right.
            if count == 0 && *by != DecidedBy::Store {
                continue;
            }
            let labels = [
                ("policy", policy),
                ("limit", limit),
                ("outcome", outcome),
                ("decided_by", by.as_str()),
            ];
            ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
