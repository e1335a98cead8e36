//! The cost of a call of Envoy's rate limit service in tonic: the message is decoded into structs,
//! and a constant response of the size of Tidegate's is encoded.

use anyhow::Result;
use clap::Parser;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::Duration;
use std::net::SocketAddr;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// Where to listen
    #[arg(long)]
    listen: SocketAddr,
}

struct Constant;

#[tonic::async_trait]
impl RateLimitService for Constant {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let descriptors = request.into_inner().descriptors;
        let statuses = descriptors.iter().map(|_| DescriptorStatus {
            code: Code::Ok.into(),
            current_limit: Some(RateLimit {
                name: "per-user".to_owned(),
                requests_per_unit: 4_000_000_000,
                unit: Unit::Hour.into(),
            }),
            limit_remaining: 3_999_999_999,
            duration_until_reset: Some(Duration {
                seconds: 1_800,
                nanos: 0,
            }),
            quota: None,
        });
        Ok(Response::new(RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses: statuses.collect(),
            ..Default::default()
        }))
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = Server::builder()
        .tcp_nodelay(true)
        .add_service(RateLimitServiceServer::new(Constant))
        .serve(args.listen);
    runtime.block_on(served)?;
    Ok(())
}
