//! Keys and values as documented, byte for byte.

use crate::open_kit::{Open, add, built, by_the_clock, layout};
use crate::world;
use tidegate_core::{Algorithm, Align, Ask, Quota, Store, StoreErrorKind};
use tidegate_redis::OpenLayout;
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::Server;

const SECOND: u64 = 1_000_000;
const ROUTE: &str = "550e8400-e29b-41d4-a716-446655440000";

fn log_of_ten() -> Quota {
    built(Quota::new(10, SECOND).algorithm(Algorithm::SlidingLog))
}

fn window(amount: u64, seconds: u64) -> Quota {
    let spec = Quota::new(amount, seconds * SECOND);
    built(spec.algorithm(Algorithm::FixedWindow(Align::FirstRequest)))
}

#[test]
fn hgetall_shows_decimal_tokens_and_last_refill_in_ms() {
    let quota = built(Quota::new(1, SECOND).burst(16));
    let open = Open::new(layout("gateway/orders", "ratelimit:{route}:{ip}", &[]));
    let bucket = format!("gateway/orders/route:{ROUTE},ip:192.168.1.100");
    let hgetall = format!("HGETALL ratelimit:{ROUTE}:192.168.1.100");
    open.advance(8_955_999_500_000);
    open.take(&bucket, &quota, 1);
    open.advance(500_000);
    open.take(&bucket, &quota, 1);
    let exact = "14.5 1708956000000 1 1500000 0";
    let shown = ["tokens", "14.5", "lastRefill", "1708956000000", "tg", exact];
    assert_eq!(open.texts(&hgetall), shown);

    // An instant between two milliseconds is stored as the next.
    open.advance(1);
    open.take(&bucket, &quota, 1);
    let exact = "13.501 1708956000001 1 2499000 0";
    let shown = [
        "tokens",
        "13.501",
        "lastRefill",
        "1708956000001",
        "tg",
        exact,
    ];
    assert_eq!(open.texts(&hgetall), shown);

    // A refundable bucket stores the data for refunds in a field of Tidegate's.
    let thirds = built(Quota::new(3, SECOND).burst(16).refundable(true));
    let bucket = format!("gateway/orders/route:{ROUTE},ip:192.168.1.101");
    open.advance(999);
    open.take(&bucket, &thirds, 2);
    open.advance(111_000);
    open.take(&bucket, &thirds, 1);
    let exact = "13.333 1708956000112 1 889000 0 -111000 0";
    let shown = [
        "tokens",
        "13.333",
        "lastRefill",
        "1708956000112",
        "tg",
        exact,
    ];
    let hgetall = format!("HGETALL ratelimit:{ROUTE}:192.168.1.101");
    assert_eq!(open.texts(&hgetall), shown);
    open.audit();
}

#[test]
fn each_band_has_its_hash_with_nanoseconds() {
    let second = built(Quota::new(10, SECOND).label("10-per-second"));
    let minute = built(Quota::new(100, 60 * SECOND).label("100-per-minute"));
    let plain = built(Quota::new(5, SECOND));
    let template = "fluxgate:{policy}:{limit}:{key}:{band}";
    let bands = [(&second, "10-per-second"), (&minute, "100-per-minute")];
    let two = layout("api-limits/per-ip-rule", template, &bands);
    let open = Open::new(add(
        two,
        "api-limits/rule-3",
        template,
        &[(&plain, "default")],
    ));
    let bucket = b"api-limits/per-ip-rule/ip:192.168.1.100";
    open.advance(1);
    let asks = [Ask::take(bucket, &second, 3), Ask::take(bucket, &minute, 3)];
    assert!(open.world.decide(&asks).passed);
    open.take("api-limits/rule-3/global", &plain, 1);

    let mut keys = open.texts("KEYS *");
    keys.sort_unstable();
    let expected = [
        "fluxgate:api-limits:per-ip-rule:192.168.1.100:10-per-second",
        "fluxgate:api-limits:per-ip-rule:192.168.1.100:100-per-minute",
        "fluxgate:api-limits:rule-3:global:default",
    ];
    assert_eq!(keys, expected);
    let [second, minute, _] = expected.map(|key| open.texts(&format!("HGETALL {key}")));
    let exact = "7 1700000000000001000 1 300000 0";
    let nanos = ["last_refill_nanos", "1700000000000001000"];
    assert_eq!(second, [["tokens", "7"], nanos, ["tg", exact]].concat());
    let exact = "97 1700000000000001000 1 1800000 0";
    assert_eq!(minute, [["tokens", "97"], nanos, ["tg", exact]].concat());
    // A refusal by one band writes nothing to any band.
    let before = open.texts(&format!("HGETALL {}", expected[1]));
    let quota = built(Quota::new(10, SECOND).label("10-per-second"));
    let other = built(Quota::new(100, 60 * SECOND).label("100-per-minute"));
    let asks = [Ask::take(bucket, &quota, 8), Ask::take(bucket, &other, 8)];
    assert!(!open.world.decide(&asks).passed);
    assert_eq!(open.texts(&format!("HGETALL {}", expected[1])), before);
    open.audit();
}

