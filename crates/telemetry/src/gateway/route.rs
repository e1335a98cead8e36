//! Counters of one route.

use super::outcome::{MessageOutcome, UpstreamOutcome, UpstreamOutcomeCounters};
use super::statuses::Statuses;
use crate::durations::Durations;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_proxy::upstream_health::UpstreamHealth;

/// The names of a route, its patterns and its upstreams.
#[derive(Clone, Copy, Debug)]
pub struct RouteLabels<'a> {
    /// The route's id.
    pub id: &'a str,
    /// True if the route is enabled.
    pub is_on: bool,
    /// The pattern of each condition, in their order.
    pub patterns: &'a [String],
    /// The upstreams, in their order, with names and health.
    pub upstreams: &'a [Arc<UpstreamHealth>],
}

/// The counters of one route, by index in configuration order. Counting is one addition.
#[derive(Debug)]
pub struct RouteMetrics {
    /// The id of the route.
    pub id: Box<str>,
    /// True if the route is served.
    pub is_on: bool,
    by_pattern: Box<[Arc<Statuses>]>,
    by_upstream: Box<[Arc<UpstreamOutcomeCounters>]>,
    /// The same counters once per name, since several conditions may have the same pattern, and several
    /// upstreams the same host.
    pub patterns: Vec<PatternMetrics>,
    /// The metrics of its upstreams.
    pub upstreams: Vec<UpstreamMetrics>,
    /// Its counters.
    pub counts: Arc<RouteCounters>,
}

#[derive(Debug)]
pub struct PatternMetrics {
    pub(super) name: Box<str>,
    pub(super) statuses: Arc<Statuses>,
}

#[derive(Debug)]
pub struct UpstreamMetrics {
    pub(super) name: Box<str>,
    pub(super) outcomes: Arc<UpstreamOutcomeCounters>,
    pub(super) standings: Vec<Arc<UpstreamHealth>>,
}

/// The counters that a route has one of.
#[derive(Debug, Default)]
pub struct RouteCounters {
    pub(super) retries: AtomicU64,
    pub(super) refunds: AtomicU64,
    pub(super) all_out: AtomicU64,
    pub(super) tunnels: AtomicU64,
    pub(super) messages: UpstreamOutcomeCounters,
    pub(super) durations: Durations,
}

/// A tunnel that is counted as open until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct OpenTunnel(Arc<RouteCounters>);

impl RouteMetrics {
    /// Creates the counters of a route. Counters that `before` has under the same names continue, also for
    /// requests in flight.
    pub fn new(labels: &RouteLabels<'_>, before: Option<&Self>) -> Self {
        let mut metrics = Self {
            id: labels.id.into(),
            is_on: labels.is_on,
            by_pattern: Box::default(),
            by_upstream: Box::default(),
            patterns: Vec::new(),
            upstreams: Vec::new(),
            counts: before.map_or_else(Arc::default, |before| Arc::clone(&before.counts)),
        };
        let patterns = labels.patterns.iter();
        metrics.by_pattern = patterns.map(|it| metrics.pattern(it, before)).collect();
        let upstreams = labels.upstreams.iter();
        metrics.by_upstream = upstreams.map(|it| metrics.upstream(it, before)).collect();
        metrics
    }

    fn pattern(&mut self, name: &str, before: Option<&Self>) -> Arc<Statuses> {
        let mut known = self
            .patterns
            .iter()
            .chain(before.iter().flat_map(|it| &it.patterns));
        let known = known.find(|it| *it.name == *name);
        let statuses = known.map_or_else(Arc::default, |it| Arc::clone(&it.statuses));
        if !self.patterns.iter().any(|it| *it.name == *name) {
            self.patterns.push(PatternMetrics {
                name: name.into(),
                statuses: Arc::clone(&statuses),
            });
        }
        statuses
    }

    fn upstream(
        &mut self,
        standing: &Arc<UpstreamHealth>,
        before: Option<&Self>,
    ) -> Arc<UpstreamOutcomeCounters> {
        let name = standing.upstream();
        let mut here = self.upstreams.iter_mut();
        if let Some(known) = here.find(|it| *it.name == *name) {
            known.standings.push(Arc::clone(standing));
            return Arc::clone(&known.outcomes);
        }
        let mut before = before.iter().flat_map(|it| &it.upstreams);
        let before = before.find(|it| *it.name == *name);
        let outcomes = before.map_or_else(Arc::default, |it| Arc::clone(&it.outcomes));
        self.upstreams.push(UpstreamMetrics {
            name: name.into(),
            outcomes: Arc::clone(&outcomes),
            standings: vec![Arc::clone(standing)],
        });
        outcomes
    }

    /// Counts the response to a request that matched the condition `pattern`, and the time to its headers.
    #[inline]
    pub fn count(&self, pattern: usize, status: u16, took: Duration) {
        self.counts.durations.observe(took);
        if let Some(statuses) = self.by_pattern.get(pattern) {
            statuses.count(status);
        }
    }

    /// Counts the outcome of a request to `upstream`.
    #[inline]
    pub fn count_upstream(&self, upstream: usize, outcome: UpstreamOutcome) {
        if let Some(outcomes) = self.by_upstream.get(upstream) {
            outcomes.count(outcome);
        }
    }

    /// Counts a retry.
    pub fn count_retry(&self) {
        self.counts.retries.fetch_add(1, Relaxed);
    }

    /// Counts a request whose cost was refunded.
    pub fn count_refund(&self) {
        self.counts.refunds.fetch_add(1, Relaxed);
    }

    /// Counts an upstream chosen although none was usable: see `UpstreamLease::is_desperate`.
    pub fn count_all_ejected(&self) {
        self.counts.all_out.fetch_add(1, Relaxed);
    }

    /// Counts the outcome of a message.
    #[inline]
    pub fn count_message(&self, outcome: MessageOutcome) {
        self.counts.messages.count(outcome);
    }

    /// Counts a tunnel as open until the returned value is dropped.
    pub fn open_tunnel(&self) -> OpenTunnel {
        self.counts.tunnels.fetch_add(1, Relaxed);
        OpenTunnel(Arc::clone(&self.counts))
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Relaxed);
    }
}
