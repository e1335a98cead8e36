//! Limits in front of an axum application: three requests at once for each client, then one per minute.
//!
//! Run it with `cargo run -p tidegate-tower --example axum`. It starts a server on a free port, sends
//! five requests, and ends.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::SocketAddr;
use tidegate::Limiter;
use tidegate_tower::RateLimitLayer;
use tokio::net::{TcpListener, TcpStream};

const LIMITS: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/min burst 3 }
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limits = RateLimitLayer::new(Limiter::from_yaml(LIMITS)?);
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(limits)
        // Without it the client address is unknown: all clients would share one bucket.
        .into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = axum::serve(listener, app);
    let statuses = tokio::select! {
        statuses = ask(address) => statuses?,
        stopped = server => return Err(format!("the server stopped: {stopped:?}").into()),
    };
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    Ok(())
}

/// Sends five requests over one connection.
async fn ask(address: SocketAddr) -> Result<Vec<u16>, Box<dyn Error>> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async move {
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let request = http::Request::get("/").header("host", "localhost");
            let answer = sender
                .send_request(request.body(Empty::<Bytes>::new())?)
                .await?;
            statuses.push(answer.status().as_u16());
            let header = |name| answer.headers().get(name).and_then(|it| it.to_str().ok());
            println!(
                "{}: {} left, retry after {} s",
                answer.status(),
                header("x-ratelimit-remaining").unwrap_or("?"),
                header("retry-after").unwrap_or("0"),
            );
            let body = answer.into_body().collect().await?.to_bytes();
            println!("  {}", String::from_utf8_lossy(&body));
        }
        Ok(statuses)
    };
    // The connection ends when its sender is dropped.
    let (statuses, _) = tokio::join!(exchange, connection);
    statuses
}