#[test]
fn a_sorted_set_has_a_member_for_each_unit() {
    let quota = log_of_ten();
    let open = Open::new(layout("p/l", "{subject}", &[]));
    open.advance(5);
    open.take("p/l/ip:192.168.1.1", &quota, 1);
    let first = "1700000000000005000";
    assert_eq!(open.texts("ZRANGE ip:192.168.1.1 0 -1"), [first]);
    // Units of the same microsecond count down from it.
    open.take("p/l/ip:192.168.1.1", &quota, 2);
    let all = ["1700000000000004998", "1700000000000004999", first];
    assert_eq!(open.texts("ZRANGE ip:192.168.1.1 0 -1"), all);
    // The score is the double nearest to the member, as in the other system.
    let score = open.texts(&format!("ZRANGE ip:192.168.1.1 {first} {first} BYSCORE"));
    assert!(score.contains(&first.to_owned()));
    // A refusal adds and removes nothing; neither does a read.
    open.advance(999_999);
    assert!(!open.take("p/l/ip:192.168.1.1", &quota, 8).is_allowed());
    assert_eq!(open.texts("ZRANGE ip:192.168.1.1 0 -1"), all);
    // The next admitted request removes expired entries.
    open.advance(1);
    assert!(open.take("p/l/ip:192.168.1.1", &quota, 1).is_allowed());
    let left = ["1700000001000005000"];
    assert_eq!(open.texts("ZRANGE ip:192.168.1.1 0 -1"), left);
    open.take("p/l/token:abc", &quota, 1);
    assert_eq!(open.redis("ZCARD token:abc").int(), 1);
    open.audit();
}

#[test]
fn more_units_than_a_microsecond_has_numbers_count_longer() {
    let spec = Quota::new(10_000, SECOND).algorithm(Algorithm::SlidingLog);
    let quota = built(spec);
    let open = Open::new(layout("p/l", "{subject}", &[]));
    for _ in 0..40 {
        assert!(open.take("p/l/ip:192.0.2.1", &quota, 64).is_allowed());
    }
    assert_eq!(open.redis("ZCARD ip:192.0.2.1").int(), 2_560);
    assert_eq!(open.remaining("p/l/ip:192.0.2.1", &quota), 7_440);
    let last = open.texts("ZRANGE ip:192.0.2.1 -1 -1");
    assert_eq!(last, ["1700000000000002000"], "two microseconds later");
    open.advance(SECOND);
    assert_eq!(open.remaining("p/l/ip:192.0.2.1", &quota), 8_440);
    open.audit();
}

