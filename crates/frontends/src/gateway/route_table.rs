//! A snapshot of all routes, with the rules by which they are decided.

use super::active_route::{ActiveRoute, fleet};
use http::Request;
use std::sync::Arc;
use tidegate::Rules;
use tidegate_http::question::RequestHeadRef;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::{Paths, Routes};
use tidegate_proxy::fleet::Fleet;
use tidegate_telemetry::gateway::{GatewayMetrics, RouteLabels};
use tidegate_telemetry::traces::{AttributeValue, RequestTrace};

/// One version of the routes. Requests in flight keep theirs.
#[derive(Debug)]
pub struct RouteTable {
    routes: Routes,
    /// Indexed like the routes.
    lanes: Vec<Arc<ActiveRoute>>,
    /// The rules of the same configuration: a request is never decided by those of another.
    pub(super) rules: Arc<Rules>,
}

/// The route that a request matches.
#[derive(Debug)]
pub(super) struct RouteMatch<'a> {
    pub(super) lane: &'a Arc<ActiveRoute>,
    /// The index of the route's pattern that matched.
    pub(super) pattern: usize,
}

impl RouteMatch<'_> {
    /// Adds the route to a trace.
    pub(super) fn describe<B>(&self, request: &Request<B>, trace: &RequestTrace) {
        let route = &self.lane.route;
        let path = || route.patterns.get(self.pattern).map_or("", String::as_str);
        trace.name(|| format!("{} {}", request.method(), path()));
        trace.note(|| {
            [
                ("http.request.method", request.method().as_str().into()),
                ("http.route", path().into()),
                ("tidegate.route", route.name.as_str().into()),
                ("tidegate.listener", AttributeValue::Word("gateway")),
            ]
        });
    }
}

/// Validated routes that are not in use yet.
#[derive(Debug)]
pub struct PreparedRoutes {
    routes: Routes,
    /// Indexed like the routes.
    fleets: Vec<Fleet>,
}

impl PreparedRoutes {
    /// Prepares `routes`. Upstreams that are in `before` stay unchanged. Fails if the TLS settings of one
    /// are invalid.
    pub(super) fn new(
        routes: Routes,
        before: Option<&RouteTable>,
        tasks: &Arc<Tasks>,
    ) -> Result<Self, String> {
        let fleets: Result<Vec<_>, String> = routes
            .iter()
            .map(|route| {
                let before = before.and_then(|table| table.named(&route.name));
                fleet(route, before, tasks)
            })
            .collect();
        Ok(Self {
            fleets: fleets?,
            routes,
        })
    }
}

impl RouteTable {
    /// Returns the table of the prepared routes, which `metrics` shows from now on. `rules` are those of
    /// the same configuration.
    pub(super) fn new(
        prepared: PreparedRoutes,
        rules: Arc<Rules>,
        metrics: &GatewayMetrics,
    ) -> Self {
        let PreparedRoutes { routes, fleets } = prepared;
        let labels = routes
            .iter()
            .zip(&fleets)
            .map(|(route, fleet)| RouteLabels {
                id: &route.name,
                is_on: route.enabled,
                patterns: &route.patterns,
                upstreams: fleet.balancer.upstreams(),
            });
        let metrics = metrics.lay_out(&labels.collect::<Vec<_>>());
        let lanes = routes.iter().zip(fleets).zip(metrics);
        Self {
            lanes: lanes
                .map(|((route, fleet), metrics)| Arc::new(ActiveRoute::new(route, fleet, metrics)))
                .collect(),
            routes,
            rules,
        }
    }

    fn named(&self, id: &str) -> Option<&ActiveRoute> {
        let mut lanes = self.lanes.iter();
        lanes.find(|lane| lane.route.name == id).map(|lane| &**lane)
    }

    /// Returns the route that a request matches, if there is one.
    pub(super) fn find<B>(&self, request: &Request<B>) -> Option<RouteMatch<'_>> {
        let head = RequestHeadRef {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            peer: None,
        };
        let host = if self.routes.reads_host() {
            head.host()
        } else {
            None
        };
        let target = request.uri().path_and_query().map_or("/", |it| it.as_str());
        let found = self.routes.find(request.method().as_str(), host, target)?;
        Some(RouteMatch {
            lane: self.lanes.get(found.index)?,
            pattern: found.pattern,
        })
    }

    /// Returns how paths of requests are interpreted.
    pub(super) fn paths(&self) -> Paths {
        self.routes.paths()
    }

    pub(super) fn lanes(&self) -> &[Arc<ActiveRoute>] {
        &self.lanes
    }
}
