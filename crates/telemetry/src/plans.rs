//! Metrics of plans and of the status of their sources.

use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{Decision, Limiter, PlanState, Store};

/// The outcomes of plan lookups, named as by [`PlanAnswer::as_str`](tidegate::plan::PlanAnswer::as_str).
const OUTCOMES: [&str; 4] = ["rate", "unlimited", "unset", "unknown"];

/// The outcomes of plan lookups, counted by source name: only sources of a configuration are here.
#[derive(Debug, Default)]
pub struct PlanMetrics {
    sources: RwLock<BTreeMap<Box<str>, Arc<PlanCounters>>>,
}

/// Counters by index of the outcome.
type PlanCounters = [AtomicU64; OUTCOMES.len()];

impl PlanMetrics {
    /// Counts the plan lookups of a request.
    pub fn count(&self, decision: &Decision) {
        for (source, answer) in decision.plans() {
            let place = answer
                .as_str()
                .and_then(|it| OUTCOMES.iter().position(|word| *word == it));
            let counts = self.of(source);
            if let Some(counter) = place.and_then(|place| counts.get(place)) {
                counter.fetch_add(1, Relaxed);
            }
        }
    }

    fn of(&self, source: &str) -> Arc<PlanCounters> {
        if let Some(counts) = self.sources.read().get(source) {
            return Arc::clone(counts);
        }
        Arc::clone(self.sources.write().entry(source.into()).or_default())
    }
}

impl Collector for PlanMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sources = self.sources.read().clone();
        // Omit the series if no plan was looked up: they would be noise.
        if sources.is_empty() {
            return Ok(());
        }
        let help = "Plan lookups by result: `rate`, `unlimited`, `unset` (no level sets a rate), \
            `unknown` (unknown subject).";
        let mut family =
            encoder.encode_descriptor("plan_lookups", help, None, MetricType::Counter)?;
        for (source, counts) in &sources {
            for (outcome, counter) in OUTCOMES.iter().zip(counts.iter()) {
                let labels = [("plan", &**source), ("outcome", *outcome)];
                let count = ConstCounter::new(counter.load(Relaxed));
                count.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// The status of the sources of plans, read at scrape time.
#[derive(Debug)]
pub(super) struct PlanSourceCollector<S> {
    limiter: Limiter<S>,
}

impl<S> PlanSourceCollector<S> {
    pub(super) fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: Store + Debug + 'static> Collector for PlanSourceCollector<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let states = self.limiter.plans();
        // Omit the series if there are no plans: they would be noise.
        if states.is_empty() {
            return Ok(());
        }
        let help = "Subjects of a plan source.";
        let mut family =
            encoder.encode_descriptor("plan_subjects", help, None, MetricType::Gauge)?;
        gauges(&mut family, &states, |it| Some(whole(it.subjects)))?;
        let help = "Plan subjects without a rate.";
        let mut family =
            encoder.encode_descriptor("plan_subjects_unset", help, None, MetricType::Gauge)?;
        gauges(&mut family, &states, |it| Some(whole(it.notes.unset)))?;
        let help = "Time since plans were last loaded; absent if they never were.";
        let unit = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor("plan_age", help, unit, MetricType::Gauge)?;
        gauges(&mut family, &states, |it| Some(whole(it.age?.as_secs())))?;
        let help = "1 if the last load of plans failed, else 0.";
        let mut family = encoder.encode_descriptor("plans_stale", help, None, MetricType::Gauge)?;
        gauges(&mut family, &states, |it| {
            Some(i64::from(it.failing_for.is_some()))
        })?;
        let help = "Failed loads of plans.";
        let mut family =
            encoder.encode_descriptor("plan_failures", help, None, MetricType::Counter)?;
        for state in &states {
            let labels = [("plan", state.name.as_str())];
            ConstCounter::new(state.failures).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauges(
    family: &mut MetricEncoder<'_>,
    states: &[PlanState],
    value: impl Fn(&PlanState) -> Option<i64>,
) -> fmt::Result {
    for state in states {
        if let Some(value) = value(state) {
            let labels = [("plan", state.name.as_str())];
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
