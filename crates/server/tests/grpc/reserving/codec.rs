//! Tidegate's reader of reservations compared with prost.

use super::committing;
use super::messages::{CommitRequest, ReserveRequest};
use crate::kit::descriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::google::protobuf::Duration;
use proptest::prelude::*;
use prost::Message;
use tidegate_frontends::wire::rls::reserve as wire;
use tidegate_policy::DescriptorHits;

fn descriptors() -> impl Strategy<Value = Vec<RateLimitDescriptor>> {
    let pairs = prop::collection::vec(("\\PC{1,8}", "\\PC{0,40}"), 0..4);
    let one = (pairs, any::<bool>()).prop_map(|(pairs, is_negative_hits)| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        RateLimitDescriptor {
            is_negative_hits,
            ..descriptor(&pairs)
        }
    });
    prop::collection::vec(one, 1..4)
}

fn ttls() -> impl Strategy<Value = Option<Duration>> {
    let numbers = prop_oneof![
        (any::<i64>(), any::<i32>()),
        (0..100_i64, 0..2_000_000_000_i32),
    ];
    prop::option::of(numbers.prop_map(|(seconds, nanos)| Duration { seconds, nanos }))
}

/// Returns the meaning of a duration, with `Err` if it is no valid lifetime.
fn meant(ttl: Option<&Duration>) -> Result<Option<std::time::Duration>, ()> {
    let Some(ttl) = ttl else { return Ok(None) };
    let seconds = u64::try_from(ttl.seconds).map_err(drop)?;
    let nanos = u32::try_from(ttl.nanos).map_err(drop)?;
    let length = std::time::Duration::new(seconds, nanos.min(999_999_999));
    if nanos > 999_999_999 || length.as_micros() == 0 {
        return Err(());
    }
    Ok(Some(length))
}

/// Returns the entries of each descriptor, and its share of `amount`.
fn entries(
    descriptors: &[RateLimitDescriptor],
    amount: u64,
) -> Vec<(Vec<(&str, &str)>, DescriptorHits<'static>)> {
    let each = descriptors.iter();
    each.map(|it| {
        let pairs = it.entries.iter().map(|it| (&*it.key, &*it.value));
        let hits = if it.is_negative_hits {
            DescriptorHits::GiveBack(amount)
        } else {
            DescriptorHits::AsRequest
        };
        (pairs.collect(), hits)
    })
    .collect()
}

proptest! {
    #[test]
    fn prost_reservation_messages_are_decoded(
        domain in "\\PC{1,20}",
        of in (descriptors(), descriptors()),
        amounts in any::<[u64; 2]>(),
        ttl in ttls(),
        id in "\\PC{0,40}",
    ) {
        // Concatenated messages, as protobuf allows: lists are appended, and the last number
        // counts.
        let first = ReserveRequest {
            domain: "first".to_owned(), descriptors: of.0, amount: amounts[0], ttl: None,
        };
        let second = ReserveRequest {
            domain: domain.clone(), descriptors: of.1, amount: amounts[1], ttl,
        };
        let bytes = [first.encode_to_vec(), second.encode_to_vec()].concat();
        let expected = ReserveRequest::decode(&*bytes).unwrap();
        let read = wire::Reserve::read(&bytes).unwrap();
        prop_assert_eq!((read.domain(), read.amount), (&*expected.domain, expected.amount));
        prop_assert_eq!(read.ttl().map_err(drop), meant(expected.ttl.as_ref()));
        let found = read.descriptors().unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.entries.to_vec(), it.hits)).collect();
        prop_assert_eq!(found, entries(&expected.descriptors, expected.amount));

        let commit = CommitRequest {
            domain, descriptors: expected.descriptors, reservation_id: id, actual_amount: amounts[0],
        };
        let bytes = commit.encode_to_vec();
        let read = wire::Commit::read(&bytes).unwrap();
        prop_assert_eq!(
            (read.domain(), read.reservation, read.actual),
            (&*commit.domain, &*commit.reservation_id, commit.actual_amount)
        );
        let found = read.descriptors().unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.entries.to_vec(), it.hits)).collect();
        prop_assert_eq!(found, entries(&commit.descriptors, commit.actual_amount));
    }

    #[test]
    fn reservation_messages_are_rejected_as_by_prost(
        descriptors in descriptors(),
        ttl in ttls(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let request = ReserveRequest { domain: "d".to_owned(), descriptors, amount: 300, ttl };
        let mut bytes = request.encode_to_vec();
        for (place, byte) in &flips {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        let theirs = ReserveRequest::decode(&*bytes).is_ok();
        prop_assert_eq!(wire::Reserve::read(&bytes).is_ok(), theirs);
        let theirs = CommitRequest::decode(&*bytes).is_ok();
        prop_assert_eq!(wire::Commit::read(&bytes).is_ok(), theirs);
    }
}

#[test]
fn ids_are_not_shown() {
    let bytes = committing("r1secret", 1).encode_to_vec();
    let shown = format!("{:?}", wire::Commit::read(&bytes).unwrap());
    assert!(
        shown.contains("actual") && !shown.contains("secret"),
        "{shown}"
    );
}
