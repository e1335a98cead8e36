//! One upstream: its connections, settings and health.
//!
//! ```text
//! exchange ─▶ idle connection ─▶ send ─▶ response
//!    │             └─ closed meanwhile: the next one, as long as nothing was received
//!    └──────▶ new connection  ─▶ send ─▶ response, or the failure
//! ```
//!
//! An HTTP/1 request holds a permit and a connection from its first byte until its response has ended. Requests
//! over HTTP/2 share one connection and need no permit. A retry at another upstream is the decision of
//! [`Fleet`](crate::fleet::Fleet); this module only reports if the upstream may have received the request.

use super::connection_kind::ConnectionKind;
use super::dial::DialSettings;
use super::error::UpstreamError;
use super::fault::Http1Fault;
use super::hop;
use super::http1::{ReadTerms, UpstreamHttp1};
use super::multiplex::{self, Multiplex};
use super::outgoing::OutgoingRequest;
use super::places::{UpstreamPermit, UpstreamPermits};
use super::pool::Pool;
use super::relayed_body::{BodySource, RelayedBody};
use super::spare::SpareRequest;
use super::stream::UpstreamStream;
use super::upload::{Upload, UploadProgress};
use super::upstream_health::{UpstreamHealth, UpstreamLease};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::{Connections, Http2Use, Route, Timeouts, Upstream, UpstreamScheme};
use tidegate_policy::tls::ClientTls;
use tokio::time::timeout;

/// One upstream of one route.
#[derive(Debug)]
pub struct UpstreamTarget {
    /// The upstream's configuration.
    pub upstream: Upstream,
    tls: ClientTls,
    timeouts: Timeouts,
    /// The value of `Host` and of HTTP/2's `:authority`.
    pub authority: HeaderValue,
    /// Its health.
    pub standing: Arc<UpstreamHealth>,
    dial: DialSettings,
    connections: Connections,
    /// The permits for connections in use.
    places: UpstreamPermits,
    /// Idle HTTP/1 connections.
    pool: Arc<Pool>,
    /// The HTTP/2 connection.
    multiplex: Multiplex,
    /// Tasks that run alongside the requests.
    tasks: Arc<Tasks>,
}

/// A request that got no response.
#[derive(Debug)]
pub struct FailedRequest {
    /// The reason.
    pub trouble: UpstreamError,
    /// The request, if it may be sent again.
    pub(crate) request: Option<Box<OutgoingRequest>>,
    /// True if the upstream received no part of the request.
    pub(crate) is_unreached: bool,
}

impl FailedRequest {
    /// Returns the failure of a request of which the upstream has received nothing.
    fn unsent(trouble: UpstreamError, request: Box<OutgoingRequest>) -> Self {
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

/// A response, of which the body is still to come. It is small, because it is returned through several
/// futures.
#[derive(Debug)]
pub struct UpstreamResponse {
    from: ResponseOrigin,
}

/// The source of a response.
#[derive(Debug)]
enum ResponseOrigin {
    /// The connection that has the head, and that the body comes from.
    Http1(Box<UpstreamHttp1>),
    Http2(Box<Response<Incoming>>),
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
        if let ResponseOrigin::Http1(wire) = &mut self.from {
            wire.set_place(place);
        }
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        match &self.from {
            ResponseOrigin::Http1(wire) => wire.status(),
            ResponseOrigin::Http2(answer) => answer.status(),
        }
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        match &self.from {
            ResponseOrigin::Http1(wire) => wire.headers(),
            ResponseOrigin::Http2(answer) => answer.headers(),
        }
    }

    /// Returns the response, whose body drives the connection as it is read. `turn` ends with the body.
    pub fn relay(self, target: &Arc<UpstreamTarget>, turn: UpstreamLease) -> Response<RelayedBody> {
        let idle = target.timeouts.idle;
        match self.from {
            ResponseOrigin::Http1(mut wire) => {
                let head = wire.take_head();
                let source = BodySource::http1(wire, &target.pool);
                head.map(|()| RelayedBody::new(source, turn, idle))
            }
            ResponseOrigin::Http2(answer) => {
                let body = |incoming| RelayedBody::new(BodySource::Http2(incoming), turn, idle);
                answer.map(body)
            }
        }
    }

    /// Returns the head, and the stream with the bytes that follow it after an upgrade.
    pub fn into_upgraded(self) -> (Response<()>, Option<(UpstreamStream, Bytes)>) {
        match self.from {
            ResponseOrigin::Http1(mut wire) => (wire.take_head(), Some(wire.into_upgraded())),
            // HTTP/2 has no such response.
            ResponseOrigin::Http2(answer) => (answer.map(drop), None),
        }
    }
}

/// Returns true if a request may be sent again after it was sent: it has no body, and its method is
/// idempotent.
fn is_repeatable(request: &Request<Upload>) -> bool {
    request.method().is_idempotent() && request.body().is_none()
}

impl UpstreamTarget {
    /// Creates an upstream of `route`. Returns an error message if its TLS settings are invalid.
    ///
    /// # Errors
    ///
    /// The reason why a certificate, a key or a CA of the route cannot be used, or why the host cannot be named in a
    /// header.
    pub fn new(
        upstream: &Upstream,
        route: &Route,
        standing: Arc<UpstreamHealth>,
        tasks: Arc<Tasks>,
    ) -> Result<Self, String> {
        Ok(Self {
            dial: DialSettings::new(upstream, &route.tls, route.timeouts.connect)?,
            authority: HeaderValue::try_from(upstream.authority())
                .map_err(|_| "no header can name its host".to_owned())?,
            upstream: upstream.clone(),
            tls: route.tls.clone(),
            timeouts: route.timeouts,
            standing,
            connections: route.connections,
            places: UpstreamPermits::new(route.connections),
            pool: Arc::new(Pool::new(route.connections.max)),
            multiplex: Multiplex::new(
                upstream.scheme == UpstreamScheme::H2c || upstream.http2 == Http2Use::Always,
            ),
            tasks,
        })
    }

