//! Connections that switch protocols: WebSocket, and any other protocol that a route allows.

use super::answer::GatewayResponse;
use super::body::GatewayBody;
use super::bridge::{self, Handshake};
use super::lane::ActiveRoute;
use super::messages::MessageLimiter;
use crate::proxy::hop;
use crate::proxy::standing::UpstreamLease;
use crate::proxy::stream::UpstreamStream;
use crate::proxy::target::UpstreamResponse;
use crate::proxy::tunnel::tunnel;
use crate::proxy::websocket::{RelayEnd, relay};
use crate::server::pulse::Alive;
use crate::tasks::Tasks;
use crate::telemetry::gateway::MessageOutcome;
use bytes::Bytes;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderValue, Request, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::Arc;
use tidegate::Store;
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
    pub(super) bridge: Option<(Handshake, Alive)>,
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
    pub(super) fn wanted_upgrade<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        // Scanning the names is cheaper than a lookup of a header that is nearly always missing.
        let mut names = request.headers().keys();
        let wanted = match request.version() {
            Version::HTTP_11 if names.any(|name| *name == UPGRADE) => {
                hop::wanted_upgrade(request.headers())?
            }
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

impl<S: Store + 'static> Upgrade<S> {
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
    /// counts as in flight as long as `turn` exists.
    pub(super) fn begin(
        self,
        lane: &Arc<ActiveRoute>,
        answered: UpstreamResponse,
        turn: UpstreamLease,
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
                Err(error) => debug!(%error, "a client went before its tunnel began"),
            }
            drop((open, turn, self.bridge));
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
            debug!(?ended, "a WebSocket ended");
        }
        // An unknown protocol has no close message that Tidegate could send. Draining waits for the
        // tunnel, and then cuts it.
        UpgradeProtocol::Other => {
            let ended = tunnel(client, upstream, idle).await;
            debug!(?ended, "a tunnel ended");
        }
    }
}