#[test]
fn a_field_holds_the_start_and_the_count() {
    let quota = window(12, 60);
    let open = Open::new(layout("collector/events", "rate_limits", &[]));
    let project = "collector/events/attr.project:6762b5db032b200023854b2c";
    let hget = |project: &str| open.redis(&format!("HGET rate_limits {project}")).text();
    for _ in 0..5 {
        open.take(project, &quota, 1);
    }
    assert_eq!(hget("6762b5db032b200023854b2c"), "1700000000:5");
    // A window that starts between two seconds begins with the later one, and the reply shows that.
    open.advance(250_000);
    let other = "collector/events/attr.project:6762b5db032b200023854b2d";
    let outcome = open.take(other, &quota, 12);
    assert_eq!(hget("6762b5db032b200023854b2d"), "1700000001:12");
    assert_eq!(outcome.reset_us, 60_750_000);
    let wait = open.take(other, &quota, 1).wait.as_micros();
    assert_eq!(wait, Some(60_750_000));
    open.advance(60_749_999);
    assert!(!open.take(other, &quota, 1).is_allowed());
    open.advance(1);
    assert!(open.take(other, &quota, 1).is_allowed());
    open.audit();
}

#[test]
fn windows_of_fractional_seconds_and_other_algorithms_are_packed() {
    let half =
        built(Quota::new(3, 1_500_000).algorithm(Algorithm::FixedWindow(Align::FirstRequest)));
    let sliding = built(Quota::new(3, SECOND).algorithm(Algorithm::SlidingWindow));
    let bucketed = built(Quota::new(3, SECOND).algorithm(Algorithm::BucketedWindow));
    let open = Open::new(layout("p/l", "rate_limits", &[]));
    let bucket = b"p/l/ip:192.0.2.1";
    let asks = [
        Ask::take(bucket, &half, 1),
        Ask::take(bucket, &sliding, 1),
        Ask::take(bucket, &bucketed, 1),
    ];
    assert!(open.world.decide(&asks).passed);
    let keys = open.texts("KEYS *");
    assert_eq!(keys.len(), 1);
    let key = keys.first().expect("one");
    assert!(key.ends_with("{ip:192.0.2.1}p/l"), "{key}");
    assert_eq!(
        open.world.store.place(bucket, &half),
        (key.clone().into_bytes(), None)
    );
    open.audit();
}

#[test]
fn keys_expire_exactly_when_their_buckets_are_full() {
    let server = Server::start();
    let tokens = built(Quota::new(1, 7 * SECOND).burst(3));
    let nanos = built(Quota::new(1, 7 * SECOND).burst(3).label("x"));
    let (log, window) = (log_of_ten(), window(12, 60));
    let layout = layout("p/a", "ratelimit:{key}", &[]);
    let layout = add(layout, "p/b", "fluxgate:{key}:{band}", &[(&nanos, "x")]);
    let layout = add(layout, "p/c", "{subject}", &[]);
    let layout = add(layout, "p/d", "rate_limits", &[]);
    let store = by_the_clock(&server, layout);
    for (bucket, quota, key) in [
        ("p/a/user:u", &tokens, "ratelimit:u"),
        ("p/b/user:u", &nanos, "fluxgate:u:x"),
        ("p/c/user:u", &log, "user:u"),
        ("p/d/user:u", &window, "rate_limits"),
    ] {
        let ask = Ask::take(bucket.as_bytes(), quota, 2);
        let reply = world::runtime().block_on(store.decide(&[ask]));
        let reply = reply.expect("it answers");
        let reset_us = reply.outcomes.first().expect("one").reset_us;
        let fresh = reply.at.as_micros() + reset_us;
        let expires = server.command(&["PEXPIRETIME", key]).int();
        assert_eq!(u64::try_from(expires).ok(), Some(fresh / 1_000), "{key}");
    }
}

