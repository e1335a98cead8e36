use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll};
use tidegate::{Config, Limiter, ManualClock, MemoryStore, Timestamp};
use tidegate_config::NoEnvironment;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::{Service, ServiceExt as _};

/// One at once for each client, and then one per hour.
pub(crate) const ONE_EACH: &str = "
policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 1/h }] }]";

/// Two at once for all clients together.
pub(crate) const TWO: &str = "
policies: [{ name: api, limits: [{ name: everybody, rate: 2/h }] }]";

pub(crate) fn config(text: &str) -> Config {
    Config::parse(text, "test.yaml", &NoEnvironment).expect("a valid config")
}

/// Buckets in memory, with a stopped clock.
pub(crate) type ManualStore = MemoryStore<ManualClock>;

pub(crate) fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000))
}

pub(crate) fn limiter(text: &str) -> Limiter<ManualStore> {
    let builder = Limiter::builder().config(config(text));
    builder.clock(clock()).build().expect("a limiter")
}

/// An application that counts its calls and replies with a greeting.
#[derive(Clone, Default)]
pub(crate) struct Hello {
    called: Arc<AtomicU64>,
}

impl Hello {
    pub(crate) fn called(&self) -> u64 {
        self.called.load(SeqCst)
    }
}

impl<B> Service<Request<B>> for Hello {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        self.called.fetch_add(1, SeqCst);
        std::future::ready(Ok(Response::new(Full::from("hello"))))
    }
}

/// Returns a request for `/`.
pub(crate) fn get() -> Request<Full<Bytes>> {
    Request::new(Full::default())
}

/// Returns a request with these headers.
pub(crate) fn get_with(headers: &[(&'static str, &str)]) -> Request<Full<Bytes>> {
    let mut request = get();
    for (name, value) in headers {
        let value = value.parse().expect("a header value");
        request.headers_mut().append(*name, value);
    }
    request
}

/// Calls a service once, without a server.
pub(crate) async fn call<Svc, ResB>(service: &Svc, request: Request<Full<Bytes>>) -> Response<Bytes>
where
    Svc: Service<Request<Full<Bytes>>, Response = Response<ResB>> + Clone,
    Svc::Error: std::fmt::Debug,
    ResB: http_body::Body,
    ResB::Error: std::fmt::Debug,
{
    let answer = service.clone().oneshot(request).await;
    whole(answer.expect("no error")).await
}

pub(crate) async fn whole<B>(response: Response<B>) -> Response<Bytes>
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Response::from_parts(parts, body)
}

/// Returns the statuses of this many requests, one after the other.
pub(crate) async fn statuses<Svc, ResB>(
    service: &Svc,
    requests: impl IntoIterator<Item = Request<Full<Bytes>>>,
) -> Vec<u16>
where
    Svc: Service<Request<Full<Bytes>>, Response = Response<ResB>> + Clone,
    Svc::Error: std::fmt::Debug,
    ResB: http_body::Body,
    ResB::Error: std::fmt::Debug,
{
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(call(service, request).await.status().as_u16());
    }
    statuses
}

/// A server on a free port, which stops when dropped.
pub(crate) struct RunningServer {
    pub(crate) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl RunningServer {
    /// Starts a server with `serve` on a new listener.
    pub(crate) async fn start<F>(serve: impl FnOnce(TcpListener) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener));
        Self {
            address,
            _tasks: tasks,
        }
    }

    /// Sends a request over a new connection.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        ask(self.address, request).await
    }
}

pub(crate) async fn ask(address: SocketAddr, mut request: Request<Full<Bytes>>) -> Response<Bytes> {
    let host = address.to_string().parse().expect("a header value");
    request.headers_mut().insert("host", host);
    let stream = TcpStream::connect(address).await.expect("a connection");
    let connecting = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.expect("a client");
    let exchange = async move {
        let answer = sender.send_request(request).await;
        whole(answer.expect("an answer")).await
    };
    tokio::join!(exchange, connection).0
}

/// Returns a header of a response, as text.
pub(crate) fn header<'a>(answer: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    answer
        .headers()
        .get(name)
        .map(|it| it.to_str().expect("text"))
}
