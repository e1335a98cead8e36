//! Instances of the other systems and ours decide in turn on the same buckets. Together they admit
//! no more than either alone would. The scripts are the documented ones, with the time as an
//! argument.

use crate::open_kit::{Dice, Open, built, layout};
use std::cell::Cell;
use tidegate_core::{Algorithm, Align, Clock, Quota};

const SECOND: u64 = 1_000_000;

/// Tokens and milliseconds; the reply is reduced to the verdict.
const MILLIS: &str = "
local key, rate, capacity = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local now, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
local bucket = redis.call('HMGET', key, 'tokens', 'lastRefill')
local tokens, lastRefill = tonumber(bucket[1]), tonumber(bucket[2])
if tokens == nil then tokens, lastRefill = capacity, now end
local elapsed = (now - lastRefill) / 1000.0
tokens = math.max(0, math.min(capacity, tokens + elapsed * rate))
lastRefill = now
local allowed = 0
if tokens >= 1 then tokens, allowed = tokens - 1, 1 end
redis.call('HSET', key, 'tokens', tostring(tokens), 'lastRefill', lastRefill)
redis.call('EXPIRE', key, ttl)
return allowed";

/// Tokens and nanoseconds: whole tokens, a refusal writes nothing.
const NANOS: &str = "
local key, capacity, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local bucket = redis.call('HMGET', key, 'tokens', 'last_refill_nanos')
local tokens, last = tonumber(bucket[1]), tonumber(bucket[2])
if tokens == nil then tokens, last = capacity, now end
local elapsed = math.max(0, now - last)
tokens = math.min(capacity, tokens + math.floor(elapsed * capacity / window))
if tokens < 1 then return 0 end
redis.call('HSET', key, 'tokens', tokens - 1, 'last_refill_nanos', string.format('%.0f', now))
redis.call('EXPIRE', key, math.ceil(window / 1e9 * 1.1))
return 1";

/// A sorted set; its commands run atomically.
const LOG: &str = "
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[2])
redis.call('EXPIRE', KEYS[1], 61)
return 1";

/// A field of a hash.
const WINDOW: &str = "
local now, limit, period = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local value = redis.call('HGET', KEYS[1], ARGV[1])
local start, count
if value then start, count = string.match(value, '(%d+):(%d+)') end
if not value or now - start >= period then
  redis.call('HSET', KEYS[1], ARGV[1], now .. ':1')
  return 1
end
if count + 1 > limit then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], start .. ':' .. (count + 1))
return 1";

/// Sends requests to ours or theirs at random; returns the instants of admissions in microseconds.
fn admitted(
    open: &Open,
    (bucket, quota): (&str, &Quota),
    theirs: impl Fn(u64) -> Vec<String>,
) -> Vec<u64> {
    let mut dice = Dice(quota.capacity());
    let mut client = open.server.client();
    let mut admitted = Vec::new();
    for _ in 0..1_500 {
        open.advance(match dice.roll(4) {
            0 => 0,
            1 => dice.roll(1_000),
            _ => dice.roll(60_000),
        });
        let now = open.world.clock.now().as_micros();
        let is_ours = dice.roll(2) == 0;
        let passed = if is_ours {
            open.take(bucket, quota, 1).is_allowed()
        } else {
            client.command(&theirs(now)).good().int() == 1
        };
        if passed {
            admitted.push(now);
        }
    }
    admitted
}

/// Asserts that no interval admits more than the burst and its refill.
fn assert_never_exceeded(admitted: &[u64], quota: &Quota) {
    let first = *admitted.first().expect("at least one request passes");
    let refilled = |until: u64| (until - first) * quota.amount() / quota.period_us();
    for (count, at) in (1..).zip(admitted) {
        assert!(count <= quota.capacity() + refilled(*at), "{count} by {at}");
    }
}

fn words(script: &str, key: &str, arguments: &[String]) -> Vec<String> {
    let start = ["EVAL", script, "1", key].map(str::to_owned);
    start.into_iter().chain(arguments.iter().cloned()).collect()
}

#[test]
fn tokens_with_milliseconds_admit_no_more() {
    let quota = built(Quota::new(10, SECOND).burst(15));
    let open = Open::new(layout("p/l", "ratelimit:{limit}:{key}", &[]));
    let admitted = admitted(&open, ("p/l/ip:192.0.2.1", &quota), |now| {
        // Their clock counts whole elapsed milliseconds.
        let arguments = ["10", "15", &(now / 1_000).to_string(), "120"].map(str::to_owned);
        words(MILLIS, "ratelimit:l:192.0.2.1", &arguments)
    });
    assert_never_exceeded(&admitted, &quota);
    // Nor much less than 240, because demand exceeded the quota.
    assert!(admitted.len() > 220, "{}", admitted.len());
    open.audit();
}

#[test]
fn tokens_with_nanoseconds_admit_no_more() {
    let quota = built(Quota::new(10, SECOND).label("10-per-second"));
    let bands = [(&quota, "10-per-second")];
    let open = Open::new(layout(
        "s/r",
        "fluxgate:{policy}:{limit}:{key}:{band}",
        &bands,
    ));
    let admitted = admitted(&open, ("s/r/ip:192.0.2.1", &quota), |now| {
        let arguments = ["10", "1000000000", &format!("{now}000")].map(str::to_owned);
        words(NANOS, "fluxgate:s:r:192.0.2.1:10-per-second", &arguments)
    });
    assert_never_exceeded(&admitted, &quota);
    assert!(admitted.len() > 100, "{}", admitted.len());
    open.audit();
}

#[test]
fn sorted_sets_admit_no_more() {
    let quota = built(Quota::new(10, SECOND).algorithm(Algorithm::SlidingLog));
    let open = Open::new(layout("p/l", "{subject}", &[]));
    let nth = Cell::new(1);
    let admitted = admitted(&open, ("p/l/ip:192.0.2.1", &quota), |now| {
        // Two of theirs at the same nanosecond would count once.
        nth.set(nth.get() % 900 + 1);
        let over = format!("{}000", now - SECOND);
        let arguments = [
            over,
            format!("{}{:03}", now - 1, nth.get()),
            "10".to_owned(),
        ];
        words(LOG, "ip:192.0.2.1", &arguments)
    });
    for stretch in admitted.windows(11) {
        let (first, last) = (stretch.first(), stretch.last());
        let apart = last.zip(first).map(|(last, first)| last - first);
        assert!(
            apart >= Some(SECOND - 1),
            "eleven within a second: {stretch:?}"
        );
    }
    assert!(admitted.len() > 200, "{}", admitted.len());
    open.audit();
}

#[test]
fn windows_admit_no_more() {
    let spec = Quota::new(10, 5 * SECOND);
    let quota = built(spec.algorithm(Algorithm::FixedWindow(Align::FirstRequest)));
    let open = Open::new(layout("p/l", "rate_limits", &[]));
    let admitted = admitted(&open, ("p/l/attr.project:a", &quota), |now| {
        let now = (now / SECOND).to_string();
        let arguments = ["a", &now, "10", "5"].map(str::to_owned);
        words(WINDOW, "rate_limits", &arguments)
    });
    // The eleventh after any first is in another window.
    for stretch in admitted.windows(21) {
        let (first, last) = (stretch.first(), stretch.last());
        let apart = last.zip(first).map(|(last, first)| last - first);
        assert!(apart >= Some(5 * SECOND - SECOND), "{stretch:?}");
    }
    assert!(admitted.len() > 40, "{}", admitted.len());
    open.audit();
}