    /// Returns true if it is the same upstream with the same settings: then its connections and health
    /// survive a reload.
    pub fn is(&self, upstream: &Upstream, route: &Route) -> bool {
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
    ///
    /// # Errors
    ///
    /// [`UpstreamError::Full`] if no permit became free within the connect timeout, the errors of connecting and of
    /// TLS, and those of a connection that broke or a response that cannot be forwarded.
    pub async fn exchange(
        &self,
        mut request: Box<OutgoingRequest>,
        manner: ConnectionKind,
        is_repeatable: bool,
    ) -> Result<UpstreamResponse, FailedRequest> {
        let mut place = None;
        if self.needs_permit(manner) {
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
        while manner == ConnectionKind::Usual
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
        let sent = self.exchange_on_new_connection(request, manner, is_repeatable, &mut place);
        let sent = Box::pin(sent).await;
        let sent = sent.map(|answered| answered.holding(place));
        sent.map_err(|failed| FailedRequest {
            is_unreached: failed.is_unreached && was_unreached,
            ..failed
        })
    }

    async fn exchange_on_new_connection(
        &self,
        request: Box<OutgoingRequest>,
        manner: ConnectionKind,
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
    fn needs_permit(&self, manner: ConnectionKind) -> bool {
        match manner {
            ConnectionKind::Usual => !self.multiplex.is_spoken(),
            ConnectionKind::Upgrade => true,
            ConnectionKind::Fresh => false,
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
        manner: ConnectionKind,
        place: &mut Option<UpstreamPermit>,
    ) -> Result<ReadyConnection, UpstreamError> {
        if manner != ConnectionKind::Usual {
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
        let link = self.connect(ConnectionKind::Usual).await?;
        if matches!(link, ReadyConnection::Http1(_)) && place.is_none() {
            *place = self.places.take();
            return Ok(place.is_some().then_some(link));
        }
        Ok(Some(link))
    }

    async fn connect(&self, manner: ConnectionKind) -> Result<ReadyConnection, UpstreamError> {
        if manner == ConnectionKind::Upgrade {
            // An upgrade cannot use an idle connection, and idle and used ones together may not exceed the
            // maximum.
            self.pool.make_room(self.places.free());
        }
        let dialled = self.dial.dial(manner).await?;
        let link = if dialled.is_http2 {
            let begun = multiplex::begin(dialled.stream, &self.tasks).await;
            begun.map(|sender| {
                if manner == ConnectionKind::Usual {
                    self.multiplex.share(&sender);
                }
                ReadyConnection::Http2(sender)
            })
        } else {
            if manner == ConnectionKind::Usual {
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
        manner: ConnectionKind,
        mut request: Box<OutgoingRequest>,
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
            Ok(()) => {
                let from = ResponseOrigin::Http1(wire);
                return Ok(UpstreamResponse { from });
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
        request: Box<OutgoingRequest>,
        may_repeat: bool,
    ) -> Result<UpstreamResponse, FailedRequest> {
        let mut request = request.into_request();
        let spare = may_repeat.then(|| SpareRequest::of(&request)).flatten();
        let upload = request.body().progress();
        let host = multiplex::address(&mut request, self.upstream.scheme, &self.authority);
        let sent = sender.try_send_request(request);
        let Some(sent) = in_time(sent, &upload, self.timeouts.response).await else {
            return Err(FailedRequest::for_good(UpstreamError::ResponseTimeout));
        };
        match sent {
            Ok(answer) if !hop::is_clearly_framed(answer.headers()) => Err(
                FailedRequest::for_good(UpstreamError::Malformed("its length is ambiguous")),
            ),
            Ok(answer) => {
                let from = ResponseOrigin::Http2(Box::new(answer));
                Ok(UpstreamResponse { from })
            }
            Err(mut error) => {
                let mut unsent = error.take_message();
                // The next connection, perhaps of HTTP/1 or to another upstream, needs the client's host again.
                if let (Some(request), Some(host)) = (&mut unsent, host) {
                    request.headers_mut().insert(HOST, host);
                }
                let broken = || UpstreamError::Broken(Http1Fault::Http2(error.into_error()));
                Err(FailedRequest {
                    trouble: upload.failure().map_or_else(broken, UpstreamError::Upload),
                    is_unreached: unsent.is_some(),
                    request: unsent
                        .or_else(|| spare.map(SpareRequest::into_request))
                        .map(|request| Box::new(OutgoingRequest::from(request))),
                })
            }
        }
    }

    /// Closes connections that were idle for too long.
    pub fn sweep(&self) {
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
