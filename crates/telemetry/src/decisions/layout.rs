//! Counters for every name of a configuration.

use super::by_decider::{ByDecider, DecisionLabels};
use super::by_reason::{ByReason, OF_GUARDS, OF_LIMITS};
use super::hits::{self, HitCounters};
use super::pending::StatisticIncrease;
use crate::durations::Durations;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{AnswerReason, Decision, LimitMode, Request};
use tidegate_config::statsd::Statsd;
use tidegate_policy::{Limit, Policy};

/// The counters of one configuration, by its names.
///
/// Names that the configuration no longer has remain until the next reload. Some requests are still decided
/// by the previous policies, and counts since the last scrape would be lost.
#[derive(Debug)]
pub(crate) struct DecisionCounters {
    policies: BTreeMap<Box<str>, PolicyDecisionCounters>,
}

#[derive(Clone, Debug)]
struct PolicyDecisionCounters {
    unlimited: Arc<ByDecider>,
    durations: Arc<Durations>,
    /// Decisions of guards, made before any limit: refused and exempt.
    guarded: Arc<GuardedCounters>,
    limits: BTreeMap<Box<str>, LimitCounterSet>,
    /// The limits again, in policy order.
    ordered: Arc<[(Box<str>, Arc<LimitCounters>)]>,
    /// Counters of limits that requests bring; few policies ever see one.
    brought: Arc<LimitCounters>,
    /// The name, in statistics, of limits that requests bring.
    brought_key: Arc<str>,
    /// True if any limit is or was in shadow mode: most policies have none to look for.
    has_shadow: bool,
    /// True if the current configuration has the policy, false if only the previous one had it.
    is_current: bool,
}

#[derive(Debug, Default)]
struct GuardedCounters {
    refused: ByReason<{ OF_GUARDS.len() }>,
    exempt: ByDecider,
}

#[derive(Clone, Debug)]
struct LimitCounterSet {
    /// A limit in shadow mode decides nothing: its refusals are counted separately.
    is_shadow: bool,
    is_current: bool,
    outcomes: Arc<LimitCounters>,
    /// The limit's name in statistics; `None` for an unlimited one, which has no statistics.
    key: Option<Arc<str>>,
}

/// Counters for every mode, not just the limit's present one: requests in flight may have seen the other.
#[derive(Debug, Default)]
pub struct LimitCounters {
    allowed: ByDecider,
    refused: ByReason<{ OF_LIMITS.len() }>,
    shadow_refused: ByReason<{ OF_LIMITS.len() }>,
    /// Hits in every decision, including decisions that report another limit.
    pub(super) hits: HitCounters,
}

// === impl DecisionCounters ===

impl DecisionCounters {
    /// Creates the counters for `policies`, which continue those of `before`.
    pub(super) fn new(policies: &[Policy], before: Option<&Self>) -> Self {
        let before = before.map(|before| &before.policies);
        let laid_out = |policy: &Policy| {
            let name = policy.name.as_str();
            let before = before.and_then(|before| before.get(name));
            (name.into(), PolicyDecisionCounters::new(policy, before))
        };
        let mut policies: BTreeMap<_, _> = policies.iter().map(laid_out).collect();
        for (name, gone) in before.into_iter().flatten() {
            if gone.is_current && !policies.contains_key(name) {
                policies.insert(name.clone(), gone.left_over());
            }
        }
        Self { policies }
    }

    pub(super) fn count(&self, decision: &Decision, request: &Request<'_>, took: Option<Duration>) {
        // Only decisions by policies of older configurations have no counters.
        let Some(policy) = self.policies.get(decision.policy()) else {
            return;
        };
        if let Some(took) = took {
            policy.durations.observe(took);
        }
        let by = decision.decided_by();
        match decision.limit_index().zip(decision.limit()) {
            None if decision.is_denied_by_guard() => {
                let refused = &policy.guarded.refused;
                refused.add(&OF_GUARDS, decision.reason(), by);
            }
            None if decision.guard().is_some() => policy.guarded.exempt.add(by),
            None => policy.unlimited.add(by),
            Some((number, limit)) => match policy.outcomes_at(number, limit) {
                Some(outcomes) if decision.is_allowed() => outcomes.allowed.add(by),
                Some(outcomes) => outcomes.refused.add(&OF_LIMITS, decision.reason(), by),
                None => {}
            },
        }
        for hits in decision.limit_hits(request) {
            if let Some(outcomes) = policy.outcomes_at(hits.limit_index, hits.limit) {
                outcomes.hits.add(&hits);
            }
        }
        if policy.has_shadow {
            policy.count_shadows(decision);
        }
    }

