//! One upstream: its connections, settings and health.

use super::dial::Dial;
use super::hop;
use super::http1::{Http1Fault, ReadTerms, UpstreamHttp1};
use super::multiplex::{self, Multiplex};
use super::outgoing::Outgoing;
use super::places::{UpstreamPermit, UpstreamPermits};
use super::pool::Pool;
use super::relayed::{BodySource, RelayedBody};
use super::spare::Spare;
use super::standing::{UpstreamHealth, UpstreamLease};
use super::stream::UpstreamStream;
use super::trouble::UpstreamError;
use super::upload::{Upload, UploadProgress};
use crate::tasks::Tasks;
use bytes::Bytes;
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::route::{
    Connections, Http2Use, Route, Timeouts, Upstream, UpstreamScheme, UpstreamTls,
};
use tokio::time::timeout;

/// One upstream of one route.
#[derive(Debug)]
pub(crate) struct UpstreamTarget {
    /// The upstream's configuration.
    pub(crate) upstream: Upstream,
    tls: UpstreamTls,
    timeouts: Timeouts,
    /// The value of `Host` and of HTTP/2's `:authority`.
    pub(crate) authority: HeaderValue,
    pub(crate) standing: Arc<UpstreamHealth>,
    dial: Dial,
    connections: Connections,
    /// The permits for connections in use.
    places: UpstreamPermits,
    /// Idle HTTP/1 connections.
    pub(super) pool: Pool,
    /// The HTTP/2 connection.
    multiplex: Multiplex,
    /// Tasks that run alongside the requests.
    tasks: Arc<Tasks>,
}

/// A request that got no response.
#[derive(Debug)]
pub(crate) struct FailedRequest {
    pub(crate) trouble: UpstreamError,
    /// The request, if it may be sent again.
    pub(crate) request: Option<Box<Outgoing>>,
    /// True if the upstream received no part of the request.
    pub(crate) is_unreached: bool,
}

impl FailedRequest {
    /// Returns the failure of a request of which the upstream has received nothing.
    fn unsent(trouble: UpstreamError, request: Box<Outgoing>) -> Self {
        Self {
            trouble,
            request: Some(request),
            is_unreached: true,
        }
    }

    /// Returns the failure of a request that an upstream has received, and that is not sent again.
    fn for_good(trouble: UpstreamError) -> Self {
        Self {
            trouble,
            request: None,
            is_unreached: false,
        }
    }
}

/// The kind of connection for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Any connection, reused if possible.
    Usual,
    /// A new connection.
    Fresh,
    /// A new connection that can be upgraded, which HTTP/2 cannot.
    Upgrade,
}

/// A response head, and the source of its body.
#[derive(Debug)]
pub(crate) struct UpstreamResponse {
    head: Response<()>,
    from: BodyOrigin,
}

/// The source of a response body.
#[derive(Debug)]
enum BodyOrigin {
    Http1(Box<UpstreamHttp1>),
    Http2(Incoming),
}

/// A connection that is ready for a request.
enum ReadyConnection {
    Http1(Box<UpstreamHttp1>),
    Http2(http2::SendRequest<Upload>),
}

/// The result of sending a request over HTTP/2.
type Http2SendResult = Result<Response<Incoming>, TrySendError<Request<Upload>>>;

