//! Metrics of the gateway, by names of the configuration.
//!
//! All counters are created when a configuration takes effect. The code that serves a route holds its
//! [`RouteMetrics`] and counts without a lookup.
//!
//! | module | what it is |
//! |---|---|
//! | `route` | the counters of one route |
//! | `statuses` | responses by their full status |
//! | `outcome` | outcomes of upstream requests and of messages |
//! | `page` | encoding |

mod outcome;
mod page;
mod route;
mod statuses;

#[cfg(test)]
mod tests;

pub use outcome::{MessageOutcome, UpstreamOutcome};
pub use route::{RouteLabels, RouteMetrics};

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use statuses::Statuses;
use std::sync::Arc;

/// The metrics of the gateway. None are shown before there are routes.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    /// The routes in configuration order. Locked to show or replace them, never to count.
    routes: RwLock<Vec<Arc<RouteMetrics>>>,
    unmatched: Statuses,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl GatewayMetrics {
    /// Creates the metrics of these routes, in their order, and shows them from now on. Counters of names
    /// that remain keep their values; those of removed names are no longer shown.
    pub fn lay_out(&self, routes: &[RouteLabels<'_>]) -> Vec<Arc<RouteMetrics>> {
        let mut shown = self.routes.write();
        let lay_out = |labels: &RouteLabels<'_>| {
            let before = shown.iter().find(|it| *it.id == *labels.id);
            Arc::new(RouteMetrics::new(labels, before.map(|it| &**it)))
        };
        let laid_out: Vec<_> = routes.iter().map(lay_out).collect();
        shown.clone_from(&laid_out);
        laid_out
    }

    /// Returns every upstream of an enabled route: route, name, true if it gets requests, and the number of
    /// requests in flight.
    pub fn upstreams(&self) -> Vec<(String, String, bool, u64)> {
        let routes = self.routes.read().clone();
        let each = routes.iter().filter(|it| it.is_on).flat_map(|route| {
            route.upstreams.iter().map(|upstream| {
                let standings = &upstream.standings;
                let in_flight = standings.iter().map(|it| u64::from(it.in_flight())).sum();
                let is_in = standings.iter().all(|it| it.is_in());
                let (route, name) = (route.id.to_string(), upstream.name.to_string());
                (route, name, is_in, in_flight)
            })
        });
        each.collect()
    }

    /// Counts the response to a request that no route matches.
    pub fn count_unmatched(&self, status: u16) {
        self.unmatched.count(status);
    }

    /// Returns the counters of requests that were rejected because they are ambiguous or malformed, by
    /// reason, which is one of a few phrases.
    pub fn rejected(&self) -> &Family<[(&'static str, &'static str); 1], Counter> {
        &self.refused
    }
}
