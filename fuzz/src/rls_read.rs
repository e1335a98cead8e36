//! Any bytes as a call of Envoy's rate limit service: Tidegate reads what prost reads, and rejects
//! what it rejects, apart from its bounds.

use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use prost::Message;
use tidegate_frontends::wire::rls::json;
use tidegate_frontends::wire::rls::read::{RlsCall, DESCRIPTORS_MAX, ENTRIES_MAX};

fuzz_target!(|bytes: &[u8]| {
    match (RlsCall::read(bytes), RateLimitRequest::decode(bytes)) {
        (Ok(call), Ok(request)) => check(&call, &request),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("prost refuses it: {error}"),
        (Err(error), Ok(request)) => assert!(is_beyond_bounds(&request) || is_deep(error.words())),
    }
    // A message read from JSON is valid, and the response can be written as JSON.
    if let Ok(message) = json::to_request(bytes) {
        assert!(RateLimitRequest::decode(&*message).is_ok());
    }
    if RateLimitResponse::decode(bytes).is_ok() {
        let json = json::of_response(bytes);
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    }
});

fn check(call: &RlsCall<'_>, request: &RateLimitRequest) {
    assert_eq!(call.domain, request.domain);
    assert_eq!(call.hits, request.hits_addend);
    let Ok(descriptors) = call.descriptors() else {
        let has_no_unit = |unit: i32| !(1..=7).contains(&unit);
        let mut limits = request
            .descriptors
            .iter()
            .filter_map(|it| it.limit.as_ref());
        assert!(
            request.domain.is_empty()
                || request.descriptors.is_empty()
                || limits.any(|limit| has_no_unit(limit.unit))
        );
        return;
    };
    assert_eq!(descriptors.len(), request.descriptors.len());
    for (ours, theirs) in descriptors.iter().zip(&request.descriptors) {
        let pairs = theirs.entries.iter().map(|it| (&*it.key, &*it.value));
        assert!(pairs.eq(ours.entries.iter().copied()));
        let amount = ours.limit.map(|limit| limit.amount);
        let told = theirs.limit.as_ref();
        assert_eq!(amount, told.map(|limit| limit.requests_per_unit.into()));
    }
}

fn is_beyond_bounds(request: &RateLimitRequest) -> bool {
    let mut each = request.descriptors.iter();
    request.descriptors.len() > DESCRIPTORS_MAX || each.any(|it| it.entries.len() > ENTRIES_MAX)
}

/// Groups, which are long obsolete, may be nested less deeply than in prost.
fn is_deep(words: &str) -> bool {
    words == "groups are nested too deeply"
}
