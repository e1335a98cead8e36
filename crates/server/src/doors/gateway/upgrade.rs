//! Connections that become something else: WebSocket, and whatever else a route lets pass.

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

/// The client's side of a connection that is to become something else.
pub(super) struct Upgrade<S> {
    pub(super) client: OnUpgrade,
    pub(super) protocol: UpgradeProtocol<S>,
    /// Is ready once the door closes.
    pub(super) closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(super) tasks: Arc<Tasks>,
    /// Where a stream of HTTP/2 becomes a WebSocket: what the upstream was asked, and what says that the
    /// client's connection is in use.
    pub(super) bridge: Option<(Handshake, Alive)>,
}

/// What is spoken after an upgrade.
pub(super) enum UpgradeProtocol<S> {
    /// Frames, and somebody is asked for each message, if the route limits them.
    WebSocket(Option<Box<MessageLimiter<S>>>),
    /// Whatever it is.
    Other,
}

/// Whether an upgrade is to WebSocket.
pub(super) fn is_websocket(wanted: &HeaderValue) -> bool {
    wanted.as_bytes().eq_ignore_ascii_case(b"websocket")
}

impl ActiveRoute {
    /// What a request wants its connection to become, if this route lets it. In HTTP/2 that can be a
    /// WebSocket alone, and in HTTP/1.0 nothing.
    pub(super) fn wanted_upgrade<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        // To look through the names is cheaper than to look for one that is hardly ever there.
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
    /// Whether an answer can be passed on. In HTTP/2 any 2xx would open the WebSocket, and clients cannot
    /// tell whether the upstream has understood the handshake.
    pub(super) fn understands(&self, answered: &UpstreamResponse) -> bool {
        let Some((handshake, _)) = &self.bridge else {
            return true;
        };
        match answered.status() {
            StatusCode::SWITCHING_PROTOCOLS => handshake.is_answered(answered.headers()),
            status => !status.is_success(),
        }
    }

    /// The answer of an upstream that agreed. Once the client has it, a tunnel goes on from there,
    /// which is under way for as long as `turn` is.
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

/// Carries what both sides say, until it is over.
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
    // What came together with the head belongs to what follows it.
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
        // Nobody here could say goodbye in it. Draining waits for it, and cuts it.
        UpgradeProtocol::Other => {
            let ended = tunnel(client, upstream, idle).await;
            debug!(?ended, "a tunnel ended");
        }
    }
}
