//! One count of refusals, by reason and decider.

use super::by_decider::{ByDecider, DecisionLabels};
use prometheus_client::encoding::MetricEncoder;
use std::array;
use std::fmt;
use tidegate::{AnswerReason, DecidedBy};

/// Counters in the order of the reasons that the caller passes.
#[derive(Debug)]
pub(super) struct ByReason<const N: usize>([ByDecider; N]);

/// The reasons for refusals by limits. The main one comes first.
pub(super) const OF_LIMITS: [AnswerReason; 5] = [
    AnswerReason::Limited,
    AnswerReason::LimitBlocked,
    AnswerReason::NoIdentity,
    AnswerReason::NoPlan,
    AnswerReason::NoStore,
];

/// The reasons for refusals by guards.
pub(super) const OF_GUARDS: [AnswerReason; 2] = [AnswerReason::Blocked, AnswerReason::Blacklisted];

impl<const N: usize> Default for ByReason<N> {
    fn default() -> Self {
        Self(array::from_fn(|_| ByDecider::default()))
    }
}

impl<const N: usize> ByReason<N> {
    /// Counts a refusal. A reason that is not among `reasons` counts as the first of them.
    pub(super) fn add(&self, reasons: &[AnswerReason; N], reason: AnswerReason, by: DecidedBy) {
        let mut counters = reasons.iter().zip(&self.0);
        let known = counters.find(|(it, _)| **it == reason);
        if let Some(counter) = known.map(|(_, counter)| counter).or(self.0.first()) {
            counter.add(by);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(ByDecider::is_zero)
    }

    /// Encodes the first reason even at zero, and other reasons once they occur. `of` has the labels of the
    /// first reason.
    pub(super) fn encode(
        &self,
        reasons: &[AnswerReason; N],
        encoder: &mut MetricEncoder<'_>,
        of: &DecisionLabels<'_>,
    ) -> fmt::Result {
        for (&reason, counter) in reasons.iter().zip(&self.0) {
            if reason == of.reason {
                counter.encode(encoder, of)?;
            } else {
                counter.encode_counted(encoder, &DecisionLabels { reason, ..*of })?;
            }
        }
        Ok(())
    }
}
