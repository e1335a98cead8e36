//! Kuadrant's messages, for prost.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::google::protobuf::Duration;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReserveRequest {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<RateLimitDescriptor>,
    #[prost(uint64, tag = "3")]
    pub(super) amount: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) ttl: Option<Duration>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReserveResponse {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) reservation_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CommitRequest {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) descriptors: Vec<RateLimitDescriptor>,
    #[prost(string, tag = "3")]
    pub(super) reservation_id: String,
    #[prost(uint64, tag = "4")]
    pub(super) actual_amount: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CommitResponse {
    #[prost(bool, tag = "1")]
    pub(super) reservation_released: bool,
}

pub(super) const OK: i32 = 1;
pub(super) const OVER_LIMIT: i32 = 2;