impl UpstreamResponse {
    /// Adds a permit that is held while the connection is used. Requests over HTTP/2 share a connection, and
    /// need none.
    fn holding(mut self, place: Option<UpstreamPermit>) -> Self {
        if let BodyOrigin::Http1(wire) = &mut self.from {
            wire.set_place(place);
        }
        self
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// Returns the headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// Returns the response, whose body drives the connection as it is read. `turn` ends with the body.
    pub(crate) fn relay(
        self,
        target: &Arc<UpstreamTarget>,
        turn: UpstreamLease,
    ) -> Response<RelayedBody> {
        let source = match self.from {
            BodyOrigin::Http1(wire) => BodySource::http1(wire, target),
            BodyOrigin::Http2(incoming) => BodySource::Http2(incoming),
        };
        let idle = target.timeouts.idle;
        self.head.map(|()| RelayedBody::new(source, turn, idle))
    }

    /// Returns the head, and the stream with the bytes that follow it after an upgrade.
    pub(crate) fn into_upgraded(self) -> (Response<()>, Option<(UpstreamStream, Bytes)>) {
        let upgraded = match self.from {
            BodyOrigin::Http1(wire) => Some(wire.into_upgraded()),
            // HTTP/2 has no such response.
            BodyOrigin::Http2(_) => None,
        };
        (self.head, upgraded)
    }
}

/// Returns true if a request may be sent again after it was sent: it has no body, and its method is
/// idempotent.
fn is_repeatable(request: &Request<Upload>) -> bool {
    request.method().is_idempotent() && request.body().is_none()
}

impl UpstreamTarget {
    /// Creates an upstream of `route`. Returns an error message if its TLS settings are invalid.
    pub(crate) fn new(
        upstream: &Upstream,
        route: &Route,
        standing: Arc<UpstreamHealth>,
        tasks: Arc<Tasks>,
    ) -> Result<Self, String> {
        Ok(Self {
            dial: Dial::new(upstream, &route.tls, route.timeouts.connect)?,
            authority: HeaderValue::try_from(upstream.authority())
                .map_err(|_| "no header can name its host".to_owned())?,
            upstream: upstream.clone(),
            tls: route.tls.clone(),
            timeouts: route.timeouts,
            standing,
            connections: route.connections,
            places: UpstreamPermits::new(route.connections),
            pool: Pool::new(route.connections.max),
            multiplex: Multiplex::new(
                upstream.scheme == UpstreamScheme::H2c || upstream.http2 == Http2Use::Always,
            ),
            tasks,
        })
    }

    /// Returns true if it is the same upstream with the same settings: then its connections and health
    /// survive a reload.
    pub(crate) fn is(&self, upstream: &Upstream, route: &Route) -> bool {
        // The weight is the balancer's concern.
        let upstream = Upstream {
            weight: self.upstream.weight,
            ..upstream.clone()
        };
        self.upstream == upstream
            && self.tls == route.tls
            && self.timeouts == route.timeouts
            && self.connections == route.connections
    }

    /// Sends a request and waits for the response head. A failure contains the request if it may be
    /// sent again; if it was already sent, only if `is_repeatable`.
    pub(crate) async fn exchange(
        &self,
        mut request: Box<Outgoing>,
        manner: Manner,
        is_repeatable: bool,
    ) -> Result<UpstreamResponse, FailedRequest> {
        let mut place = None;
        if self.needs_place(manner) {
            place = self.places.take();
            if place.is_none() {
                // Boxed: most requests get a permit at once.
                place = match Box::pin(self.place()).await {
                    Ok(place) => Some(place),
                    Err(trouble) => return Err(FailedRequest::unsent(trouble, request)),
                };
            }
        }
        let mut was_unreached = true;
        while manner == Manner::Usual
            && was_unreached
            && let Some(link) = self.waiting(place.is_some())
        {
            let is_shared = matches!(link, ReadyConnection::Http2(_));
            match self.send(link, manner, request, true).await {
                // Closed while it was idle, and not noticed yet: that is not the upstream's fault.
                Err(FailedRequest {
                    trouble: UpstreamError::Broken(_),
                    request: Some(back),
                    is_unreached,
                }) => {
                    was_unreached = is_unreached;
                    request = back;
                }
                sent => return sent.map(|answered| answered.holding(place)),
            }
            // Another idle connection may be open; but the HTTP/2 connection is the only one.
            if is_shared {
                break;
            }
        }
        // Boxed: it is large, and most requests find a connection.
        let sent = self.exchange_afresh(request, manner, is_repeatable, &mut place);
        let sent = Box::pin(sent).await;
        let sent = sent.map(|answered| answered.holding(place));
        sent.map_err(|failed| FailedRequest {
            is_unreached: failed.is_unreached && was_unreached,
            ..failed
        })
    }

    async fn exchange_afresh(
        &self,
        request: Box<Outgoing>,
        manner: Manner,
        is_repeatable: bool,
        place: &mut Option<UpstreamPermit>,
    ) -> Result<UpstreamResponse, FailedRequest> {
        match self.fresh(manner, place).await {
            Ok(link) => self.send(link, manner, request, is_repeatable).await,
            Err(trouble) => Err(FailedRequest::unsent(trouble, request)),
        }
    }

