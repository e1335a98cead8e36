//! All upstreams of a route, with retries of failed requests.
//!
//! A request is sent again only if that is safe: the upstream received no part of it, or it is
//! idempotent and has no body. Each upstream is tried at most once per request, and `retries` bounds
//! the attempts. If the client disconnects, the current attempt is cancelled and reported as abandoned,
//! so that it does not count as a failure of the upstream.

use super::balance::{Balancer, UpstreamSet};
use super::connection_kind::ConnectionKind;
use super::error::UpstreamError;
use super::outgoing::OutgoingRequest;
use super::target::{FailedRequest, UpstreamResponse, UpstreamTarget};
use super::upstream_health::UpstreamLease;
use http::header::HOST;
use http::uri::{PathAndQuery, Uri};
use std::sync::Arc;
use tidegate_policy::route::HostHeader;
use tracing::debug;

/// The upstreams of a route.
#[derive(Debug)]
pub struct Fleet {
    /// The upstreams.
    pub targets: Vec<Arc<UpstreamTarget>>,
    /// Chooses among them.
    pub balancer: Balancer,
    /// The maximum number of retries of a request, if retrying is safe.
    pub retries: u8,
    /// The `Host` header that upstreams get.
    pub host: HostHeader,
}

/// The failure of a request that no upstream answered.
#[derive(Debug)]
pub struct NoUpstreamAnswer {
    /// The last error.
    pub trouble: UpstreamError,
    /// True if no upstream received any part of the request.
    pub is_unreached: bool,
}

/// An attempt that is reported as abandoned if it is dropped before its end.
struct ObservedAttempt<'a, O: AttemptObserver> {
    observer: &'a O,
    upstream: usize,
    has_ended: bool,
}

impl<'a, O: AttemptObserver> ObservedAttempt<'a, O> {
    fn begin(observer: &'a O, turn: &UpstreamLease) -> Self {
        Self {
            observer,
            upstream: turn.index(),
            has_ended: false,
        }
    }

    fn end(mut self) {
        self.has_ended = true;
    }
}

impl<O: AttemptObserver> Drop for ObservedAttempt<'_, O> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.observer.abandoned(self.upstream);
        }
    }
}

/// An observer of every attempt and its outcome.
pub trait AttemptObserver {
    /// Called when an upstream answered.
    fn answered(&self, turn: &UpstreamLease);
    /// Called when an upstream did not answer.
    fn failed(&self, turn: &UpstreamLease, trouble: &UpstreamError);
    /// Called when an attempt was cancelled before its end.
    fn abandoned(&self, upstream: usize);
    /// Called before a retry.
    fn tries_again(&self);
}

impl Fleet {
    /// Sends a request to one of the upstreams, and to another if that is safe and the first does not answer.
    /// The target of `request` is a path, as seen by an upstream without a path prefix.
    ///
    /// # Errors
    ///
    /// The last error, once no upstream is left, the retries are exhausted, or the request may not be sent again.
    pub async fn forward(
        &self,
        mut request: Box<OutgoingRequest>,
        manner: ConnectionKind,
        observer: &impl AttemptObserver,
    ) -> Result<(UpstreamResponse, &Arc<UpstreamTarget>, UpstreamLease), NoUpstreamAnswer> {
        let mut path = None;
        let fills_host = self.fills_host(&request);
        let mut is_unreached = true;
        let mut tried = UpstreamSet::default();
        let mut turn = self.balancer.pick(tried);
        let mut left = self.retries;
        loop {
            let Some((target, mut now)) = turn.take().and_then(|it| self.target_of(it)) else {
                let trouble = UpstreamError::no_upstream_left();
                return Err(NoUpstreamAnswer {
                    trouble,
                    is_unreached,
                });
            };
            address(&mut request, target, fills_host, &mut path);
            let attempt = ObservedAttempt::begin(observer, &now);
            let exchanged = target.exchange(request, manner, left > 0).await;
            attempt.end();
            let failed = match exchanged {
                Ok(answer) => {
                    now.succeeded();
                    observer.answered(&now);
                    return Ok((answer, target, now));
                }
                Err(failed) => failed,
            };
            let FailedRequest {
                trouble,
                request: back,
                is_unreached: is_unseen,
            } = failed;
            debug!(event = "upstream_request_failed", upstream = %target.upstream, error = %trouble, "upstream request failed");
            observer.failed(&now, &trouble);
            if trouble.is_the_upstreams() {
                now.failed();
            }
            is_unreached &= is_unseen;
            tried.add(now.index());
            drop(now);
            if left > 0 && back.is_some() {
                turn = self.balancer.pick(tried);
            }
            match (back, &turn) {
                (Some(back), Some(_)) => request = back,
                _ => {
                    return Err(NoUpstreamAnswer {
                        trouble,
                        is_unreached,
                    });
                }
            }
            left = left.saturating_sub(1);
            observer.tries_again();
        }
    }

    /// Returns true if every attempt names its own upstream: HTTP/1.0 clients need not send `Host`, and
    /// HTTP/1.1 requires it.
    fn fills_host(&self, request: &OutgoingRequest) -> bool {
        self.host == HostHeader::Upstream || !request.has_host()
    }

    /// Returns the target of this lease.
    fn target_of(&self, turn: UpstreamLease) -> Option<(&Arc<UpstreamTarget>, UpstreamLease)> {
        Some((self.targets.get(turn.index())?, turn))
    }
}

/// Sets the target and the `Host` of a request for this upstream. `path` keeps the original path if the
/// upstream has a prefix.
fn address(
    request: &mut OutgoingRequest,
    target: &UpstreamTarget,
    fills_host: bool,
    path: &mut Option<PathAndQuery>,
) {
    let prefix = &target.upstream.prefix;
    if !prefix.is_empty() || path.is_some() {
        let own = || request.uri().path_and_query().cloned();
        let path = path.get_or_insert_with(|| own().unwrap_or(PathAndQuery::from_static("/")));
        // `*` asks about the server itself (RFC 9112, 3.2.4), so it has no path to prefix.
        let whole = if *path == "*" {
            path.clone()
        } else {
            PathAndQuery::try_from(format!("{prefix}{path}")).unwrap_or(path.clone())
        };
        *request.uri_mut() = Uri::from(whole);
    }
    if fills_host {
        let authority = target.authority.clone();
        request.headers_mut().insert(HOST, authority);
    }
}
