//! The floor of the gateway benchmark: a minimal reverse proxy to one upstream.
//!
//! hyper's server in front, hyper-util's pooled client behind, Tidegate's allocator. It forwards
//! every header (hop-by-hop ones too), adds none, accepts any framing that hyper accepts, and
//! bounds neither time nor size: do not use it as a proxy. The extra cost of Tidegate's gateway is
//! the cost of its features.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::thread;

use anyhow::Context as _;
use clap::Parser;
use hyper::body::Incoming;
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Uri, Version};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The maximum number of connections to be accepted; the kernel has a lower bound.
const BACKLOG: u32 = 4096;

/// Forwards requests to one upstream.
#[derive(Parser)]
struct Options {
    /// Where to listen for HTTP/1.1
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where to listen for HTTP/2 without TLS, by prior knowledge
    #[arg(long, value_name = "ADDRESS")]
    listen_http2: Option<SocketAddr>,
    /// The port of the upstream, on the loopback address, for HTTP/1.1
    #[arg(long, value_name = "PORT")]
    upstream: u16,
    /// One runtime whose threads share all work, as Tidegate's, instead of one runtime per thread
    #[arg(long)]
    shared_runtime: bool,
}

#[derive(Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
}

/// The client for forwarding. Every runtime has a separate pool.
#[derive(Clone)]
struct Proxy {
    client: Client<HttpConnector, Incoming>,
    upstream: Authority,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if options.shared_runtime {
        let runtime = runtime::Builder::new_multi_thread().enable_io().build();
        return runtime
            .context("starting the runtime")?
            .block_on(serve(&options));
    }
    // The cores of this process, not those of the machine.
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| alone(&options)))
            .collect();
        running.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
        })
    })
}

/// Runs a thread with a separate runtime, listeners and a pool.
fn alone(options: &Options) -> anyhow::Result<()> {
    runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("starting a runtime")?
        .block_on(serve(options))
}

async fn serve(options: &Options) -> anyhow::Result<()> {
    let proxy = Proxy::to(options.upstream)?;
    if let Some(address) = options.listen_http2 {
        let listener = listen(address)?;
        tokio::spawn(accept(listener, proxy.clone(), Protocol::Http2));
    }
    accept(listen(options.listen)?, proxy, Protocol::Http1).await
}

/// Listens on the same port in every thread; the kernel distributes connections.
fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let opened = || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    opened().with_context(|| format!("listening on {address}"))
}

async fn accept(listener: TcpListener, proxy: Proxy, protocol: Protocol) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await.context("accepting")?;
        stream.set_nodelay(true).context("setting TCP_NODELAY")?;
        tokio::spawn(connection(stream, proxy.clone(), protocol));
    }
}

/// Ignores broken connections: the load generator counts its own errors.
async fn connection(stream: TcpStream, proxy: Proxy, protocol: Protocol) {
    let io = TokioIo::new(stream);
    let service = service_fn(move |request| proxy.pass_on(request));
    match protocol {
        Protocol::Http1 => http1::Builder::new()
            .writev(false)
            .header_read_timeout(None)
            .serve_connection(io, service)
            .await
            .ok(),
        Protocol::Http2 => http2::Builder::new(TokioExecutor::new())
            .serve_connection(io, service)
            .await
            .ok(),
    };
}

impl Proxy {
    fn to(port: u16) -> anyhow::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .http1_writev(false)
            .build(connector);
        let upstream = Authority::try_from(format!("{}:{port}", Ipv4Addr::LOCALHOST))
            .context("naming the upstream")?;
        Ok(Self { client, upstream })
    }

    fn pass_on(&self, mut request: Request<Incoming>) -> ResponseFuture {
        *request.uri_mut() = self.at_upstream(request.uri());
        *request.version_mut() = Version::HTTP_11;
        self.client.request(request)
    }

    fn at_upstream(&self, asked: &Uri) -> Uri {
        let mut parts = Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.upstream.clone());
        let root = || PathAndQuery::from_static("/");
        parts.path_and_query = Some(asked.path_and_query().cloned().unwrap_or_else(root));
        Uri::from_parts(parts).expect("scheme, authority and path make a URI")
    }
}
