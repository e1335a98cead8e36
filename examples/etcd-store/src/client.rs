//! Calls to etcd by its JSON gateway.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use std::error::Error;
use std::time::Duration;
use tidegate_core::{StoreError, StoreErrorKind};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most bytes of a response.
const BYTES_MAX: usize = 1 << 20;

/// The most connections that are kept open while nobody uses them.
const IDLE_MAX: usize = 32;

type Connection = SendRequest<Full<Bytes>>;

/// A client of one member.
#[derive(Debug)]
pub(crate) struct Client {
    /// `HOST:PORT`.
    address: String,
    /// The longest that a call may take.
    pub(crate) timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            timeout: Duration::from_secs(1),
            idle: Mutex::default(),
        }
    }

    /// Calls a method of etcd, such as `kv/txn`. An error means that the result is unknown.
    pub(crate) async fn call(&self, method: &str, body: &Value) -> Result<Value, StoreError> {
        let sent = timeout(self.timeout, self.send(method, body)).await;
        let sent = sent.map_err(|_| {
            let why = format!("etcd did not answer {method} within {:?}", self.timeout);
            StoreError::transient(why).with_kind(StoreErrorKind::Timeout)
        })?;
        let (status, body) = sent.map_err(|cause| {
            StoreError::transient(format!("etcd at {} cannot be reached", self.address))
                .with_kind(StoreErrorKind::Unreachable)
                .caused_by(cause)
        })?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        let why = body
            .get("error")
            .and_then(Value::as_str)
            .unwrap_or("no reason");
        let why = format!("etcd answered {status}: {why}");
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                StoreError::permanent(why).with_kind(StoreErrorKind::Denied)
            }
            _ => StoreError::transient(why).with_kind(StoreErrorKind::Unable),
        })
    }

    async fn send(
        &self,
        method: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value), Box<dyn Error + Send + Sync>> {
        let mut connection = match self.idle() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let request = Request::post(format!("/v3/{method}"))
            .header(HOST, &self.address)
            .body(Full::new(Bytes::from(serde_json::to_vec(body)?)))?;
        let response = connection.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BYTES_MAX);
        let body = serde_json::from_slice(&body.collect().await?.to_bytes())?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok((status, body))
    }

    /// A connection that is open and that nobody uses.
    fn idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        std::iter::from_fn(|| idle.pop()).find(Connection::is_ready)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the task ends with the connection"
    )]
    async fn connect(&self) -> Result<Connection, Box<dyn Error + Send + Sync>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        drop(tokio::spawn(driver));
        Ok(connection)
    }
}