#[test]
fn malformed_values_are_errors_and_unchanged() {
    let (tokens, log, fixed) = (built(Quota::new(3, SECOND)), log_of_ten(), window(3, 60));
    let layout = layout("p/tokens", "ratelimit:{key}", &[]);
    let layout = add(layout, "p/log", "log:{key}", &[]);
    let open = Open::new(add(layout, "p/fixed", "rate_limits", &[]));
    for set_up in [
        "SET ratelimit:string x",
        "HSET ratelimit:other owner somebody",
        "HSET ratelimit:half tokens 3",
        "HSET ratelimit:words tokens many lastRefill 1700000000000",
        "HSET ratelimit:when tokens 3 lastRefill 0x10",
        "HSET ratelimit:far tokens 3 lastRefill 1e+300",
        "RPUSH log:list x",
        "ZADD log:words 5 five",
        "ZADD log:swapped 1 1700000000000000002 2 1700000000000000001000",
        "HSET rate_limits words one:two",
        "HSET rate_limits short 17",
        "HSET rate_limits more 1700000000:1:1",
        "HSET rate_limits signed 1700000000:-1",
        "HSET rate_limits far 99999999999:1",
    ] {
        open.redis(set_up);
    }
    let dump = || {
        let mut keys = open.texts("KEYS *");
        keys.sort_unstable();
        let state = |key: &String| {
            let pttl = open.redis(&format!("PTTL {key}")).int();
            (open.redis(&format!("DUMP {key}")).bytes().to_vec(), pttl)
        };
        let states: Vec<_> = keys.iter().map(state).collect();
        (keys, states)
    };
    let before = dump();
    for (limit, quota, names) in [
        ("tokens", &tokens, "string other half words when far"),
        ("log", &log, "list words swapped"),
        ("fixed", &fixed, "words short more signed far"),
    ] {
        for name in names.split(' ') {
            let bucket = format!("p/{limit}/user:{name}");
            let error = open.try_take(&bucket, quota).expect_err(name);
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{limit} {name}");
            let inspected = open.world.store.inspect(bucket.as_bytes(), quota);
            world::runtime().block_on(inspected).expect_err(name);
        }
    }
    assert_eq!(dump(), before);
    // Other requests in the same call are still decided.
    let good = (1..=20).map(|i| format!("p/tokens/user:good{i}"));
    let buckets: Vec<String> = good.chain(["p/tokens/user:string".to_owned()]).collect();
    let answers = world::runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for bucket in buckets {
            let store = open.world.store.clone();
            let quota = tokens;
            tasks.spawn(async move {
                let ask = Ask::take(bucket.as_bytes(), &quota, 1);
                store.decide(&[ask]).await.is_ok()
            });
        }
        tasks.join_all().await
    });
    assert_eq!(answers.iter().filter(|it| **it).count(), 20);
}

#[test]
fn key_names_follow_the_template() {
    let quota = built(Quota::new(3, SECOND));
    let open = OpenLayout::new();
    let open = add(open, "p/a", "x:{key}", &[]);
    let open = add(open, "p/b", "{subject}:{band}", &[(&quota, "default")]);
    let open = add(open, "p/c", "c:{user}:{header.x-tenant}", &[]);
    for (bucket, name) in [
        ("p/a/ip:2001:db8::/64", "x:2001:db8::/64"),
        ("p/a/user~ip:192.0.2.1", "x:~ip:192.0.2.1"),
        ("p/a/user:~unknown", "x:%7Eunknown"),
        ("p/a/global", "x:global"),
        ("p/a/route:r,user:u", "x:r:u"),
        ("p/b/ip:192.0.2.1", "ip:192.0.2.1:default"),
        ("p/c/header.x-tenant:acme,user:u", "c:u:acme"),
    ] {
        let named = open.name(bucket.as_bytes(), &quota);
        assert_eq!(named, Some((name.as_bytes().to_vec(), None)), "{bucket}");
    }
    assert_eq!(open.name(b"p/unknown/ip:192.0.2.1", &quota), None);
    // Braces would select the slot, and a long name would fill the store.
    for subject in ["user:{x}", &"x".repeat(600)] {
        let bucket = format!("p/a/{subject}");
        let (name, _) = open.name(bucket.as_bytes(), &quota).expect("it is known");
        assert!(name.starts_with(b"x:#") && name.len() == 35);
    }
}
