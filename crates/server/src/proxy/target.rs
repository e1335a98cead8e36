//! One upstream: how it is reached, and what is known of it.

use super::dial::Dial;
use super::hop;
use super::multiplex::{self, Multiplex};
use super::pool::Pool;
use super::relayed::Relayed;
use super::spare::Spare;
use super::standing::{Standing, Turn};
use super::stream::Stream;
use super::trouble::Trouble;
use super::upload::{Progress, Upload};
use super::wire::{TimedOut, Wire};
use crate::tasks::Tasks;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::route::{Http2, Route, Scheme, Timeouts, Upstream, UpstreamTls};
use tokio::time::timeout;

/// One upstream of one route.
#[derive(Debug)]
pub(crate) struct Target {
    /// What the configuration says of it.
    pub(crate) upstream: Upstream,
    tls: UpstreamTls,
    timeouts: Timeouts,
    /// What stands in `Host` and in the targets of HTTP/2.
    pub(crate) authority: HeaderValue,
    pub(crate) standing: Arc<Standing>,
    dial: Dial,
    /// HTTP/1 connections that wait.
    pub(super) pool: Pool,
    /// The HTTP/2 connection.
    multiplex: Multiplex,
    /// What runs beside the requests.
    tasks: Arc<Tasks>,
}

/// A request that got no answer.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) trouble: Trouble,
    /// The request, if it may be sent again.
    pub(crate) request: Option<Box<Request<Upload>>>,
    /// Whether the upstream saw nothing of it.
    pub(crate) is_unreached: bool,
}

/// How a request is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Over whatever connection there is.
    Usual,
    /// Over a new one.
    Fresh,
    /// Over a new one that can become something else, which in HTTP/2 it could not.
    Upgrade,
}

/// The head of an answer, and where its body comes from.
#[derive(Debug)]
pub(crate) struct Answered {
    head: Response<Incoming>,
    /// Absent for HTTP/2.
    pub(crate) wire: Option<Box<Wire>>,
}

/// What comes of sending a request.
pub(super) type Sent = Result<Response<Incoming>, TrySendError<Request<Upload>>>;

/// A connection that is ready for a request.
enum Link {
    Http1(Box<Wire>),
    Http2(http2::SendRequest<Upload>),
}

impl Answered {
    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// The same, if it is something that can be passed on, whatever its body may be.
    fn checked(self, manner: Manner) -> Result<Self, Failed> {
        let fault = if !hop::is_clearly_framed(self.head.headers()) {
            "where it ends can be read in two ways"
        } else if manner != Manner::Upgrade && self.status() == StatusCode::SWITCHING_PROTOCOLS {
            "it changes to something that nobody asked for"
        } else {
            return Ok(self);
        };
        Err(Failed {
            trouble: Trouble::Malformed(fault),
            request: None,
            is_unreached: false,
        })
    }

    /// The answer, whose body drives the connection as it is read. `turn` is over when it is.
    pub(crate) fn relay(self, target: &Arc<Target>, turn: Turn) -> Response<Relayed> {
        let Self { head, wire } = self;
        let of = (Arc::clone(target), turn);
        let idle = target.timeouts.idle;
        let mut answer = head.map(|body| Relayed::new(body, wire, of, idle));
        // An answer without a body is complete, and nobody will ask for the rest of it.
        answer.body_mut().release_if_done();
        answer
    }

    /// The head, and the bytes that follow it on a connection that is no longer HTTP.
    pub(crate) async fn into_upgraded(self) -> (Response<()>, Option<(Stream, Bytes)>) {
        let Self { head, wire } = self;
        let upgraded = match wire {
            Some(wire) => Some(wire.into_upgraded().await),
            // HTTP/2 has no such answer.
            None => None,
        };
        (head.map(drop), upgraded)
    }
}