    pub(super) fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        for (policy, counts) in &self.policies {
            let unlimited = DecisionLabels {
                policy,
                limit: "",
                outcome: "unlimited",
                reason: AnswerReason::Allowed,
            };
            counts.unlimited.encode(encoder, &unlimited)?;
            counts.guarded.encode(encoder, policy)?;
            for (limit, counts) in &counts.limits {
                counts.encode(encoder, (policy, limit))?;
            }
            counts.encode_request_limits(encoder, policy)?;
        }
        Ok(())
    }

    /// Returns the statistics of all limits that have grown since they were last sent.
    pub(super) fn pending(&self) -> Vec<StatisticIncrease> {
        let mut pending = Vec::new();
        for policy in self.policies.values() {
            for limit in policy.limits.values() {
                if let Some(key) = &limit.key {
                    pending.extend(StatisticIncrease::all(key, &limit.outcomes));
                }
            }
            pending.extend(StatisticIncrease::all(&policy.brought_key, &policy.brought));
        }
        pending
    }

    /// Passes the hits of every limit to `encode`.
    pub(super) fn encode_hits(
        &self,
        mut encode: impl FnMut(&HitCounters, &hits::EncodedLimit<'_>) -> fmt::Result,
    ) -> fmt::Result {
        for (policy, counts) in &self.policies {
            for (limit, counts) in &counts.limits {
                let is_shadow = counts.is_shadow;
                let of = hits::EncodedLimit {
                    policy,
                    limit,
                    is_shadow,
                };
                encode(&counts.outcomes.hits, &of)?;
            }
            // Limits that requests bring are encoded once there was one.
            let brought = &counts.brought.hits;
            if !brought.is_zero() {
                let of = hits::EncodedLimit {
                    policy,
                    limit: Policy::override_name(),
                    is_shadow: false,
                };
                encode(brought, &of)?;
            }
        }
        Ok(())
    }

    /// Encodes decision durations by policy. Policies without decisions are omitted.
    pub(super) fn encode_durations(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        for (policy, counts) in &self.policies {
            if !counts.durations.is_empty() {
                let labels = [("policy", &**policy)];
                counts.durations.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

// === impl PolicyDecisionCounters ===

impl PolicyDecisionCounters {
    fn new(policy: &Policy, before: Option<&Self>) -> Self {
        let laid_out = |(number, limit): (usize, &Limit)| {
            let name = limit.name.as_str();
            let before = before.and_then(|before| before.limits.get(name));
            let key = (!limit.is_unlimited()).then(|| Statsd::key(policy, number).into());
            (name.into(), LimitCounterSet::new(limit, key, before))
        };
        let limits = policy.limits.iter().enumerate();
        let mut limits: BTreeMap<_, _> = limits.map(laid_out).collect();
        let mut has_shadow = is_shadow(policy.limit(policy.limits.len()));
        has_shadow |= limits.values().any(|limit| limit.is_shadow);
        for (name, was) in before.iter().flat_map(|before| before.current_limits()) {
            has_shadow |= was.is_shadow;
            if !limits.contains_key(name) {
                limits.insert(name.clone(), was.left_over());
            }
        }
        let ordered = policy.limits.iter().filter_map(|limit| {
            let (name, counts) = limits.get_key_value(limit.name.as_str())?;
            Some((name.clone(), Arc::clone(&counts.outcomes)))
        });
        Self {
            ordered: ordered.collect(),
            unlimited: before.map_or_else(Arc::default, |before| Arc::clone(&before.unlimited)),
            durations: before.map_or_else(Arc::default, |before| Arc::clone(&before.durations)),
            guarded: before.map_or_else(Arc::default, |before| Arc::clone(&before.guarded)),
            limits,
            brought: before.map_or_else(Arc::default, |before| Arc::clone(&before.brought)),
            brought_key: Statsd::key(policy, policy.limits.len()).into(),
            has_shadow,
            is_current: true,
        }
    }

    /// Returns these counters marked as no longer in the configuration.
    fn left_over(&self) -> Self {
        let limits = self.current_limits();
        Self {
            limits: limits
                .map(|(name, limit)| (name.clone(), limit.left_over()))
                .collect(),
            is_current: false,
            ..self.clone()
        }
    }

    /// Returns the counters of the limit of this name. A limit that a request brings may have the same name
    /// as a limit of the configuration; the two are then counted together.
    #[inline]
    fn outcomes(&self, limit: &str) -> Option<&LimitCounters> {
        match self.limits.get(limit) {
            Some(counts) => Some(&counts.outcomes),
            None => (limit == Policy::override_name()).then_some(&self.brought),
        }
    }

    /// Returns the counters of the limit of this name, which has this index in its policy, or had it in the
    /// previous one.
    #[inline]
    fn outcomes_at(&self, number: usize, limit: &str) -> Option<&LimitCounters> {
        match self.ordered.get(number) {
            Some((name, outcomes)) if **name == *limit => Some(outcomes),
            _ => self.outcomes(limit),
        }
    }

    /// Encodes the limits that requests bring, once there was one: otherwise they would be noise.
    fn encode_request_limits(&self, encoder: &mut MetricEncoder<'_>, policy: &str) -> fmt::Result {
        let LimitCounters {
            allowed,
            refused,
            shadow_refused,
            hits: _,
        } = &*self.brought;
        let of = of_limit(policy, Policy::override_name());
        if !allowed.is_zero() || !refused.is_zero() {
            allowed.encode(encoder, &of("allowed", AnswerReason::Allowed))?;
            refused.encode(&OF_LIMITS, encoder, &of("refused", AnswerReason::Limited))?;
        }
        if !shadow_refused.is_zero() {
            let shadow = of("shadow_refused", AnswerReason::Limited);
            shadow_refused.encode(&OF_LIMITS, encoder, &shadow)?;
        }
        Ok(())
    }

    fn current_limits(&self) -> impl Iterator<Item = (&Box<str>, &LimitCounterSet)> {
        self.limits.iter().filter(|(_, limit)| limit.is_current)
    }

    #[cold]
    fn count_shadows(&self, decision: &Decision) {
        for applied in decision.shadow_refusals() {
            if let Some(outcomes) = self.outcomes(applied.limit()) {
                let by = decision.decided_by();
                let refused = &outcomes.shadow_refused;
                refused.add(&OF_LIMITS, applied.reason(), by);
            }
        }
    }
}

// === impl GuardedCounters ===

impl GuardedCounters {
    /// Encodes decisions of guards, once there was one: without guards they would be noise.
    fn encode(&self, encoder: &mut MetricEncoder<'_>, policy: &str) -> fmt::Result {
        let of = of_limit(policy, "");
        // `Limited` is no reason of guards, so each reason is encoded only once it occurs.
        let refused = of("refused", AnswerReason::Limited);
        self.refused.encode(&OF_GUARDS, encoder, &refused)?;
        if self.exempt.is_zero() {
            return Ok(());
        }
        self.exempt
            .encode(encoder, &of("exempt", AnswerReason::Exempt))
    }
}

// === impl LimitCounterSet ===

impl LimitCounterSet {
    fn new(limit: &Limit, key: Option<Arc<str>>, before: Option<&Self>) -> Self {
        Self {
            key,
            is_shadow: is_shadow(Some(limit)),
            is_current: true,
            outcomes: before.map_or_else(Arc::default, |before| Arc::clone(&before.outcomes)),
        }
    }

    fn left_over(&self) -> Self {
        Self {
            is_current: false,
            ..self.clone()
        }
    }

    /// Encodes the outcomes that are possible in the limit's present mode, and those that occurred in another
    /// mode.
    fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (policy, limit): (&str, &str),
    ) -> fmt::Result {
        let LimitCounters {
            allowed,
            refused,
            shadow_refused,
            hits: _,
        } = &*self.outcomes;
        let of = of_limit(policy, limit);
        if !self.is_shadow || !allowed.is_zero() {
            allowed.encode(encoder, &of("allowed", AnswerReason::Allowed))?;
        }
        if !self.is_shadow || !refused.is_zero() {
            refused.encode(&OF_LIMITS, encoder, &of("refused", AnswerReason::Limited))?;
        }
        if self.is_shadow || !shadow_refused.is_zero() {
            let shadow = of("shadow_refused", AnswerReason::Limited);
            shadow_refused.encode(&OF_LIMITS, encoder, &shadow)?;
        }
        Ok(())
    }
}

fn is_shadow(limit: Option<&Limit>) -> bool {
    limit.is_some_and(|limit| limit.mode == LimitMode::Shadow)
}

/// Returns a function from outcome and reason to the labels of a limit.
fn of_limit<'a>(
    policy: &'a str,
    limit: &'a str,
) -> impl Fn(&'static str, AnswerReason) -> DecisionLabels<'a> {
    move |outcome, reason| DecisionLabels {
        policy,
        limit,
        outcome,
        reason,
    }
}
