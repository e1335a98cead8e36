//! Inspecting a bucket with another quota, as clients do that know only its name.

use crate::world::{self, World};
use tidegate_core::{Algorithm, Align, Ask, Quota};
use tidegate_redis::{Layout, OpenLayout, RedisOptions, TokenFields};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::Server;

const SECOND_US: u64 = 1_000_000;
const HOUR_US: u64 = 3_600 * SECOND_US;

fn quota(algorithm: Algorithm, amount: u64, period_us: u64) -> Quota {
    let quota = Quota::new(amount, period_us).algorithm(algorithm);
    quota.label("any").build().expect("a valid quota")
}

/// Returns the value of a key and the instant at which it expires.
fn stored(server: &Server, key: &[u8]) -> (Vec<u8>, i64) {
    let value = server.command(&[b"DUMP", key]).good().bytes().to_vec();
    (value, server.command(&[b"PEXPIRETIME", key]).good().int())
}

#[test]
fn a_read_with_another_quota_refilled_the_bucket() {
    let server = Server::start();
    let open = |fields| Layout::Open(OpenLayout::new().unknown_tokens(fields));
    for (layout, name) in [
        (Layout::Packed, "packed"),
        (open(TokenFields::Millis), "open, millis"),
        (open(TokenFields::Nanos), "open, nanos"),
    ] {
        let options = RedisOptions::default().layout(layout);
        let world = World::new(world::standalone(&server), options);
        for algorithm in [
            Algorithm::TokenBucket,
            Algorithm::FixedWindow(Align::FirstRequest),
            Algorithm::FixedWindow(Align::Clock),
            Algorithm::SlidingWindow,
            Algorithm::SlidingLog,
            Algorithm::BucketedWindow,
        ] {
            let used = quota(algorithm, 4, 4 * HOUR_US);
            let other = quota(algorithm, 1, SECOND_US);
            let bucket = format!("a/b/{algorithm:?}");
            let take = || {
                world
                    .decide(&[Ask::take(bucket.as_bytes(), &used, 1)])
                    .passed
            };
            let passed = [take(), take(), take(), take(), take()];
            assert_eq!(passed, [true, true, true, true, false], "{name} {bucket}");
            let (key, _) = world.store.place(bucket.as_bytes(), &used);
            let before = stored(&server, &key);
            for quota in [&other, &other, &used] {
                world.inspect(bucket.as_bytes(), quota);
                assert_eq!(stored(&server, &key), before, "{name} {bucket}");
            }
            world.advance_micros(SECOND_US + SECOND_US / 5);
            assert!(!take(), "{name} {bucket}");
            assert!(world.reset(bucket.as_bytes(), &used), "{name} {bucket}");
            assert!(take(), "{name} {bucket}");
        }
    }
}
