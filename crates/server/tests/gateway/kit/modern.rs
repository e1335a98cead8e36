//! Both ends of HTTP/2 and of TLS, by hyper and rustls.

use super::certificates::Certificates;
use super::in_time;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response, Version, response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A body that may have trailers.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Returns a body. If it has trailers, its length is not announced.
pub(crate) fn body(bytes: impl Into<Bytes>, trailers: &[(&'static str, &'static str)]) -> Body {
    let bytes = bytes.into();
    if trailers.is_empty() {
        return Full::new(bytes).boxed_unsync();
    }
    let mut map = HeaderMap::new();
    for (name, value) in trailers {
        map.append(*name, HeaderValue::from_static(value));
    }
    let frames = [Frame::data(bytes), Frame::trailers(map)].map(Ok);
    StreamBody::new(stream::iter(frames)).boxed_unsync()
}

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamProtocol {
    /// HTTP/2 without TLS.
    H2c,
    /// TLS, with these protocols offered by ALPN.
    Tls(&'static [&'static str]),
}

/// An upstream that echoes the request body, with the trailer `x-back: yes`.
pub(crate) struct Http2Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    _tasks: Arc<Tasks>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) version: Version,
    /// The method and the target.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Http2Upstream {
    /// Starts an upstream; for TLS it uses a certificate of `certificates`.
    pub(crate) async fn start(speaks: UpstreamProtocol, certificates: &Certificates) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = match speaks {
            UpstreamProtocol::H2c => None,
            UpstreamProtocol::Tls(protocols) => Some(acceptor(certificates, protocols)),
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tasks = Arc::new(Tasks::new());
        let (to_all, weak) = (Arc::clone(&seen), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else {
                    return;
                };
                let (seen, acceptor) = (Arc::clone(&to_all), acceptor.clone());
                tasks.spawn(async move {
                    let Some(acceptor) = acceptor else {
                        return serve(stream, true, seen).await;
                    };
                    // The client does not trust the certificate.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve(stream, is_http2, seen).await;
                });
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().drain(..).count()
    }

    /// Returns the single request since the last call.
    pub(crate) fn saw(&self) -> SeenRequest {
        let mut seen = std::mem::take(&mut *self.seen.lock());
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen.remove(0)
    }
}

/// Returns an acceptor for `localhost` with these ALPN protocols.
pub(crate) fn acceptor(certificates: &Certificates, protocols: &[&str]) -> TlsAcceptor {
    let (cert, key) = certificates.sign("localhost");
    let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    let protocols = protocols.iter();
    config.alpn_protocols = protocols.map(|it| it.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Connects to `localhost`, trusts `certificates`, and offers these protocols.
pub(crate) async fn secure(
    address: SocketAddr,
    certificates: &Certificates,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = certificates.authority_pem();
    roots
        .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let protocols = protocols.iter();
    config.alpn_protocols = protocols.map(|it| it.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let name = "localhost".try_into().unwrap();
    in_time("a handshake", connector.connect(name, stream))
        .await
        .unwrap()
}

async fn serve<I>(stream: I, is_http2: bool, seen: Arc<Mutex<Vec<SeenRequest>>>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
    let stream = TokioIo::new(stream);
    // Errors of the connection concern the proxy.
    if is_http2 {
        let http = http2::Builder::new(TokioExecutor::new());
        http.serve_connection(stream, service).await.ok();
    } else {
        let http = http1::Builder::new();
        http.serve_connection(stream, service).await.ok();
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, incoming) = request.into_parts();
    let collected = incoming.collect().await?;
    let trailers = collected.trailers().cloned();
    let bytes = collected.to_bytes();
    seen.lock().push(SeenRequest {
        version: head.version,
        line: format!("{} {}", head.method, head.uri),
        headers: head.headers,
        body: bytes.clone(),
        trailers,
    });
    let mut response = Response::new(body(bytes, &[("x-back", "yes")]));
    let headers = response.headers_mut();
    headers.insert("trailer", HeaderValue::from_static("x-back"));
    Ok(response)
}

/// A client that speaks HTTP/2 with prior knowledge.
pub(crate) struct H2 {
    sender: SendRequest<Body>,
    _tasks: Tasks,
}

/// A response.
#[derive(Debug)]
pub(crate) struct ReceivedResponse {
    pub(crate) head: response::Parts,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl H2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn over<I>(stream: I) -> Self
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let hands = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = hands.unwrap();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            connection.await.ok();
        });
        Self {
            sender,
            _tasks: tasks,
        }
    }

    /// Returns a cloneable sender for this connection.
    pub(crate) fn sender(&self) -> SendRequest<Body> {
        self.sender.clone()
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn send(&mut self, request: Request<Body>) -> Response<Incoming> {
        let answer = in_time("an answer", self.sender.send_request(request)).await;
        answer.unwrap()
    }

    pub(crate) async fn ask(&mut self, request: Request<Body>) -> ReceivedResponse {
        let (head, incoming) = self.send(request).await.into_parts();
        let collected = in_time("its body", incoming.collect()).await.unwrap();
        let trailers = collected.trailers().cloned();
        let body = collected.to_bytes();
        ReceivedResponse {
            head,
            body,
            trailers,
        }
    }
}
