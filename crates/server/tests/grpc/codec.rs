//! Tidegate's protobuf reader and writer compared with prost, in both directions.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::{
    RateLimitRequest, RateLimitResponse, rate_limit_response as pb,
};
use envoy_types::pb::google::protobuf::UInt64Value;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use tidegate_frontends::wire::rls::read::RlsCall;
use tidegate_frontends::wire::rls::write::{self, CurrentLimit, DescriptorStatus, RlsCode};
use tidegate_policy::{DescriptorHits, LimitOverride};

const DAY: u64 = 86_400;
const UNIT_SECONDS: [u64; 8] = [0, 1, 60, 3_600, DAY, 30 * DAY, 365 * DAY, 7 * DAY];

fn descriptors() -> impl Strategy<Value = Vec<RateLimitDescriptor>> {
    let entry = ("\\PC{0,12}", "\\PC{0,200}").prop_map(|(key, value)| Entry { key, value });
    let limit = (any::<u32>(), 0..9_i32).prop_map(|(requests_per_unit, unit)| RateLimitOverride {
        requests_per_unit,
        unit,
    });
    let hits = any::<u64>().prop_map(|value| UInt64Value { value });
    let descriptor = (
        vec(entry, 0..5),
        option::of(limit),
        option::of(hits),
        any::<bool>(),
    );
    let descriptor = descriptor.prop_map(|(entries, limit, hits_addend, is_negative_hits)| {
        RateLimitDescriptor {
            entries,
            limit,
            hits_addend,
            is_negative_hits,
        }
    });
    vec(descriptor, 0..6)
}

fn requests() -> impl Strategy<Value = RateLimitRequest> {
    ("\\PC{0,20}", descriptors(), any::<u32>()).prop_map(|(domain, descriptors, hits_addend)| {
        RateLimitRequest {
            domain,
            descriptors,
            hits_addend,
        }
    })
}

/// Returns the meaning of a descriptor as read by prost, with `Err` for a limit whose unit is
/// invalid.
fn meant(
    descriptor: &RateLimitDescriptor,
    cost: u64,
) -> (DescriptorHits<'static>, Result<Option<LimitOverride>, ()>) {
    let own = descriptor.hits_addend.as_ref().map(|hits| hits.value);
    let hits = match (own, descriptor.is_negative_hits) {
        (own, true) => DescriptorHits::GiveBack(own.unwrap_or(cost)),
        (Some(own), false) => DescriptorHits::Take(own),
        (None, false) => DescriptorHits::AsRequest,
    };
    let limit = descriptor.limit.as_ref().map(|limit| {
        let unit = usize::try_from(limit.unit).map_err(drop)?;
        match UNIT_SECONDS.get(unit) {
            None | Some(0) => Err(()),
            Some(seconds) => Ok(LimitOverride {
                amount: limit.requests_per_unit.into(),
                period_us: seconds * 1_000_000,
            }),
        }
    });
    (hits, limit.transpose())
}

