//! Token buckets in hashes: the documented fields, and `tg`, which is exact.
//!
//! `tg` holds both documented values as they were written with it, and then the state: `tokens`, the
//! instant, the tick in microseconds, `at`, `fraction` and, if refundable, the credits as `since` and
//! `ticks`, and if it lends, `at` and `ticks` of each low; separated by blanks. Instants are differences
//! to the one before them, so that it stays short. The state is valid as long as the documented values
//! are the same. If they differ, an instance of the other system has written since, and its values count.

use super::text::{self, signed, whole, whole_of};
use tidegate_core::algorithm::lent::{LOWS_MAX, Low, Lows};
use tidegate_core::algorithm::token_bucket::CreditCount;
use tidegate_core::quota::{EXACT_MAX, TICKS_US};
use tidegate_core::{Bucket, Quota, Timestamp};
use tidegate_redis_client::protocol::Value;

/// The notation of the documented instant.
#[derive(Clone, Copy)]
pub(super) struct Instant {
    /// Reads it, in microseconds.
    pub(super) read: fn(&[u8]) -> Option<u64>,
    /// The tokens were counted within this many microseconds of the instant.
    pub(super) span_us: u64,
}

/// An instant in milliseconds.
pub(super) const MILLIS: Instant = Instant {
    read: text::millis,
    span_us: 1_000,
};

/// An instant in nanoseconds.
pub(super) const NANOS: Instant = Instant {
    read: text::nanos,
    span_us: 1,
};

/// The state in a hash: `tokens`, the instant of the last refill, `tg`.
pub(super) fn read(
    fields: &[Value],
    instant: Instant,
    quota: &Quota,
    now: Timestamp,
) -> Option<Bucket> {
    let [Value::BulkString(tokens), Value::BulkString(last), exact] = fields else {
        return None;
    };
    let at_us = (instant.read)(last)?;
    if let Value::BulkString(exact) = exact
        && let Some(rest) = written_with(exact, tokens, last)
        && let Some(state) = read_exact(rest, at_us, quota, now)
    {
        return Some(state);
    }
    // At the latest, so that nothing is refilled twice; but not after now if it was before.
    let mut latest_us = at_us.saturating_add(instant.span_us.saturating_sub(1));
    if at_us <= now.as_micros() {
        latest_us = latest_us.min(now.as_micros());
    }
    documented(text::decimal(tokens)?, latest_us, quota, now)
}

/// Returns the text after the documented values, if they are the same.
fn written_with<'a>(exact: &'a [u8], tokens: &[u8], last: &[u8]) -> Option<&'a [u8]> {
    let rest = exact.strip_prefix(tokens)?.strip_prefix(b" ")?;
    rest.strip_prefix(last)?.strip_prefix(b" ")
}

/// The state; `at_us` is the instant that its differences begin at.
fn read_exact(exact: &[u8], at_us: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
    let mut texts = exact.split(|byte| *byte == b' ');
    let tick = whole(texts.next()?)?;
    if !TICKS_US.contains(&tick) {
        return None;
    }
    let at = later(at_us.checked_div(tick)?, texts.next()?)?;
    let fraction = whole(texts.next()?)?;
    if tick != quota.tick_us() {
        // It counted in other ticks; so did its credits.
        let at = in_ticks_of(quota, at.saturating_add(u64::from(fraction > 0)), tick);
        return Some(Bucket::of_tokens((at, 0), (None, None), quota, now));
    }
    let credits = match texts.next() {
        None => None,
        Some(since) => Some(CreditCount {
            since: later(at_us, since)?,
            ticks: whole(texts.next()?)?,
        }),
    };
    let mut lows: Vec<Low> = Vec::new();
    while let Some(at) = texts.next() {
        lows.push(Low {
            at: later(at_us, at)?,
            ticks: whole(texts.next()?)?,
        });
    }
    if lows.len() > LOWS_MAX {
        return None;
    }
    let known = (!lows.is_empty()).then(|| Lows::from_list(lows));
    Some(Bucket::of_tokens(
        (at, fraction),
        (credits, known),
        quota,
        now,
    ))
}

/// Converts an instant in ticks of this many microseconds to those of `quota`.
fn in_ticks_of(quota: &Quota, at: u64, tick: u64) -> u64 {
    let own = quota.tick_us().max(1);
    let at = if tick > own {
        at.saturating_mul(tick / own)
    } else {
        at.div_ceil(own / tick.max(1))
    };
    at.min(EXACT_MAX - 1)
}

/// Returns the sum of `number` and a difference, if it is below 2^53.
fn later(number: u64, difference: &[u8]) -> Option<u64> {
    let sum = number.checked_add_signed(signed(difference)?)?;
    (sum < EXACT_MAX).then_some(sum)
}

/// Returns the state with this many tokens at that instant in microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "a quota's numbers are below 2^53; the rest is rounded as the script does"
)]
fn documented(tokens: f64, at_us: u64, quota: &Quota, now: Timestamp) -> Option<Bucket> {
    let (drain, price) = quota.drain_and_price();
    let missing = (quota.capacity() as f64 - tokens) * price as f64;
    let brim = quota.capacity().saturating_mul(price);
    let debt = whole_of(missing.ceil().clamp(0.0, brim as f64))?;
    let tick = at_us.div_ceil(quota.tick_us().max(1));
    let at = tick.saturating_add(debt / drain.max(1));
    let state_at = (at, debt % drain.max(1));
    Some(Bucket::of_tokens(state_at, (None, None), quota, now))
}