    /// Takes a permit, or waits for one.
    async fn place(&self) -> Result<UpstreamPermit, UpstreamError> {
        if let Some(place) = self.places.take() {
            return Ok(place);
        }
        let place = self.places.wait(self.timeouts.connect).await;
        place.ok_or(UpstreamError::Full)
    }

    /// Returns true if a request uses its own connection, which counts. Health checks run one at a time, and
    /// must not fail because requests use all permits.
    fn needs_place(&self, manner: Manner) -> bool {
        match manner {
            Manner::Usual => !self.multiplex.is_spoken(),
            Manner::Upgrade => true,
            Manner::Fresh => false,
        }
    }

    /// Returns an open connection, if there is one. An HTTP/1 connection is only for a request with a permit.
    fn waiting(&self, has_place: bool) -> Option<ReadyConnection> {
        let wire = has_place.then(|| self.pool.take()).flatten();
        let wire = wire.map(ReadyConnection::Http1);
        wire.or_else(|| self.multiplex.current().map(ReadyConnection::Http2))
    }

    /// Opens a connection. If HTTP/2 is spoken, the first of many concurrent requests opens it for all. If it
    /// turns out to be HTTP/1, the request gets a permit.
    async fn fresh(
        &self,
        manner: Manner,
        place: &mut Option<UpstreamPermit>,
    ) -> Result<ReadyConnection, UpstreamError> {
        if manner != Manner::Usual {
            return self.connect(manner).await;
        }
        if self.multiplex.is_spoken() {
            // The waiting time for other requests' attempts counts as well: a hundred failing one after the
            // other would take ages.
            let shared = timeout(self.timeouts.connect, self.share(place)).await;
            if let Some(link) = shared.unwrap_or(Err(UpstreamError::ConnectTimeout))? {
                return Ok(link);
            }
        }
        if place.is_none() {
            *place = Some(self.place().await?);
        }
        self.connect(manner).await
    }

    /// Returns the HTTP/2 connection of all requests, which the first one opens; or an HTTP/1 connection, if
    /// the upstream speaks that now and a permit is free at once.
    async fn share(
        &self,
        place: &mut Option<UpstreamPermit>,
    ) -> Result<Option<ReadyConnection>, UpstreamError> {
        let _turn = self.multiplex.turn().await;
        if let Some(sender) = self.multiplex.current() {
            return Ok(Some(ReadyConnection::Http2(sender)));
        }
        // The request before this one found that HTTP/2 is no longer spoken.
        if !self.multiplex.is_spoken() {
            return Ok(None);
        }
        let link = self.connect(Manner::Usual).await?;
        if matches!(link, ReadyConnection::Http1(_)) && place.is_none() {
            *place = self.places.take();
            return Ok(place.is_some().then_some(link));
        }
        Ok(Some(link))
    }

    async fn connect(&self, manner: Manner) -> Result<ReadyConnection, UpstreamError> {
        if manner == Manner::Upgrade {
            // An upgrade cannot use an idle connection, and idle and used ones together may not exceed the
            // maximum.
            self.pool.make_room(self.places.free());
        }
        let dialled = self.dial.dial(manner).await?;
        let link = if dialled.is_http2 {
            let begun = multiplex::begin(dialled.stream, &self.tasks).await;
            begun.map(|sender| {
                if manner == Manner::Usual {
                    self.multiplex.share(&sender);
                }
                ReadyConnection::Http2(sender)
            })
        } else {
            if manner == Manner::Usual {
                self.multiplex.refused();
            }
            Ok(ReadyConnection::Http1(Box::new(UpstreamHttp1::new(
                dialled.stream,
            ))))
        };
        link.map_err(|error: hyper::Error| UpstreamError::Broken(Http1Fault::Http2(error)))
    }

