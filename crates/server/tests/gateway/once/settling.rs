//! Reservations and their settlement, over HTTP and gRPC.

use super::messages::{
    CommitRequest, CommitResponse, OK, OVER_LIMIT, ReserveRequest, ReserveResponse,
};
use super::{AllListeners, EXEMPTING, NO_GUARDS, REFUSING, TOKEN, everywhere, of_path, work};
use crate::kit::modern::{H2, body};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use http::Request;
use prost::Message;
use serde_json::Value;
use tidegate_policy::work::WorkCounts;

/// A settlement finds its bucket by the id, without identification and matching.
const SETTLED: WorkCounts = WorkCounts {
    store_calls: 1,
    ..WorkCounts::NONE
};

/// A report matches its limits, and charges them.
const REPORTED: WorkCounts = WorkCounts {
    matchings: 1,
    store_calls: 1,
    ..WorkCounts::NONE
};

impl AllListeners {
    /// Calls a method of Kuadrant's service, and returns the response message.
    async fn kuadrant(&self, method: &str, message: &impl Message) -> Vec<u8> {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let framed = [&[0], &length[..], &message].concat();
        let service = "kuadrant.service.ratelimit.v1.RateLimitService";
        let request = Request::post(format!("http://{}/{service}/{method}", self.grpc))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let request = request.body(body(framed, &[])).unwrap();
        let answered = H2::connect(self.grpc).await.ask(request).await;
        let trailers = answered.trailers.as_ref();
        let status = trailers.and_then(|trailers| trailers.get("grpc-status"));
        assert_eq!(status.unwrap(), "0", "{method}: {answered:?}");
        answered.body[5..].to_vec()
    }

    /// Reserves over gRPC, and returns the id; it is empty if a guard refuses.
    async fn reserve(&self) -> String {
        let request = ReserveRequest {
            domain: "spend".to_owned(),
            descriptors: vec![of_path()],
            amount: 5,
            ttl: None,
        };
        let reserved = self.kuadrant("Reserve", &request).await;
        let reserved = ReserveResponse::decode(&*reserved).unwrap();
        assert_eq!(reserved.code, if self.refuses { OVER_LIMIT } else { OK });
        assert_eq!(reserved.reservation_id.is_empty(), self.refuses);
        reserved.reservation_id
    }

    async fn commit(&self, id: &str, is_released: bool) {
        let request = CommitRequest {
            domain: "spend".to_owned(),
            descriptors: vec![of_path()],
            reservation_id: id.to_owned(),
            actual_amount: 3,
        };
        let committed = self.kuadrant("Commit", &request).await;
        let committed = CommitResponse::decode(&*committed).unwrap();
        assert_eq!(committed.reservation_released, is_released);
    }

    async fn report(&self) {
        let request = RateLimitRequest {
            domain: "edge".to_owned(),
            descriptors: vec![of_path()],
            hits_addend: 3,
        };
        self.kuadrant("Report", &request).await;
    }
}

#[tokio::test]
async fn a_reservation_over_grpc_is_decided_once_and_settled_once() {
    everywhere(&[NO_GUARDS, REFUSING, EXEMPTING], async |all, with| {
        let mut id = String::new();
        let done = work(async { id = all.reserve().await });
        all.assert_once(done.await, (0, 1), &format!("Reserve, {with}"));
        if !all.refuses {
            let done = work(all.commit(&id, true)).await;
            assert_eq!(done, SETTLED, "Commit, {with}");
        }
        // Without an id it is a report. Guards do not apply to reports.
        let done = work(all.commit("", false)).await;
        assert_eq!(done, REPORTED, "Commit without an id, {with}");
        let done = work(all.report()).await;
        assert_eq!(done, REPORTED, "Report, {with}");
    })
    .await;
}

#[tokio::test]
async fn a_reservation_over_http_is_settled_by_one_call_of_the_store() {
    let question =
        format!(r#"{{"policy": "calls", "headers": {{"authorization": "Bearer {TOKEN}"}}}}"#);
    everywhere(&[NO_GUARDS, EXEMPTING], async |all, with| {
        for (path, actual) in [("/v1/commit", r#", "actual": 0"#), ("/v1/refund", "")] {
            let reserved = all.post("/v1/reserve", &question).await;
            let reserved: Value = serde_json::from_str(&reserved).unwrap();
            let id = reserved["reservation"].as_str().unwrap();
            let settlement = format!(r#"{{"reservation": "{id}"{actual}}}"#);
            let done = work(async {
                let settled = all.post(path, &settlement).await;
                assert!(settled.contains(r#""state":"settled""#), "{settled}");
            });
            assert_eq!(done.await, SETTLED, "{path}, {with}");
        }
    })
    .await;
}
