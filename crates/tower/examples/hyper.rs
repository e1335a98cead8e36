//! Limits in code, in front of a plain hyper service: by user, with a smaller limit for anonymous
//! requests.
//!
//! Run it with `cargo run -p tidegate-tower --example hyper`. It starts a server on a free port, sends
//! requests, and ends.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use tidegate::{KeyPart, LimitSpec, Limiter, MissingIdentity};
use tidegate_tower::RateLimitLayer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::{Layer as _, service_fn};

/// The application.
async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let per_user = LimitSpec::new("per-user")
        .key(KeyPart::User)
        .band("1/min burst 3");
    let strangers = LimitSpec::new("strangers").key(KeyPart::Ip).band("1/min");
    let limiter = Limiter::builder()
        .limit(per_user.missing(MissingIdentity::Skip))
        .limit(strangers)
        .first_decides()
        .build()?;
    // A real service trusts a header only after it has authenticated the user.
    let limits = RateLimitLayer::new(limiter).user(|head| head.header("x-user").map(Into::into));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let statuses = tokio::select! {
        statuses = ask(address) => statuses?,
        stopped = serve(listener, limits) => return stopped,
    };
    assert_eq!(statuses, [200, 200, 200, 429, 200, 429]);
    Ok(())
}

async fn serve(listener: TcpListener, limits: RateLimitLayer) -> Result<(), Box<dyn Error>> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = listener.accept().await?;
        // One service per connection, because it stores the peer address.
        let service = limits.layer(service_fn(hello)).peer(peer);
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        connections.spawn(async move { drop(serving.await) });
    }
}

/// Sends four requests as ann, and two anonymous ones.
async fn ask(address: SocketAddr) -> Result<Vec<u16>, Box<dyn Error>> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    let exchange = async move {
        let mut statuses = Vec::new();
        for user in ["ann", "ann", "ann", "ann", "", ""] {
            let request = Request::get("/")
                .header("host", "localhost")
                .header("x-user", user);
            let answer = sender
                .send_request(request.body(Empty::<Bytes>::new())?)
                .await?;
            let (head, body) = answer.into_parts();
            let body = body.collect().await?.to_bytes();
            let user = if user.is_empty() { "nobody" } else { user };
            println!("{user}: {} {}", head.status, String::from_utf8_lossy(&body));
            statuses.push(head.status.as_u16());
        }
        Ok(statuses)
    };
    // The connection ends when its sender is dropped.
    let (statuses, _) = tokio::join!(exchange, connection);
    statuses
}
