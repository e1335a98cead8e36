//! What the gateway does, counted by names of the configuration.
//!
//! Everything is laid out when a configuration comes into force. Whoever serves a route holds its
//! [`RouteMetrics`], and counts without looking for anything.
//!
//! | module | what it is |
//! |---|---|
//! | `route` | what is counted of one route |
//! | `statuses` | answers by their full status |
//! | `outcome` | what came of requests to upstreams, and of messages |
//! | `page` | how it is written down |

mod outcome;
mod page;
mod route;
mod statuses;

#[cfg(test)]
mod tests;

pub(crate) use outcome::{MessageOutcome, UpstreamOutcome};
pub(crate) use route::{RouteLabels, RouteMetrics};

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use statuses::Statuses;
use std::sync::Arc;

/// What the gateway does. Nothing of it is shown before there are routes.
#[derive(Debug, Default)]
pub(crate) struct GatewayMetrics {
    /// In the order of the configuration. Locked by whoever shows or replaces them, never to count.
    routes: RwLock<Vec<Arc<RouteMetrics>>>,
    unmatched: Statuses,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl GatewayMetrics {
    /// Lays out the metrics of these routes, in their order, and shows them from now on. Counters of
    /// names that were there before go on; those of names that are not are no longer shown.
    pub(crate) fn lay_out(&self, routes: &[RouteLabels<'_>]) -> Vec<Arc<RouteMetrics>> {
        let mut shown = self.routes.write();
        let lay_out = |labels: &RouteLabels<'_>| {
            let before = shown.iter().find(|it| *it.id == *labels.id);
            Arc::new(RouteMetrics::new(labels, before.map(|it| &**it)))
        };
        let laid_out: Vec<_> = routes.iter().map(lay_out).collect();
        shown.clone_from(&laid_out);
        laid_out
    }

    /// Every upstream of a route that is on: its route, its name, whether it is given requests, and how many are under way.
    pub(crate) fn upstreams(&self) -> Vec<(String, String, bool, u64)> {
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

    /// Counts the answer to a request that no route is for.
    pub(crate) fn count_unmatched(&self, status: u16) {
        self.unmatched.count(status);
    }

    /// Counts a request that was refused because two could read it in two ways, or nobody in any: one
    /// of a few phrases says why.
    pub(crate) fn count_refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }
}
