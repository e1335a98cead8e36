//! The floor of the HTTP benchmark: reads the body of every request, and sends the same JSON. For
//! `GET`, as in forward-auth, it sends an empty 200, at `/told` with rate limit headers.
//!
//! Same library and settings as Tidegate's HTTP listener (hyper 1, HTTP/1.1, flat writes,
//! `TCP_NODELAY`, a multi-thread runtime), without a limiter. The extra cost of Tidegate is
//! parsing, deciding, and its bounds on time and size.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

/// As long as a real decision.
const ANSWER: &[u8] = br#"{"allowed":true,"limit":"per-user","band":"7/s burst 4000000000","remaining":3999999999,"retry_after_ms":0,"reset_ms":143}"#;

/// The path at which `GET` gets as many headers as forward-auth sends for a limit.
const TOLD_PATH: &str = "/told";

const TOLD: [(&str, &str); 5] = [
    ("x-ratelimit-limit", "4000000000"),
    ("x-ratelimit-remaining", "3999999999"),
    ("x-ratelimit-reset", "1795000001"),
    ("ratelimit-policy", "\"per-ip\";q=4000000000;w=571428572"),
    ("ratelimit", "\"per-ip\";r=3999999999;t=1"),
];

/// Serves a constant answer.
#[derive(Parser)]
struct Options {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// One thread for everything, instead of a worker for each core
    #[arg(long)]
    current_thread: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = if options.current_thread {
        runtime::Builder::new_current_thread().enable_io().build()
    } else {
        runtime::Builder::new_multi_thread().enable_io().build()
    }
    .context("starting the runtime")?;
    runtime.block_on(serve(options.listen))
}

async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listening on {address}"))?;
    loop {
        let (stream, _) = listener.accept().await.context("accepting")?;
        stream.set_nodelay(true).context("setting TCP_NODELAY")?;
        tokio::spawn(connection(stream));
    }
}

/// Ignores broken connections: the load generator counts its own errors.
async fn connection(stream: TcpStream) {
    http1::Builder::new()
        .writev(false)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await
        .ok();
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        let mut response = Response::default();
        if request.uri().path() == TOLD_PATH {
            let fields = TOLD.map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            });
            response.headers_mut().extend(fields);
        }
        return Ok(response);
    }
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER)));
    if request.into_body().collect().await.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
