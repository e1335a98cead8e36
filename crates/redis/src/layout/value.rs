//! The state of a bucket, from the reply of the open script.

use super::key::{Form, OpenKey};
use super::window::Rounding;
use super::{text, tokens, window};
use crate::record::{self, CorruptRecord};
use crate::request::RedisKey;
use tidegate_core::algorithm::lent::Lows;
use tidegate_core::algorithm::log::LogRun;
use tidegate_core::algorithm::{Log, TokenBucket};
use tidegate_core::{Bucket, BucketState, Quota, Timestamp};
use tidegate_redis_client::protocol::Value;

/// Returns the state of `quota` under `key` if it still matters at `now`. `value` is the previous value:
/// nothing, 0 if it is not of the key's form, or a value of that form.
pub(crate) fn find_in(
    key: &RedisKey,
    value: &Value,
    quota: &Quota,
    now: Timestamp,
) -> Result<Option<Bucket>, CorruptRecord> {
    let form = OpenKey::read(key).form;
    let bucket = match (form, value) {
        (Form::Packed, value) => return record::find_in(value, quota, now),
        (_, Value::Nil) => return Ok(None),
        (Form::Millis, Value::Array(fields)) => tokens::read(fields, tokens::MILLIS, quota, now),
        (Form::Nanos, Value::Array(fields)) => tokens::read(fields, tokens::NANOS, quota, now),
        (Form::Log, Value::Array(members)) => log(members).map(Bucket::Log),
        (Form::Window, Value::BulkString(value)) => window::read(value).map(Bucket::Fixed),
        _ => None,
    };
    let bucket = bucket.ok_or(CorruptRecord)?;
    Ok(Some(bucket).filter(|bucket| matters(bucket, quota, now)))
}

/// Returns true if the bucket is not full at `now`.
fn matters(bucket: &Bucket, quota: &Quota, now: Timestamp) -> bool {
    bucket.expires_us(quota) > now.as_micros()
}

/// Reads one member for each unit, oldest first: its instant in nanoseconds. The units of one microsecond
/// count down from it, so that rounding up restores it, for members of both systems.
///
/// Of a long set the script lists only the oldest members, which are enough for the decision; before them
/// come the number of the others, and the newest.
fn log(members: &[Value]) -> Option<Log> {
    match members {
        [Value::Int(rest), Value::BulkString(newest), oldest @ ..] => {
            let mut runs = runs(oldest)?;
            runs.push(LogRun {
                stamp: text::whole_nanos(newest)?,
                units: u64::try_from(*rest).ok()?,
            });
            Some(Log::from_runs(runs))
        }
        _ => runs(members).map(Log::from_runs),
    }
}

/// Reads the members of a sorted set into runs of equal instants.
fn runs(members: &[Value]) -> Option<Vec<LogRun>> {
    let mut runs: Vec<LogRun> = Vec::with_capacity(members.len());
    for member in members {
        let Value::BulkString(member) = member else {
            return None;
        };
        let stamp = text::whole_nanos(member)?;
        match runs.last_mut() {
            Some(last) if last.stamp == stamp => last.units = last.units.saturating_add(1),
            // Score and member contradict each other.
            Some(last) if last.stamp > stamp => return None,
            _ => runs.push(LogRun { stamp, units: 1 }),
        }
    }
    Some(runs)
}

/// A state that was used under `old`, read under `new` as if it had been written and read again.
pub(crate) fn switched(bucket: &Bucket, old: &Quota, new: &Quota, now: Timestamp) -> Bucket {
    if !matters(bucket, old, now) {
        return Bucket::new(new);
    }
    let mut next = match bucket {
        Bucket::Tokens(state) => switched_tokens((state, None), old, new, now),
        Bucket::Lent(lent) => switched_tokens((&lent.tokens, Some(lent.lows)), old, new, now),
        Bucket::Fixed(_)
        | Bucket::Calendar(_)
        | Bucket::Sliding(_)
        | Bucket::Log(_)
        | Bucket::Permits(_) => bucket.clone(),
    };
    if !matters(&next, new, now) {
        return Bucket::new(new);
    }
    next.clamp_to_now(new, now);
    Rounding::of(&mut next);
    next
}

/// Converts the state of a token bucket from quota `old` to `new`. If their ticks differ, the debt is
/// rounded up and its credits are unknown.
fn switched_tokens(
    (state, lows): (&TokenBucket, Option<Lows>),
    old: &Quota,
    new: &Quota,
    now: Timestamp,
) -> Bucket {
    let (ticks, tick) = (old.tick_us(), new.tick_us().max(1));
    if ticks != tick {
        let paid_off = state.at.saturating_add(u64::from(state.fraction > 0));
        let state_at = (paid_off.saturating_mul(ticks).div_ceil(tick), 0);
        return Bucket::of_tokens(state_at, (None, None), new, now);
    }
    let credits = old.is_refundable().then_some(state.credits);
    Bucket::of_tokens((state.at, state.fraction), (credits, lows), new, now)
}