    /// Sends a request over this connection. A failure contains the request if it may be sent again and
    /// `may_repeat` is true.
    async fn send(
        &self,
        link: ReadyConnection,
        manner: Manner,
        mut request: Box<Outgoing>,
        may_repeat: bool,
    ) -> Result<UpstreamResponse, FailedRequest> {
        // Set on each attempt: a retry may use a connection of the other protocol.
        let is_http2 = matches!(link, ReadyConnection::Http2(_));
        request.body_mut().set_http2(is_http2);
        let mut wire = match link {
            ReadyConnection::Http1(wire) => wire,
            // Boxed: it is large.
            ReadyConnection::Http2(sender) => {
                return Box::pin(self.send_http2(sender, request, may_repeat)).await;
            }
        };
        let may_repeat = may_repeat && is_repeatable(&request);
        let upload = request.body().progress();
        let asked = ReadTerms {
            upload: &upload,
            time_max: self.timeouts.response,
            manner,
        };
        let trouble = match wire.send(&mut request, asked).await {
            Ok(head) => {
                let from = BodyOrigin::Http1(wire);
                return Ok(UpstreamResponse { head, from });
            }
            // Perhaps the cause was the client, whose body could not be sent.
            Err(UpstreamError::Broken(fault)) if wire.has_sent() => upload
                .failure()
                .map_or(UpstreamError::Broken(fault), UpstreamError::Upload),
            Err(trouble) => trouble,
        };
        let is_broken = matches!(trouble, UpstreamError::Broken(_));
        let is_unreached = is_broken && !wire.has_sent();
        let is_back = is_unreached || (is_broken && may_repeat);
        Err(FailedRequest {
            trouble,
            request: is_back.then_some(request),
            is_unreached,
        })
    }

    async fn send_http2(
        &self,
        mut sender: http2::SendRequest<Upload>,
        request: Box<Outgoing>,
        may_repeat: bool,
    ) -> Result<UpstreamResponse, FailedRequest> {
        let mut request = request.into_request();
        let spare = may_repeat.then(|| Spare::of(&request)).flatten();
        let upload = request.body().progress();
        self.address_http2(&mut request);
        let sent = sender.try_send_request(request);
        let Some(sent) = in_time(sent, &upload, self.timeouts.response).await else {
            return Err(FailedRequest::for_good(UpstreamError::ResponseTimeout));
        };
        match sent {
            Ok(answer) if !hop::is_clearly_framed(answer.headers()) => {
                Err(FailedRequest::for_good(UpstreamError::Malformed(
                    "where it ends can be read in two ways",
                )))
            }
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                Ok(UpstreamResponse {
                    head: Response::from_parts(head, ()),
                    from: BodyOrigin::Http2(body),
                })
            }
            Err(mut error) => {
                let unsent = error.take_message();
                let broken = || UpstreamError::Broken(Http1Fault::Http2(error.into_error()));
                Err(FailedRequest {
                    trouble: upload.failure().map_or_else(broken, UpstreamError::Upload),
                    is_unreached: unsent.is_some(),
                    request: unsent
                        .or_else(|| spare.map(Spare::into_request))
                        .map(|request| Box::new(Outgoing::from(request))),
                })
            }
        }
    }

    /// Sets the target of a request as HTTP/2 requires it, with `:authority` in place of `Host`.
    fn address_http2(&self, request: &mut Request<Upload>) {
        *request.version_mut() = Version::HTTP_2;
        let scheme = match self.upstream.scheme {
            UpstreamScheme::Https => "https",
            _ => "http",
        };
        request.headers_mut().remove(TRANSFER_ENCODING);
        let host = request.headers_mut().remove(http::header::HOST);
        let host = host.filter(|host| !host.is_empty());
        let authority = host.unwrap_or_else(|| self.authority.clone());
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = scheme.parse().ok();
        parts.authority = http::uri::Authority::try_from(authority.as_bytes()).ok();
        if let Ok(uri) = http::Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }

    /// Closes connections that were idle for too long.
    pub(crate) fn sweep(&self) {
        self.pool.sweep();
    }
}

/// Waits for the response head. The time counts from the last progress of the request's body.
async fn in_time(
    answer: impl Future<Output = Http2SendResult>,
    upload: &UploadProgress,
    time_max: Duration,
) -> Option<Http2SendResult> {
    let mut answer = pin!(answer);
    loop {
        match timeout(time_max, answer.as_mut()).await {
            Ok(sent) => return Some(sent),
            Err(_) if upload.goes_on() => {}
            Err(_) => return None,
        }
    }
}
