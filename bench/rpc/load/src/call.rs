//! One unary call of gRPC.

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::Request;
use tokio::net::TcpStream;

pub(crate) const RLS: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The placeholder for the number of a key.
const PLACE: &[u8] = b"UUUUUUUU";

/// The message, with another key each time.
#[derive(Clone)]
pub(crate) struct Message {
    bytes: Bytes,
    place: Option<usize>,
}

impl Message {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut windows = bytes.windows(PLACE.len());
        let place = windows.rposition(|it| it == PLACE);
        Self {
            place,
            bytes: bytes.into(),
        }
    }

    pub(crate) fn with(&self, key: u64) -> Bytes {
        let Some(place) = self.place else {
            return self.bytes.clone();
        };
        let mut message = BytesMut::from(&self.bytes[..]);
        message[place..place + PLACE.len()].copy_from_slice(format!("{key:08}").as_bytes());
        message.freeze()
    }
}

/// Calls on one connection.
pub(crate) struct Caller {
    sender: SendRequest<Bytes>,
    request: Request<()>,
    message: Message,
}

impl Caller {
    pub(crate) async fn connect(port: u16, path: &str, message: &[u8]) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        // With a small window, h2 takes many small responses at once for an attack.
        let mut http = h2::client::Builder::new();
        http.initial_connection_window_size(64 << 20);
        let (sender, connection) = http.handshake(stream).await?;
        tokio::task::spawn_local(async move {
            connection.await.ok();
        });
        let mut framed = vec![0_u8];
        framed.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        framed.extend_from_slice(message);
        Ok(Self {
            sender,
            // The headers of Envoy's calls, constant or not.
            request: Request::post(format!("http://127.0.0.1:{port}{path}"))
                .header("te", "trailers")
                .header("content-type", "application/grpc")
                .header("grpc-timeout", "20m")
                .header("x-envoy-internal", "true")
                .header("x-forwarded-for", "10.1.2.3")
                .body(())?,
            message: Message::new(framed),
        })
    }

    /// Returns the response without its gRPC prefix.
    pub(crate) async fn call(&self, key: u64) -> Result<Bytes> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut body) = sender.send_request(self.request.clone(), false)?;
        body.send_data(self.message.with(key), true)?;
        let answer = answer.await?;
        ensure!(answer.status() == 200, "status {}", answer.status());
        let at_once = answer.headers().get("grpc-status").cloned();
        let mut body = answer.into_body();
        let mut whole = Bytes::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            whole = if whole.is_empty() {
                piece
            } else {
                [whole, piece].concat().into()
            };
        }
        let trailers = body.trailers().await?;
        let status = at_once.or_else(|| trailers?.get("grpc-status").cloned());
        match status.context("no grpc-status")?.to_str()? {
            "0" => Ok(whole.slice(5.min(whole.len())..)),
            code => bail!("grpc-status {code}"),
        }
    }
}
