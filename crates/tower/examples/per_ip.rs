//! One limit by address in front of an axum application, with refusals in the application's own format.
//!
//! Run it with `cargo run -p tidegate-tower --example per_ip`. It starts a server on a free port, sends four
//! requests, and ends.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::SocketAddr;
use tidegate::{CheckError, Decision, Rate};
use tidegate_tower::{RateLimitLayer, RequestHead};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limits = RateLimitLayer::per_ip(Rate::per_minute(1).burst(2))?
        .on_refusal(refused)
        .on_error(undecided);
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(limits)
        // This adds the peer address to each request, which the layer counts by.
        .into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = axum::serve(listener, app);
    let statuses = tokio::select! {
        statuses = ask(address) => statuses?,
        stopped = server => return Err(format!("the server stopped: {stopped:?}").into()),
    };
    assert_eq!(statuses, [200, 200, 429, 429]);
    Ok(())
}

/// Writes a refusal. The layer adds `Retry-After` and the rate limit headers.
fn refused(_: RequestHead<'_>, decision: &Decision) -> Response<String> {
    // Names of limits need no escaping. A part of the request, such as its path, would.
    let limit = decision.limit().unwrap_or("none");
    let body = format!("{{\"error\":\"slow_down\",\"limit\":\"{limit}\"}}");
    json(StatusCode::TOO_MANY_REQUESTS, body)
}

/// Writes the response if there is no decision, which cannot happen with buckets in memory.
fn undecided(_: RequestHead<'_>, error: &CheckError) -> Response<String> {
    println!("not decided: {error}");
    json(
        StatusCode::SERVICE_UNAVAILABLE,
        "{\"error\":\"unavailable\"}".into(),
    )
}

fn json(status: StatusCode, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Sends four requests over one connection.
async fn ask(address: SocketAddr) -> Result<Vec<u16>, Box<dyn Error>> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async move {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            let request = http::Request::get("/").header("host", "localhost");
            let request = request.body(Empty::<Bytes>::new())?;
            let answer = sender.send_request(request).await?;
            statuses.push(answer.status().as_u16());
            let wait = answer.headers().get("retry-after").cloned();
            let body = answer.into_body().collect().await?.to_bytes();
            println!("{} (retry after: {wait:?})", String::from_utf8_lossy(&body));
        }
        Ok(statuses)
    };
    // The connection ends when its sender is dropped.
    let (statuses, _) = tokio::join!(exchange, connection);
    statuses
}
