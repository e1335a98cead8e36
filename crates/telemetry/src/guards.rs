//! Metrics of guards and of the status of their lists.

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
use tidegate::{AnswerReason, Decision, Limiter, ListStatus, Store};

/// Outcomes of guards, counted by name: only guards of a configuration are here, and only those that have
/// acted.
#[derive(Debug, Default)]
pub struct GuardMetrics {
    guards: RwLock<BTreeMap<Box<str>, Arc<GuardCounters>>>,
}

#[derive(Debug, Default)]
struct GuardCounters {
    blocked: AtomicU64,
    blacklisted: AtomicU64,
    exempt: AtomicU64,
    watched: AtomicU64,
}

impl GuardMetrics {
    /// Counts the outcome of guards for a request.
    pub fn count(&self, decision: &Decision) {
        if let Some(guard) = decision.guard() {
            let counts = self.of(&guard.name);
            let counter = match guard.reason {
                AnswerReason::Exempt => &counts.exempt,
                AnswerReason::Blacklisted => &counts.blacklisted,
                _ => &counts.blocked,
            };
            counter.fetch_add(1, Relaxed);
        }
        if decision.has_shadow_guards() {
            for guard in decision.shadow_guards() {
                self.of(&guard.name).watched.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns the counters of the guard of this name.
    fn of(&self, guard: &str) -> Arc<GuardCounters> {
        if let Some(counts) = self.guards.read().get(guard) {
            return Arc::clone(counts);
        }
        Arc::clone(self.guards.write().entry(guard.into()).or_default())
    }
}

impl Collector for GuardMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let guards = self.guards.read().clone();
        // Omit the series if no guard has acted: they would be noise.
        if guards.is_empty() {
            return Ok(());
        }
        let help = "Requests refused by a guard.";
        let mut family =
            encoder.encode_descriptor("guard_refusals", help, None, MetricType::Counter)?;
        for (guard, counts) in &guards {
            for (reason, counter) in [
                (AnswerReason::Blocked, &counts.blocked),
                (AnswerReason::Blacklisted, &counts.blacklisted),
            ] {
                let count = counter.load(Relaxed);
                // A guard has one reason; the other series would be noise.
                if count > 0 {
                    let labels = [("guard", &**guard), ("reason", reason.as_str())];
                    ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let help = "Requests exempted by a guard.";
        counters(&mut encoder, ("guard_exemptions", help), &guards, |it| {
            &it.exempt
        })?;
        let help = "Requests that match a guard in shadow mode.";
        counters(
            &mut encoder,
            ("guard_shadow_matches", help),
            &guards,
            |it| &it.watched,
        )
    }
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    guards: &BTreeMap<Box<str>, Arc<GuardCounters>>,
    counter: fn(&GuardCounters) -> &AtomicU64,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (guard, counts) in guards {
        let count = counter(counts).load(Relaxed);
        if count > 0 {
            let labels = [("guard", &**guard)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// The status of the lists of guards, read at scrape time.
#[derive(Debug)]
pub struct Lists<S> {
    limiter: Limiter<S>,
}

impl<S> Lists<S> {
    /// Creates the collector of the lists of `limiter`.
    pub fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }
}

impl<S: Store + Debug + 'static> Collector for Lists<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let lists = self.limiter.lists();
        // Omit the series if there are no guards: they would be noise.
        if lists.is_empty() {
            return Ok(());
        }
        let help = "1 if a guard is enabled, else 0.";
        let mut family =
            encoder.encode_descriptor("guard_enabled", help, None, MetricType::Gauge)?;
        gauges(&mut family, &lists, |list| Some(i64::from(list.enabled)))?;
        let help = "Members of a guard's list.";
        let mut family =
            encoder.encode_descriptor("list_members", help, None, MetricType::Gauge)?;
        gauges(&mut family, &lists, |list| Some(whole(list.members)))?;
        let help = "Invalid members of a guard's list, which are skipped.";
        let mut family =
            encoder.encode_descriptor("list_skipped", help, None, MetricType::Gauge)?;
        gauges(&mut family, &lists, |list| Some(whole(list.skipped)))?;
        // The list of a disabled guard is not refreshed, so its age does not matter.
        let help = "Time since the list was last read; absent if it never was, and while the \
            guard is disabled.";
        let unit = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor("list_age", help, unit, MetricType::Gauge)?;
        let age = |list: &ListStatus| list.age.filter(|_| list.enabled);
        gauges(&mut family, &lists, |list| {
            Some(whole(age(list)?.as_secs()))
        })?;
        let help = "1 if the last read of the list failed, else 0; absent while the guard is \
            disabled.";
        let mut family = encoder.encode_descriptor("list_stale", help, None, MetricType::Gauge)?;
        gauges(&mut family, &lists, |list| {
            let is_stale = list.failing_for.is_some();
            list.enabled.then_some(i64::from(is_stale))
        })?;
        let help = "Failed reads of the list.";
        let mut family =
            encoder.encode_descriptor("list_failures", help, None, MetricType::Counter)?;
        for list in &lists {
            let labels = [("guard", list.guard.as_str())];
            ConstCounter::new(list.failures).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauges(
    family: &mut MetricEncoder<'_>,
    lists: &[ListStatus],
    value: impl Fn(&ListStatus) -> Option<i64>,
) -> fmt::Result {
    for list in lists {
        if let Some(value) = value(list) {
            let labels = [("guard", list.guard.as_str())];
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
