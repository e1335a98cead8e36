//! Limits in front of a gRPC server: a refused call gets `RESOURCE_EXHAUSTED`, and the time to wait.
//!
//! Run it with `cargo run -p tidegate-tower --example tonic`. It starts a server on a free port, calls
//! it five times, and ends.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use tidegate::Limiter;
use tidegate_tower::RateLimitLayer;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;
use tonic_types::StatusExt as _;

/// A method is a path: `/package.Service/Method`.
const LIMITS: &str = "
policies:
  - name: grpc
    limits:
      - name: checks
        match: { path: /grpc.health.v1.Health/Check }
        key: ip
        rate: 1/min burst 3
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Any service works; this one is part of tonic.
    let (_reporter, health) = health_reporter();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let server = Server::builder()
        .layer(RateLimitLayer::new(Limiter::from_yaml(LIMITS)?))
        .add_service(health)
        .serve_with_incoming(incoming);
    let codes = tokio::select! {
        codes = ask(format!("http://{address}")) => codes?,
        stopped = server => return Err(format!("the server stopped: {stopped:?}").into()),
    };
    let (ok, refused) = (Code::Ok, Code::ResourceExhausted);
    assert_eq!(codes, [ok, ok, ok, refused, refused]);
    Ok(())
}

/// Makes five calls.
async fn ask(address: String) -> Result<Vec<Code>, Box<dyn Error>> {
    let channel = Endpoint::from_shared(address)?.connect().await?;
    let mut client = HealthClient::new(channel);
    let mut codes = Vec::new();
    for _ in 0..5 {
        let code = match client.check(HealthCheckRequest::default()).await {
            Ok(answer) => {
                let left = answer.metadata().get("x-ratelimit-remaining");
                println!("ok, {left:?} left");
                Code::Ok
            }
            Err(status) => {
                let details = status.get_error_details();
                let retry_delay = details.retry_info().and_then(|info| info.retry_delay);
                println!("{:?}: {} {retry_delay:?}", status.code(), status.message());
                status.code()
            }
        };
        codes.push(code);
    }
    Ok(codes)
}
