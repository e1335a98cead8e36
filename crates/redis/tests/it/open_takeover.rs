//! Buckets that another system created and continues to write.

use crate::open_kit::{Open, add, built, layout};
use tidegate_core::{Algorithm, Align, Ask, Op, Quota};
use tidegate_testkit::laws::StoreUnderTest;

const SECOND: u64 = 1_000_000;
const NOW_S: u64 = 1_700_000_000;

#[test]
fn tokens_with_milliseconds_go_on_counting() {
    let quota = built(Quota::new(10, SECOND).burst(50));
    let open = Open::new(layout("p/l", "ratelimit:{limit}:{ip}", &[]));
    let bucket = "p/l/ip:192.168.1.100";
    let write = |tokens: &str, millis: u64| {
        let key = "ratelimit:l:192.168.1.100";
        open.redis(&format!("HSET {key} tokens {tokens} lastRefill {millis}"));
        open.redis(&format!("EXPIRE {key} 120"));
    };
    let now_ms = NOW_S * 1_000;
    // 14.5 half a second ago are 19.5 now, less what its clock drops below a millisecond.
    write("14.5", now_ms - 500);
    assert_eq!(open.remaining(bucket, &quota), 19);
    assert_eq!(open.take(bucket, &quota, 19).remaining, 0);
    let refused = open.take(bucket, &quota, 1);
    assert_eq!(
        refused.wait.as_micros(),
        Some(50_999),
        "half a token is left"
    );
    // An instance of the other system takes one more after ours took the rest.
    open.advance(250_000);
    write("2", now_ms + 250);
    assert_eq!(open.remaining(bucket, &quota), 2);
    assert!(open.take(bucket, &quota, 2).is_allowed());
    assert!(!open.take(bucket, &quota, 1).is_allowed());
    // It refuses, and writes its refilled tokens, which match ours.
    open.advance(100_000);
    write("1", now_ms + 350);
    assert!(open.take(bucket, &quota, 1).is_allowed());
    assert!(!open.take(bucket, &quota, 1).is_allowed());
    // Never above the capacity, for any stored value at any age.
    write("9000", now_ms + 350);
    assert_eq!(open.remaining(bucket, &quota), 50);
    write("0", 5);
    assert_eq!(open.remaining(bucket, &quota), 50);
    // Its clock is a second ahead of Redis': tokens for that second are not refilled yet.
    write("30.1", now_ms + 1_350);
    assert_eq!(open.remaining(bucket, &quota), 20);
    // A value far in the future: empty as of now, and not for years.
    write("1e-05", now_ms + 999_999_999);
    assert_eq!(open.remaining(bucket, &quota), 0);
    assert_eq!(open.take(bucket, &quota, 0).reset_us, 5 * SECOND);
    open.audit();
}

#[test]
fn tokens_with_nanoseconds_go_on_counting() {
    let quota = built(Quota::new(100, 60 * SECOND).label("100-per-minute"));
    let template = "fluxgate:{policy}:{limit}:{key}:{band}";
    let bands = [(&quota, "100-per-minute")];
    let open = Open::new(layout("api-limits/per-ip-rule", template, &bands));
    let bucket = "api-limits/per-ip-rule/ip:192.168.1.100";
    let key = "fluxgate:api-limits:per-ip-rule:192.168.1.100:100-per-minute";
    let write = |tokens: u64, nanos: &str| {
        open.redis(&format!(
            "HSET {key} tokens {tokens} last_refill_nanos {nanos}"
        ));
        open.redis(&format!("EXPIRE {key} 66"));
    };
    // Forty plus five for three seconds; 999 ns are less than a microsecond.
    write(40, "1699999997000000001");
    assert_eq!(open.remaining(bucket, &quota), 44);
    open.advance(1);
    assert_eq!(open.take(bucket, &quota, 45).remaining, 0);
    let shown = open.texts(&format!("HMGET {key} tokens last_refill_nanos"));
    assert_eq!(shown, ["0", "1700000000000001000"]);
    // The other system also uses the time of Redis, and its writes count.
    write(7, "1700000000000001000");
    assert_eq!(open.take(bucket, &quota, 7).remaining, 0);
    assert!(!open.take(bucket, &quota, 1).is_allowed());
    // A number printed with fewer digits.
    write(7, "1.7000000000001e+18");
    assert_eq!(
        open.remaining(bucket, &quota),
        6,
        "a hundredth of a second ahead"
    );
    open.audit();
}

#[test]
fn sorted_sets_go_on_counting() {
    let quota = built(Quota::new(3, SECOND).algorithm(Algorithm::SlidingLog));
    let open = Open::new(layout("p/l", "{subject}", &[]));
    let bucket = "p/l/ip:192.168.1.1";
    let add = |nanos: &str| {
        open.redis(&format!("ZADD ip:192.168.1.1 {nanos} {nanos}"));
        open.redis("EXPIRE ip:192.168.1.1 61");
    };
    add("1699999999000000001");
    add("1699999999500000123");
    assert_eq!(open.remaining(bucket, &quota), 1);
    assert!(open.take(bucket, &quota, 1).is_allowed());
    // A nanosecond past a microsecond counts as the next microsecond.
    let refused = open.take(bucket, &quota, 1);
    assert_eq!(refused.wait.as_micros(), Some(1));
    open.advance(1);
    add("1700000000000000777");
    let refused = open.take(bucket, &quota, 1);
    assert!(!refused.is_allowed(), "it took the free slot");
    assert_eq!(refused.wait.as_micros(), Some(500_000));
    // Its member is not mistaken for one of Tidegate's, whose members of that microsecond skip its number.
    open.advance(500_000);
    add("1700000000500000999");
    open.advance(SECOND);
    add("1700000001500000999");
    assert!(open.take(bucket, &quota, 2).is_allowed());
    let members = open.texts("ZRANGE ip:192.168.1.1 0 -1");
    let expected = ["1700000001500000999", "1700000001500001000"];
    assert_eq!(members.get(1..), Some(&expected.map(str::to_owned)[..]));
    assert!(!open.take(bucket, &quota, 1).is_allowed());
    open.audit();
}

