//! One route, ready to forward requests.

use super::grpc;
use http::{Request, StatusCode};
use std::io::ErrorKind;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::{Route, Upstream, UpstreamScheme};
use tidegate_proxy::balance::Balancer;
use tidegate_proxy::error::UpstreamError;
use tidegate_proxy::fleet::{AttemptObserver, Fleet};
use tidegate_proxy::pace::LeastRate;
use tidegate_proxy::rewrite::HeaderChanges;
use tidegate_proxy::target::UpstreamTarget;
use tidegate_proxy::upstream_health::{UpstreamHealth, UpstreamLease};
use tidegate_telemetry::gateway::{self, RouteMetrics};
use tidegate_telemetry::stopwatch::Stopwatch;
use tidegate_telemetry::traces::RequestTrace;

/// The status to count if the client disconnects before there is a response. No server sends it.
const CLIENT_GONE: u16 = 499;

/// One route: its upstreams, and its header changes.
#[derive(Debug)]
pub(crate) struct ActiveRoute {
    pub(super) route: Arc<Route>,
    pub(super) fleet: Fleet,
    pub(super) request_changes: HeaderChanges,
    pub(super) response_changes: Arc<HeaderChanges>,
    pub(super) metrics: Arc<RouteMetrics>,
    /// Fields can be added to requests as raw lines: the route changes no headers afterwards, and all its
    /// upstreams speak HTTP/1.
    pub(super) takes_lines: bool,
}

impl ActiveRoute {
    /// Returns the lane of `route`, with the upstreams of `fleet`.
    pub(super) fn new(route: &Arc<Route>, fleet: Fleet, metrics: Arc<RouteMetrics>) -> Self {
        let request_changes = HeaderChanges::new(&route.request_headers);
        let mut upstreams = route.upstreams.iter();
        let are_plain = upstreams.all(|upstream| upstream.scheme == UpstreamScheme::Http);
        Self {
            fleet,
            takes_lines: are_plain && request_changes.is_empty(),
            request_changes,
            response_changes: Arc::new(HeaderChanges::new(&route.response_headers)),
            metrics,
            route: Arc::clone(route),
        }
    }

    /// Returns the minimum rate at which a request's body must arrive, if the route has one. A gRPC
    /// stream may be quiet for any time over HTTP/2, where it holds no connection to the upstream.
    pub(super) fn least_rate<B>(&self, request: &Request<B>) -> Option<LeastRate> {
        Some(LeastRate {
            bytes: self.route.min_upload_rate?,
            grace: self.route.timeouts.upload_grace,
            exempts_http2: grpc::flavour(request).is_some(),
        })
    }
}

/// Returns the upstreams of `route`. Those that were in `before` keep their connections. Fails if the TLS
/// settings of one are invalid.
pub(super) fn fleet(
    route: &Route,
    before: Option<&ActiveRoute>,
    tasks: &Arc<Tasks>,
) -> Result<Fleet, String> {
    let targets: Result<Vec<_>, String> = route
        .upstreams
        .iter()
        .map(|upstream| target(route, upstream, before, tasks))
        .collect();
    let targets = targets?;
    let weighted = targets
        .iter()
        .zip(&route.upstreams)
        .map(|(it, upstream)| (Arc::clone(&it.standing), upstream.weight));
    Ok(Fleet {
        balancer: Balancer::new(weighted, route.balance),
        targets,
        retries: route.retries,
        host: route.host,
    })
}

fn target(
    route: &Route,
    upstream: &Upstream,
    before: Option<&ActiveRoute>,
    tasks: &Arc<Tasks>,
) -> Result<Arc<UpstreamTarget>, String> {
    let known = before.and_then(|lane| {
        let mut targets = lane.fleet.targets.iter();
        targets.find(|it| it.is(upstream, route))
    });
    let standing = match known {
        Some(known) => {
            let is_checked = route.enabled && route.health.is_some();
            known.standing.continued(route.eject, is_checked)
        }
        None => {
            let label = format!("{}:{}", upstream.host, upstream.port);
            Arc::new(UpstreamHealth::new(&route.name, &label, route.eject))
        }
    };
    if let Some(known) = known
        && Arc::ptr_eq(&known.standing, &standing)
    {
        return Ok(Arc::clone(known));
    }
    let target = UpstreamTarget::new(upstream, route, standing, Arc::clone(tasks));
    let target =
        target.map_err(|why| format!("route `{}`, upstream {upstream}: {why}", route.name));
    Ok(Arc::new(target?))
}

impl AttemptObserver for ActiveRoute {
    #[inline]
    fn answered(&self, turn: &UpstreamLease) {
        let outcome = gateway::UpstreamOutcome::Answered;
        self.metrics.count_upstream(turn.index(), outcome);
        if turn.is_desperate() {
            self.metrics.count_all_ejected();
        }
    }

    fn failed(&self, turn: &UpstreamLease, trouble: &UpstreamError) {
        let outcome = match trouble {
            UpstreamError::Unreachable(error) if error.kind() == ErrorKind::ConnectionRefused => {
                gateway::UpstreamOutcome::RefusedConnection
            }
            UpstreamError::Unreachable(_) => gateway::UpstreamOutcome::Unreachable,
            UpstreamError::ConnectTimeout => gateway::UpstreamOutcome::ConnectTimeout,
            UpstreamError::Full => gateway::UpstreamOutcome::ConnectionsFull,
            UpstreamError::ResponseTimeout => gateway::UpstreamOutcome::ResponseTimeout,
            UpstreamError::Broken(_) | UpstreamError::Malformed(_) => {
                gateway::UpstreamOutcome::Broken
            }
            UpstreamError::Upload(_) => gateway::UpstreamOutcome::UploadFailed,
        };
        self.metrics.count_upstream(turn.index(), outcome);
        if turn.is_desperate() {
            self.metrics.count_all_ejected();
        }
    }

    fn abandoned(&self, upstream: usize) {
        let outcome = gateway::UpstreamOutcome::Abandoned;
        self.metrics.count_upstream(upstream, outcome);
    }

    fn tries_again(&self) {
        self.metrics.count_retry();
    }
}

/// A request that is counted when its response is known, or when its client has disconnected.
#[derive(Debug)]
pub(super) struct RouteRecord<'a> {
    metrics: &'a RouteMetrics,
    pattern: usize,
    status: u16,
    watch: Stopwatch,
    trace: RequestTrace,
}

impl<'a> RouteRecord<'a> {
    /// Begins the record of a request that matched `pattern` of `active_route`.
    pub(super) fn new(lane: &'a ActiveRoute, pattern: usize, trace: RequestTrace) -> Self {
        Self {
            metrics: &lane.metrics,
            pattern,
            status: CLIENT_GONE,
            watch: Stopwatch::start(),
            trace,
        }
    }

    /// Returns the request's trace.
    pub(super) fn trace(&self) -> &RequestTrace {
        &self.trace
    }

    /// Records the status of the response.
    pub(super) fn end(mut self, status: StatusCode) {
        self.status = status.as_u16();
        self.trace.answered(self.status);
    }
}

impl Drop for RouteRecord<'_> {
    fn drop(&mut self) {
        let took = self.watch.elapsed();
        self.metrics.count(self.pattern, self.status, took);
    }
}
