//! A server with configurable responses.

use crate::kit::certificates::Certificates;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Sends the same response to all requests until changed.
pub(super) struct Double {
    pub(super) address: SocketAddr,
    script: Arc<Script>,
    _tasks: Tasks,
}

struct Script {
    says: Mutex<DoubleReply>,
    /// The requests so far.
    asked: watch::Sender<Vec<String>>,
}

#[derive(Clone)]
enum DoubleReply {
    /// Closes the connection.
    Nothing,
    Status(u16),
    Document {
        etag: Option<String>,
        body: String,
    },
    /// A document that ends with the connection.
    Unbounded(String),
}

impl Double {
    /// Starts a server that closes every connection.
    pub(super) async fn unreachable() -> Self {
        Self::open(None).await
    }

    /// Starts the same over TLS with the certificate of `localhost`.
    pub(super) async fn secure(certificates: &Certificates) -> Self {
        Self::open(Some(acceptor(certificates))).await
    }

    async fn open(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Script {
            says: Mutex::new(DoubleReply::Nothing),
            asked: watch::Sender::new(Vec::new()),
        });
        let tasks = Tasks::new();
        let answering = Arc::clone(&script);
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                match &tls {
                    None => answering.answer(stream).await,
                    // A client that rejects the certificate sends nothing.
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answering.answer(stream).await;
                        }
                    }
                }
            }
        });
        Self {
            address,
            script,
            _tasks: tasks,
        }
    }

    pub(super) fn say(&self, etag: Option<&str>, body: &str) {
        *self.script.says.lock() = DoubleReply::Document {
            etag: etag.map(str::to_owned),
            body: body.to_owned(),
        };
    }

    /// Sets a response without a length.
    pub(super) fn say_unbounded(&self, body: &str) {
        *self.script.says.lock() = DoubleReply::Unbounded(body.to_owned());
    }

    pub(super) fn fail(&self, status: u16) {
        *self.script.says.lock() = DoubleReply::Status(status);
    }

    pub(super) fn hang_up(&self) {
        *self.script.says.lock() = DoubleReply::Nothing;
    }

    /// Waits for this many further requests; returns the last.
    pub(super) async fn asked(&self, times: usize) -> String {
        let mut asked = self.script.asked.subscribe();
        let before = asked.borrow_and_update().len();
        let heads = asked.wait_for(|heads| heads.len() >= before + times);
        heads.await.unwrap().last().unwrap().clone()
    }

    /// Returns the number of requests so far.
    pub(super) fn times(&self) -> usize {
        self.script.asked.borrow().len()
    }

    /// Returns the last request.
    pub(super) fn last(&self) -> String {
        self.script.asked.borrow().last().unwrap().clone()
    }
}

impl Script {
    async fn answer(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_buf(&mut head).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let head = String::from_utf8(head).unwrap();
        let says = self.says.lock().clone();
        let answer = match says {
            DoubleReply::Nothing => String::new(),
            DoubleReply::Status(status) => {
                format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n\r\n")
            }
            DoubleReply::Unbounded(body) => format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
            DoubleReply::Document { etag, body } => {
                let is_known = etag
                    .as_ref()
                    .is_some_and(|etag| head.contains(&format!("if-none-match: {etag}\r\n")));
                if is_known {
                    "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned()
                } else {
                    let etag = etag.map(|it| format!("etag: {it}\r\n")).unwrap_or_default();
                    let length = body.len();
                    format!("HTTP/1.1 200 OK\r\n{etag}content-length: {length}\r\n\r\n{body}")
                }
            }
        };
        // A client may close without reading it.
        stream.write_all(answer.as_bytes()).await.ok();
        stream.shutdown().await.ok();
        self.asked.send_modify(|asked| asked.push(head));
    }
}

/// Returns a TLS acceptor with these certificates.
fn acceptor(certificates: &Certificates) -> TlsAcceptor {
    let cert = CertificateDer::from_pem_file(certificates.path("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.path("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
