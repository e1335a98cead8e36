//! Connections that switch protocols: WebSocket, and any other protocol that a route allows.

use super::active_route::ActiveRoute;
use super::answer::GatewayResponse;
use super::body::GatewayBody;
use super::bridge::{self, Handshake};
use super::messages::MessageLimiter;
use bytes::Bytes;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderValue, Request, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::Arc;
use tidegate::{Permit, Store};
use tidegate_net::idle_clock::ActivityGuard;
use tidegate_net::session::RequestContext;
use tidegate_net::tasks::Tasks;
use tidegate_proxy::hop::{self, RequestFields};
use tidegate_proxy::stream::UpstreamStream;
use tidegate_proxy::target::UpstreamResponse;
use tidegate_proxy::tunnel::tunnel;
use tidegate_proxy::upstream_health::UpstreamLease;
use tidegate_proxy::websocket::{RelayEnd, relay};
use tidegate_telemetry::gateway::MessageOutcome;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, join, split};
use tracing::debug;

/// The client's side of a connection that is to switch protocols.
pub(super) struct Upgrade<S> {
    pub(super) client: OnUpgrade,
    pub(super) protocol: UpgradeProtocol<S>,
    /// Completes once the listener closes.
    pub(super) closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(super) tasks: Arc<Tasks>,
    /// Set if an HTTP/2 stream becomes a WebSocket: the handshake with the upstream, and a guard that
    /// keeps the client's connection from counting as idle.
    pub(super) bridge: Option<(Handshake, ActivityGuard)>,
}

/// The protocol after an upgrade.
pub(super) enum UpgradeProtocol<S> {
    /// WebSocket frames; if the route limits messages, each one is checked.
    WebSocket(Option<Box<MessageLimiter<S>>>),
    /// Any other protocol.
    Other,
}

/// Returns true if an upgrade is to WebSocket.
pub(super) fn is_websocket(wanted: &HeaderValue) -> bool {
    wanted.as_bytes().eq_ignore_ascii_case(b"websocket")
}

impl ActiveRoute {
    /// Returns the protocol that a request asks to switch to, if this route allows it. HTTP/2 allows only
    /// WebSocket, and HTTP/1.0 none.
    pub(super) fn wanted_upgrade<B>(
        &self,
        request: &Request<B>,
        fields: RequestFields,
    ) -> Option<HeaderValue> {
        let wanted = match request.version() {
            Version::HTTP_11 if fields.has_upgrade => hop::wanted_upgrade(request.headers())?,
            Version::HTTP_2 if bridge::is_translated(request) => {
                HeaderValue::from_static("websocket")
            }
            _ => return None,
        };
        let mut taken = self.route.upgrades.iter();
        let is_taken = taken.any(|it| wanted.as_bytes().eq_ignore_ascii_case(it.as_bytes()));
        is_taken.then_some(wanted)
    }
}

impl<S> UpgradeProtocol<S> {
    /// Returns the protocol of a request that becomes a WebSocket, whose `messages` may be limited, or of
    /// any other.
    pub(super) fn of(becomes_websocket: bool, messages: Option<Box<MessageLimiter<S>>>) -> Self {
        if becomes_websocket {
            Self::WebSocket(messages)
        } else {
            Self::Other
        }
    }
}

impl<S: Store + 'static> Upgrade<S> {
    /// Returns the client's side of a request that is to switch to `protocol`.
    // Out of line and boxed: few requests have one.
    #[cold]
    pub(super) fn new<B, M>(
        request: &mut Request<B>,
        visit: RequestContext<'_, M>,
        protocol: UpgradeProtocol<S>,
        handshake: Option<Handshake>,
    ) -> Box<Self>
    where
        M: 'static,
    {
        Box::new(Self {
            protocol,
            client: hyper::upgrade::on(request),
            closing: Box::pin(visit.closing()),
            tasks: Arc::clone(visit.tasks()),
            bridge: handshake.map(|it| (it, visit.alive())),
        })
    }

    /// Returns true if a response can be passed on. In HTTP/2 any 2xx would open the WebSocket, and
    /// clients cannot know whether the upstream understood the handshake.
    pub(super) fn understands(&self, answered: &UpstreamResponse) -> bool {
        let Some((handshake, _)) = &self.bridge else {
            return true;
        };
        match answered.status() {
            StatusCode::SWITCHING_PROTOCOLS => handshake.is_answered(answered.headers()),
            status => !status.is_success(),
        }
    }

    /// Returns the response of an upstream that agreed. Once the client has it, a tunnel starts, which
    /// counts as in flight as long as `turn` and the permits exist.
    pub(super) fn begin(
        self,
        lane: &Arc<ActiveRoute>,
        answered: UpstreamResponse,
        (turn, permit): (UpstreamLease, Option<Permit>),
    ) -> GatewayResponse {
        let (head, upstream) = answered.into_upgraded();
        let mut answer = head.map(|()| GatewayBody::Ours(None));
        let headers = answer.headers_mut();
        let agreed = headers.get(UPGRADE).cloned();
        hop::strip_response(headers);
        lane.response_changes.apply(headers);
        if self.bridge.is_some() {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
            *answer.status_mut() = StatusCode::OK;
        } else {
            if let Some(agreed) = agreed {
                headers.insert(UPGRADE, agreed);
            }
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        let lane = Arc::clone(lane);
        let tasks = Arc::clone(&self.tasks);
        tasks.spawn(async move {
            let open = lane.metrics.open_tunnel();
            match self.client.await {
                Ok(client) => {
                    let client = TokioIo::new(client);
                    if let Some(upstream) = upstream {
                        carry(client, upstream, self.protocol, &lane, self.closing).await;
                    }
                }
                Err(error) => debug!(event = "tunnel_abandoned", %error, "client disconnected before its tunnel started"),
            }
            drop((open, turn, self.bridge, permit));
        });
        answer
    }
}

/// Relays the bytes of both sides until the connection ends.
async fn carry<C, S>(
    client: C,
    upstream: (UpstreamStream, Bytes),
    protocol: UpgradeProtocol<S>,
    lane: &ActiveRoute,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
) where
    C: AsyncRead + AsyncWrite + Unpin,
    S: Store + 'static,
{
    let idle = lane.route.timeouts.idle;
    let (stream, ahead) = upstream;
    let (read, write) = split(stream);
    // Bytes that came together with the headers belong to the new protocol.
    let upstream = join(Cursor::new(ahead).chain(read), write);
    match protocol {
        UpgradeProtocol::WebSocket(messages) => {
            let limits = lane.route.messages.as_ref();
            let bounds = limits.map(|it| it.bounds).unwrap_or_default();
            let ended = relay(client, upstream, (messages, bounds), idle, closing).await;
            match ended.why {
                RelayEnd::TooMuch { .. } => lane.metrics.count_message(MessageOutcome::Refused),
                RelayEnd::TooLarge => lane.metrics.count_message(MessageOutcome::TooLarge),
                _ => {}
            }
            debug!(event = "websocket_closed", ?ended, "WebSocket closed");
        }
        // An unknown protocol has no close message that Tidegate could send. Draining waits for the
        // tunnel, and then cuts it.
        UpgradeProtocol::Other => {
            let ended = tunnel(client, upstream, idle).await;
            debug!(event = "tunnel_closed", ?ended, "tunnel closed");
        }
    }
}