#[test]
fn windows_go_on_counting() {
    let spec = Quota::new(12, 60 * SECOND);
    let quota = built(spec.algorithm(Algorithm::FixedWindow(Align::FirstRequest)));
    let open = Open::new(layout("p/l", "rate_limits", &[]));
    let bucket = |project: &str| format!("p/l/attr.project:{project}");
    let hget = |project: &str| open.redis(&format!("HGET rate_limits {project}")).text();
    open.redis(&format!("HSET rate_limits a {}:5", NOW_S - 30));
    open.redis(&format!("HSET rate_limits b {}:12", NOW_S - 60));
    open.redis(&format!("HSET rate_limits c {}:12", NOW_S - 59));
    assert_eq!(open.take(&bucket("a"), &quota, 1).remaining, 6);
    assert_eq!(hget("a"), format!("{}:6", NOW_S - 30));
    // The hash had no expiry. Now it has one, and no window is cut short.
    let left = open.redis("PTTL rate_limits").int() - 3_600_000;
    assert!((59_000..=60_000).contains(&left), "{left}");
    assert_eq!(
        open.remaining(&bucket("b"), &quota),
        12,
        "its window is over"
    );
    assert_eq!(open.remaining(&bucket("c"), &quota), 0);
    // The other system continues to count, and its writes count.
    open.redis(&format!("HSET rate_limits a {}:11", NOW_S - 30));
    assert_eq!(open.take(&bucket("a"), &quota, 1).remaining, 0);
    assert!(!open.take(&bucket("a"), &quota, 1).is_allowed());
    open.advance(30 * SECOND);
    assert_eq!(open.take(&bucket("a"), &quota, 1).remaining, 11);
    assert_eq!(hget("a"), format!("{}:1", NOW_S + 30));
    open.audit();
}

/// Rules of three scopes, each with its documented key; refused all or nothing.
#[test]
fn system_004_three_rules_are_refused_together() {
    let per_ip = built(Quota::new(10, SECOND).label("10-per-second"));
    let per_user = built(Quota::new(100, 60 * SECOND).label("100-per-minute"));
    let global = built(Quota::new(1_000, 3_600 * SECOND).label("1000-per-hour"));
    let template = "fluxgate:{policy}:{limit}:{key}:{band}";
    let rules = layout("api-limits/rule-1", template, &[(&per_ip, "10-per-second")]);
    let bands = [(&per_user, "100-per-minute")];
    let rules = add(rules, "api-limits/rule-2", template, &bands);
    let rules = add(
        rules,
        "api-limits/rule-3",
        template,
        &[(&global, "1000-per-hour")],
    );
    let open = Open::new(rules);
    let asks = [
        Ask::take(b"api-limits/rule-1/ip:192.168.1.100", &per_ip, 1),
        Ask::take(b"api-limits/rule-2/user:user-123", &per_user, 1),
        Ask::take(b"api-limits/rule-3/global", &global, 1),
    ];
    let keys = [
        "fluxgate:api-limits:rule-1:192.168.1.100:10-per-second",
        "fluxgate:api-limits:rule-2:user-123:100-per-minute",
        "fluxgate:api-limits:rule-3:global:1000-per-hour",
    ];
    for _ in 0..10 {
        assert!(open.world.decide(&asks).passed);
    }
    let tokens = || keys.map(|key| open.redis(&format!("HGET {key} tokens")).text());
    assert_eq!(tokens(), ["0", "90", "990"]);
    for _ in 0..20 {
        let reply = open.world.decide(&asks);
        assert!(!reply.passed);
        let remaining: Vec<u64> = reply.outcomes.iter().map(|it| it.remaining).collect();
        assert_eq!(remaining, [0, 90, 990]);
    }
    assert_eq!(tokens(), ["0", "90", "990"], "a refusal costs nothing");
    let mut all = open.texts("KEYS *");
    all.sort_unstable();
    assert_eq!(all, keys);
    open.advance(100_000);
    assert!(open.world.decide(&asks).passed);
    // The first two limits are refunded, so their buckets are unchanged.
    let reply = open.world.decide(&asks[1..]);
    let receipt = reply.receipt(0, Op::Take(1)).expect("it was charged");
    let backs = [1, 2].map(|i| Ask {
        op: Op::GiveBack(receipt),
        ..asks[i]
    });
    assert!(open.world.decide(&backs).passed);
    assert_eq!(tokens(), ["0", "89", "989"]);
    open.audit();
}
