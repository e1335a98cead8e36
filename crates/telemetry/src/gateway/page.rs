//! Encoding of the gateway's metrics.

use super::GatewayMetrics;
use super::outcome::{MessageOutcome, UpstreamOutcome};
use super::route::{RouteCounters, RouteMetrics, UpstreamMetrics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type RouteMetricsList = [Arc<RouteMetrics>];

/// A gauge's name, its help text, and the function that reads it.
type UpstreamGauge = (
    &'static str,
    &'static str,
    fn(UpstreamRow<'_>) -> Option<i64>,
);
type RouteCounter = (&'static str, &'static str, fn(&RouteCounters) -> &AtomicU64);

impl Collector for GatewayMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Copy the list, so that a slow scrape does not block a reload.
        let routes = self.routes.read().clone();
        if routes.is_empty() {
            return Ok(());
        }
        self.encode_requests(&mut encoder, &routes)?;
        encode_durations(&mut encoder, &routes)?;
        encode_outcomes(&mut encoder, &routes)?;
        encode_upstreams(&mut encoder, &routes)?;
        encode_counts(&mut encoder, &routes)?;
        encode_enabled(&mut encoder, &routes)?;
        encode_messages(&mut encoder, &routes)?;
        let help = "Ambiguous or malformed requests rejected by the gateway, by reason.";
        let refused = encoder.encode_descriptor(
            "gateway_rejected",
            help,
            None,
            self.refused.metric_type(),
        )?;
        self.refused.encode(refused)
    }
}

impl GatewayMetrics {
    fn encode_requests(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        routes: &RouteMetricsList,
    ) -> fmt::Result {
        let help = "Requests by route, configured path and response status; route and path are \
            empty if no route matched.";
        let mut encoder =
            encoder.encode_descriptor("gateway_requests", help, None, MetricType::Counter)?;
        for route in routes {
            for pattern in &route.patterns {
                let names = (&*route.id, &*pattern.name);
                pattern.statuses.encode(&mut encoder, names)?;
            }
        }
        self.unmatched.encode(&mut encoder, ("", ""))
    }
}

fn encode_durations(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let help =
        "Time from the request headers to the response headers, by route, including all waits.";
    let (unit, kind) = (Some(&Unit::Seconds), MetricType::Histogram);
    let mut family = encoder.encode_descriptor("gateway_request_duration", help, unit, kind)?;
    for route in routes {
        let labels = [("route", &*route.id)];
        let durations = &route.counts.durations;
        durations.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_outcomes(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let help = "Requests to upstreams by outcome; cut_short counts truncated responses, in \
        addition to answered.";
    let mut encoder =
        encoder.encode_descriptor("gateway_upstream_requests", help, None, MetricType::Counter)?;
    for (labels, (_, upstream)) in upstreams(routes) {
        let outcomes = &upstream.outcomes;
        outcomes.encode::<UpstreamOutcome, 2>(&mut encoder, labels)?;
    }
    Ok(())
}

/// Encodes the present state of each upstream.
fn encode_upstreams(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let gauges: [UpstreamGauge; 2] = [
        (
            "gateway_upstream_healthy",
            "1 if an upstream is neither unhealthy nor ejected; absent if its route is disabled.",
            |(route, upstream)| {
                let is_in = upstream.standings.iter().all(|it| it.is_in());
                route.is_on.then_some(i64::from(is_in))
            },
        ),
        (
            "gateway_upstream_in_flight",
            "Requests in flight to an upstream.",
            |(_, upstream)| {
                let each = upstream.standings.iter();
                Some(each.map(|it| i64::from(it.in_flight())).sum())
            },
        ),
    ];
    for (name, help, value) in gauges {
        let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, upstream) in upstreams(routes) {
            if let Some(value) = value(upstream) {
                ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
            }
        }
    }
    let help = "Ejections of an upstream because of failed requests.";
    let name = "gateway_upstream_ejections";
    let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, (_, upstream)) in upstreams(routes) {
        let count: u64 = upstream.standings.iter().map(|it| it.ejections()).sum();
        ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

type UpstreamLabels<'a> = [(&'static str, &'a str); 2];

/// An upstream with its route.
type UpstreamRow<'a> = (&'a RouteMetrics, &'a UpstreamMetrics);

fn upstreams(
    routes: &RouteMetricsList,
) -> impl Iterator<Item = (UpstreamLabels<'_>, UpstreamRow<'_>)> {
    routes.iter().flat_map(|route| {
        route.upstreams.iter().map(|upstream| {
            let labels = [("route", &*route.id), ("upstream", &*upstream.name)];
            (labels, (&**route, upstream))
        })
    })
}

fn encode_counts(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let counters: [RouteCounter; 3] = [
        (
            "gateway_retries",
            "Requests retried on another upstream or connection.",
            |counts| &counts.retries,
        ),
        (
            "gateway_refunds",
            "Requests refunded because they reached no upstream.",
            |counts| &counts.refunds,
        ),
        (
            "gateway_no_healthy_upstream",
            "Requests sent to an unhealthy upstream because the route has no healthy one.",
            |counts| &counts.all_out,
        ),
    ];
    for (name, help, counter) in counters {
        let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for route in routes {
            let count = ConstCounter::new(counter(&route.counts).load(Relaxed));
            count.encode(encoder.encode_family(&[("route", &*route.id)])?)?;
        }
    }
    let help = "Open tunnels: WebSockets and other upgrades.";
    let mut encoder =
        encoder.encode_descriptor("gateway_tunnels", help, None, MetricType::Gauge)?;
    for route in routes {
        let open = route.counts.tunnels.load(Relaxed);
        let open = ConstGauge::new(i64::try_from(open).unwrap_or(i64::MAX));
        open.encode(encoder.encode_family(&[("route", &*route.id)])?)?;
    }
    Ok(())
}

fn encode_enabled(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let help = "1 if a route is enabled, else 0.";
    let name = "gateway_route_enabled";
    let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for route in routes {
        let is_on = ConstGauge::new(i64::from(route.is_on));
        is_on.encode(encoder.encode_family(&[("route", &*route.id)])?)?;
    }
    Ok(())
}

fn encode_messages(encoder: &mut DescriptorEncoder<'_>, routes: &RouteMetricsList) -> fmt::Result {
    let help = "WebSocket messages of clients checked against a limit, by outcome.";
    let mut encoder =
        encoder.encode_descriptor("gateway_messages", help, None, MetricType::Counter)?;
    for route in routes {
        let messages = &route.counts.messages;
        messages.encode::<MessageOutcome, 1>(&mut encoder, [("route", &*route.id)])?;
    }
    Ok(())
}