impl Target {
    /// An upstream of `route`, or what is wrong with its TLS.
    pub(crate) fn new(
        upstream: &Upstream,
        route: &Route,
        standing: Arc<Standing>,
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
            pool: Pool::default(),
            multiplex: Multiplex::new(
                upstream.scheme == Scheme::H2c || upstream.http2 == Http2::Always,
            ),
            tasks,
        })
    }

    /// Whether it is the same upstream, reached in the same way: then its connections and what is known
    /// of it outlive a reload.
    pub(crate) fn is(&self, upstream: &Upstream, tls: &UpstreamTls, timeouts: &Timeouts) -> bool {
        // How much it takes compared with others is the balancer's business.
        let upstream = Upstream {
            weight: self.upstream.weight,
            ..upstream.clone()
        };
        self.upstream == upstream && self.tls == *tls && self.timeouts == *timeouts
    }

    /// Sends a request and waits for the head of the answer. If it fails, a request that may be sent
    /// again is given back; one that was sent already only if `is_repeatable`.
    pub(crate) async fn exchange(
        &self,
        mut request: Box<Request<Upload>>,
        manner: Manner,
        is_repeatable: bool,
    ) -> Result<Answered, Failed> {
        let mut was_unreached = true;
        let waiting = match manner {
            Manner::Usual => self.waiting(),
            Manner::Fresh | Manner::Upgrade => None,
        };
        if let Some(link) = waiting {
            let spare = Spare::of(&request);
            match self.send(link, manner, request, spare).await {
                // Closed while it waited, and nobody had noticed: that is not the upstream's fault.
                Err(Failed {
                    trouble: Trouble::Broken(_),
                    request: Some(back),
                    is_unreached,
                }) => {
                    was_unreached = is_unreached;
                    request = back;
                }
                sent => return sent,
            }
        }
        // Put aside: it is large, and most requests find a connection.
        let sent = Box::pin(self.exchange_afresh(request, manner, is_repeatable)).await;
        sent.map_err(|failed| Failed {
            is_unreached: failed.is_unreached && was_unreached,
            ..failed
        })
    }

    async fn exchange_afresh(
        &self,
        request: Box<Request<Upload>>,
        manner: Manner,
        is_repeatable: bool,
    ) -> Result<Answered, Failed> {
        match self.fresh(manner).await {
            Ok(link) => {
                let spare = is_repeatable.then(|| Spare::of(&request)).flatten();
                self.send(link, manner, request, spare).await
            }
            Err(trouble) => Err(Failed {
                trouble,
                request: Some(request),
                is_unreached: true,
            }),
        }
    }

    /// A connection that is there already.
    fn waiting(&self) -> Option<Link> {
        let wire = self.pool.take().map(Link::Http1);
        wire.or_else(|| self.multiplex.current().map(Link::Http2))
    }

    /// A new connection. Where HTTP/2 is spoken, the first one of many at once makes it for all.
    async fn fresh(&self, manner: Manner) -> Result<Link, Trouble> {
        if manner != Manner::Usual || !self.multiplex.is_spoken() {
            return self.connect(manner).await;
        }
        let shared = async {
            let _turn = self.multiplex.turn().await;
            match self.multiplex.current() {
                Some(sender) => Ok(Link::Http2(sender)),
                None => self.connect(manner).await,
            }
        };
        // The turns of others count as well: a hundred that fail one after the other would take ages.
        let shared = timeout(self.timeouts.connect, shared).await;
        shared.unwrap_or(Err(Trouble::ConnectTimeout))
    }

    async fn connect(&self, manner: Manner) -> Result<Link, Trouble> {
        let dialled = self.dial.dial(manner).await?;
        let link = if dialled.is_http2 {
            let begun = multiplex::begin(dialled.stream, &self.tasks).await;
            begun.map(|sender| {
                if manner == Manner::Usual {
                    self.multiplex.share(&sender);
                }
                Link::Http2(sender)
            })
        } else {
            let begun = Wire::new(dialled.stream).await;
            begun.map(|wire| Link::Http1(Box::new(wire)))
        };
        link.map_err(Trouble::Broken)
    }

    async fn send(
        &self,
        link: Link,
        manner: Manner,
        mut request: Box<Request<Upload>>,
        spare: Option<Spare>,
    ) -> Result<Answered, Failed> {
        let upload = request.body().progress();
        let time_max = self.timeouts.response;
        let (sent, wire) = match link {
            Link::Http1(mut wire) => {
                frame_http1(&mut request);
                (wire.send(*request, &upload, time_max).await, Some(wire))
            }
            Link::Http2(mut sender) => {
                self.address_http2(&mut request);
                let sent = sender.try_send_request(*request);
                (Box::pin(in_time(sent, &upload, time_max)).await, None)
            }
        };
        match sent {
            Ok(Ok(head)) => Answered { head, wire }.checked(manner),
            Ok(Err(mut error)) => {
                let unsent = error.take_message().map(Box::new);
                let broken = || Trouble::Broken(error.into_error());
                Err(Failed {
                    // Perhaps it was the client, whose body could not be sent on.
                    trouble: upload.failure().map_or_else(broken, Trouble::Upload),
                    is_unreached: unsent.is_some(),
                    request: unsent.or_else(|| spare.map(Spare::into_request)),
                })
            }
            Err(TimedOut) => Err(Failed {
                trouble: Trouble::ResponseTimeout,
                request: None,
                is_unreached: false,
            }),
        }
    }

    /// Turns the target of a request into what HTTP/2 has instead of a `Host`.
    fn address_http2(&self, request: &mut Request<Upload>) {
        *request.version_mut() = Version::HTTP_2;
        let scheme = match self.upstream.scheme {
            Scheme::Https => "https",
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

    /// Closes connections that have waited for too long.
    pub(crate) fn sweep(&self) {
        self.pool.sweep();
    }
}

/// Waits for the head of an answer, from when the body of the request no longer goes on.
async fn in_time(
    answer: impl Future<Output = Sent>,
    upload: &Progress,
    time_max: Duration,
) -> Result<Sent, TimedOut> {
    let mut answer = pin!(answer);
    loop {
        match timeout(time_max, answer.as_mut()).await {
            Ok(sent) => return Ok(sent),
            Err(_) if upload.goes_on() => {}
            Err(_) => return Err(TimedOut),
        }
    }
}

/// Says of a body without a length that it comes in chunks. hyper would do so, too, but for GET and
/// HEAD, of which it believes that they have none.
fn frame_http1(request: &mut Request<Upload>) {
    *request.version_mut() = Version::HTTP_11;
    if !request.body().is_none() && !request.headers().contains_key(CONTENT_LENGTH) {
        let chunked = HeaderValue::from_static("chunked");
        request.headers_mut().insert(TRANSFER_ENCODING, chunked);
    }
}