/// Checks that Tidegate reads `bytes` like prost.
fn check(bytes: &[u8], request: &RateLimitRequest) -> Result<(), TestCaseError> {
    let call = RlsCall::read(bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(call.domain, &request.domain);
    prop_assert_eq!(call.hits, request.hits_addend);
    let cost = u64::from(request.hits_addend.max(1));
    let expected: Vec<_> = request
        .descriptors
        .iter()
        .map(|it| meant(it, cost))
        .collect();
    let is_wrong = request.domain.is_empty()
        || expected.is_empty()
        || expected.iter().any(|(_, limit)| limit.is_err());
    let Ok(found) = call.descriptors() else {
        prop_assert!(is_wrong);
        return Ok(());
    };
    prop_assert!(!is_wrong);
    prop_assert_eq!(found.len(), expected.len());
    for ((found, (hits, limit)), sent) in found.iter().zip(expected).zip(&request.descriptors) {
        prop_assert_eq!(found.hits, hits);
        prop_assert_eq!(Ok(found.limit), limit);
        let pairs: Vec<_> = sent
            .entries
            .iter()
            .map(|it| (&*it.key, &*it.value))
            .collect();
        prop_assert_eq!(found.entries, &pairs[..]);
    }
    Ok(())
}

proptest! {
    #[test]
    fn prost_messages_are_decoded(request in requests()) {
        check(&request.encode_to_vec(), &request)?;
    }

    /// Repeated messages are merged, as protobuf requires.
    #[test]
    fn concatenated_messages_are_merged_as_by_prost(first in requests(), second in requests()) {
        let bytes = [first.encode_to_vec(), second.encode_to_vec()].concat();
        check(&bytes, &RateLimitRequest::decode(&*bytes).unwrap())?;
    }

    #[test]
    fn messages_are_accepted_and_rejected_as_by_prost(
        request in requests(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = request.encode_to_vec();
        for (place, byte) in &flips {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
        }
        if flips.len() == 3 && !bytes.is_empty() {
            bytes.truncate(cut.index(bytes.len()));
        }
        match RateLimitRequest::decode(&*bytes) {
            Ok(read) => check(&bytes, &read)?,
            Err(_) => prop_assert!(RlsCall::read(&bytes).is_err()),
        }
    }

    #[test]
    fn prost_decodes_our_messages(
        is_over in any::<bool>(),
        statuses in vec((any::<bool>(), option::of((any::<u32>(), 0..8_usize, "\\PC{0,150}", any::<u32>())), any::<u32>()), 0..5),
        headers in vec(("[a-z-]{1,20}", vec(any::<u8>(), 0..30)), 0..4),
        body in vec(any::<u8>(), 0..300),
    ) {
        let code = |is_over| if is_over { RlsCode::OverLimit } else { RlsCode::Ok };
        let mut bytes = Vec::new();
        write::code(&mut bytes, code(is_over));
        for (is_over, limit, remaining) in &statuses {
            let limit = limit.as_ref().map(|(amount, unit, name, reset_s)| CurrentLimit {
                amount: *amount,
                period_us: UNIT_SECONDS[*unit] * 1_000_000,
                name,
                reset_s: (*reset_s).into(),
            });
            let status = DescriptorStatus { code: code(*is_over), limit, remaining: *remaining };
            write::status(&mut bytes, &status);
        }
        for (name, value) in &headers {
            write::response_header(&mut bytes, name, value);
        }
        write::raw_body(&mut bytes, &body);

        let read = RateLimitResponse::decode(&*bytes).unwrap();
        let number = |is_over| if is_over { pb::Code::OverLimit } else { pb::Code::Ok };
        prop_assert_eq!(read.overall_code(), number(is_over));
        prop_assert_eq!(&read.raw_body, &body);
        prop_assert_eq!(read.statuses.len(), statuses.len());
        for (read, (is_over, limit, remaining)) in read.statuses.iter().zip(&statuses) {
            prop_assert_eq!(read.code(), number(*is_over));
            prop_assert_eq!(read.limit_remaining, *remaining);
            let told = read.current_limit.as_ref();
            let told = told.map(|told| (told.requests_per_unit, told.unit, told.name.clone()));
            let sent = limit.clone().map(|(amount, unit, name, _)| (amount, i32::try_from(unit).unwrap(), name));
            prop_assert_eq!(told, sent);
            let reset = read.duration_until_reset.as_ref().map(|it| it.seconds);
            prop_assert_eq!(reset, limit.as_ref().map(|it| i64::from(it.3)));
        }
        for (read, (name, value)) in read.response_headers_to_add.iter().zip(&headers) {
            prop_assert_eq!(&read.key, name);
            let found = if read.raw_value.is_empty() { read.value.as_bytes() } else { &read.raw_value };
            prop_assert_eq!(found, value);
        }
    }
}
