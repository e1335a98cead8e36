//! One count, by decider.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{AnswerReason, DecidedBy};

/// The labels of a count, except for the decider.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionLabels<'a> {
    pub(super) policy: &'a str,
    pub(super) limit: &'a str,
    pub(super) outcome: &'static str,
    pub(super) reason: AnswerReason,
}

/// Counters in the order of [`DECIDERS`].
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

    /// Encodes the store's count even at zero, so that a rate over its first increase is right. Series of a
    /// store that never failed would be noise.
    pub(super) fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        of: &DecisionLabels<'_>,
    ) -> fmt::Result {
        self.encode_those(encoder, of, |by, count| count > 0 || by == DecidedBy::Store)
    }

    /// Encodes the counts that are not zero.
    pub(super) fn encode_counted(
        &self,
        encoder: &mut MetricEncoder<'_>,
        of: &DecisionLabels<'_>,
    ) -> fmt::Result {
        self.encode_those(encoder, of, |_, count| count > 0)
    }

    fn encode_those(
        &self,
        encoder: &mut MetricEncoder<'_>,
        of: &DecisionLabels<'_>,
        is_shown: impl Fn(DecidedBy, u64) -> bool,
    ) -> fmt::Result {
        for (by, counter) in DECIDERS.iter().zip(&self.0) {
            let count = counter.load(Relaxed);
            if !is_shown(*by, count) {
                continue;
            }
            let labels = [
                ("policy", of.policy),
                ("limit", of.limit),
                ("outcome", of.outcome),
                ("decided_by", by.as_str()),
                ("reason", of.reason.as_str()),
            ];
            ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
