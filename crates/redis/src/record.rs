//! The packed value: all bands of one subject in one string.
//!
//! A byte for the version, then records, all numbers little-endian:
//!
//! ```text
//! fresh (7 bytes)  id (6)  length (3)  payload (length)
//! ```
//!
//! `fresh` is the instant in microseconds from which on the bucket is full; a record counts as absent
//! from then on. `id` is the low 48 bits of the band's id. The payload is the output of
//! [`Bucket::encode`], in numbers of seven bytes.

use crate::script::record_id;
use tidegate_core::{Bucket, Quota, Timestamp};
use tidegate_redis_client::protocol::Value;

/// The version of the format: the first byte of a value.
const VERSION: u8 = 1;
/// The bytes of a record before its payload.
const HEAD: usize = 16;
/// The bytes of a number in the payload.
const NUMBER: usize = 7;

/// A value that is not of our form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptRecord;

/// One band's state as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// The instant from which on the bucket is full.
    pub(crate) fresh_us: u64,
    pub(crate) id: u64,
    payload: &'a [u8],
}

/// The records of a value, in order; the last may be the news that the value is corrupt.
pub(crate) fn records(value: &[u8]) -> impl Iterator<Item = Result<Record<'_>, CorruptRecord>> {
    let mut rest = match value.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        _ => Err(CorruptRecord),
    };
    std::iter::from_fn(move || match rest {
        Ok([]) => None,
        Ok(bytes) => match split(bytes) {
            Some((record, after)) => {
                rest = Ok(after);
                Some(Ok(record))
            }
            None => {
                rest = Ok(&[]);
                Some(Err(CorruptRecord))
            }
        },
        Err(corrupt) => {
            rest = Ok(&[]);
            Some(Err(corrupt))
        }
    })
}

/// Splits the first record off a value.
fn split(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = usize::try_from(number(head.get(13..16)?)).ok()?;
    let (payload, rest) = rest.split_at_checked(length)?;
    let record = Record {
        fresh_us: number(head.get(..7)?),
        id: number(head.get(7..13)?),
        payload,
    };
    Some((record, rest))
}

/// The state of `quota` in `value` if it still matters at `now`. The whole value has to be of our
/// form.
pub(crate) fn find(
    value: &[u8],
    quota: &Quota,
    now: Timestamp,
) -> Result<Option<Bucket>, CorruptRecord> {
    let id = record_id(quota);
    let mut found = None;
    for record in records(value) {
        let record = record?;
        if record.id == id && found.is_none() {
            found = Some(record);
        }
    }
    let Some(record) = found else {
        return Ok(None);
    };
    let bucket = record.bucket(quota, now).ok_or(CorruptRecord)?;
    Ok((record.fresh_us > now.as_micros()).then_some(bucket))
}

/// [`find`] in what Redis replied: a string, nothing, or 0 for a key of another type.
#[expect(clippy::wildcard_enum_match_arm, reason = "Redis has many types")]
pub(crate) fn find_in(
    value: &Value,
    quota: &Quota,
    now: Timestamp,
) -> Result<Option<Bucket>, CorruptRecord> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => find(bytes, quota, now),
        _ => Err(CorruptRecord),
    }
}

impl Record<'_> {
    /// Returns its length in the value, in bytes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        HEAD + self.payload.len()
    }

    /// The state under `quota`, if the payload can be one of its algorithm.
    pub(crate) fn bucket(&self, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let (numbers, []) = self.payload.as_chunks::<NUMBER>() else {
            return None;
        };
        Bucket::decode(numbers.iter().map(|it| number(it)), quota, now)
    }
}

/// Begins a value.
pub(crate) fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Appends the record of a state.
pub(crate) fn push(value: &mut Vec<u8>, bucket: &Bucket, quota: &Quota) {
    let mut payload = Vec::new();
    bucket.encode(quota, &mut |number| put(&mut payload, number));
    put(value, bucket.expires_us(quota));
    value.extend_from_slice(bytes(record_id(quota)).get(..6).unwrap_or_default());
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    value.extend_from_slice(bytes(length).get(..3).unwrap_or_default());
    value.extend_from_slice(&payload);
}

/// Appends a number to a value.
fn put(value: &mut Vec<u8>, number: u64) {
    value.extend_from_slice(bytes(number).get(..NUMBER).unwrap_or_default());
}

/// Returns the bytes of a number, of which the payload has the first seven.
fn bytes(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::{Record, begin, find, find_in, push, records};
    use proptest::prelude::*;
    use tidegate_core::algorithm::lent::{Low, Lows};
    use tidegate_core::algorithm::log::LogRun;
    use tidegate_core::algorithm::token_bucket::CreditCount;
    use tidegate_core::algorithm::{FixedWindow, LendingBucket, Log, SlidingWindow, TokenBucket};
    use tidegate_core::{Algorithm, Align, Bucket, Quota, Timestamp};
    use tidegate_redis_client::protocol::Value;

    fn quota(algorithm: Algorithm, label: &str) -> Quota {
        let spec = Quota::new(1_000, 1_000_003).algorithm(algorithm);
        spec.label(label).build().unwrap()
    }

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..5_u64, 0..(1_u64 << 53), Just((1 << 53) - 1)]
    }

    fn tokens() -> impl Strategy<Value = (Quota, Bucket)> {
        let credits = (number(), number());
        (number(), 0..1_000_u64, credits, any::<bool>()).prop_map(
            |(at, fraction, (since, ticks), refundable)| {
                let quota = quota(Algorithm::TokenBucket, "a").with_refundable(refundable);
                let credits = CreditCount { since, ticks };
                let tokens = TokenBucket {
                    at,
                    fraction,
                    credits: if refundable {
                        credits
                    } else {
                        CreditCount::default()
                    },
                };
                (quota, Bucket::Tokens(tokens))
            },
        )
    }

    fn lent() -> impl Strategy<Value = (Quota, Bucket)> {
        let lows = prop::collection::vec((1..1_000_000_u64, 1..1_000_000_u64), 1..=8);
        (tokens(), lows).prop_filter_map("must lend", |((quota, bucket), lows)| {
            let Bucket::Tokens(tokens) = bucket else {
                return None;
            };
            let mut low = Low { at: 0, ticks: 0 };
            let lows = lows.into_iter().map(|(later, more)| {
                low.at += later;
                low.ticks += more;
                low
            });
            let lows = Lows::from_list(lows.collect::<Vec<_>>());
            let quota = quota.with_lending(true);
            Some((
                quota,
                Bucket::Lent(Box::new(LendingBucket { tokens, lows })),
            ))
        })
    }

    fn windows() -> impl Strategy<Value = (Quota, Bucket)> {
        let fixed = (number(), 1..1_000_u64).prop_map(|(start, used)| {
            let quota = quota(Algorithm::FixedWindow(Align::Clock), "a");
            (quota, Bucket::Fixed(FixedWindow { start, used }))
        });
        let sliding =
            (number(), 1..1_000_u64, 0..1_000_u64).prop_map(|(index, current, previous)| {
                let window = SlidingWindow {
                    index,
                    current,
                    previous,
                };
                (
                    quota(Algorithm::SlidingWindow, "a"),
                    Bucket::Sliding(window),
                )
            });
        let runs = prop::collection::vec((1..1_000_000_u64, 1..1_000_u64), 0..50);
        let log = (runs, any::<bool>()).prop_map(|(runs, sliding)| {
            let algorithm = if sliding {
                Algorithm::SlidingLog
            } else {
                Algorithm::BucketedWindow
            };
            let mut stamp = 0;
            let runs = runs.into_iter().map(|(later, units)| {
                stamp += later;
                LogRun { stamp, units }
            });
            (quota(algorithm, "a"), Bucket::Log(Log::from_runs(runs)))
        });
        prop_oneof![fixed, sliding, log]
    }

    proptest! {
        #[test]
        fn a_record_round_trips(
            (quota, bucket) in prop_oneof![tokens(), lent(), windows()],
            (other, beside) in windows(),
        ) {
            let other = Quota::new(other.amount(), 77).algorithm(other.algorithm()).build().unwrap();
            let mut value = begin();
            push(&mut value, &beside, &other);
            push(&mut value, &bucket, &quota);
            let read: Vec<Record<'_>> = records(&value).map(|it| it.expect("a valid record")).collect();
            prop_assert_eq!(read.len(), 2);
            let record = read[1];
            prop_assert_eq!(record.fresh_us, bucket.expires_us(&quota));
            prop_assert_eq!(record.bucket(&quota, Timestamp::default()), Some(bucket.clone()));
            // The record counts until `fresh_us`, and not after.
            for (now, counts) in [(record.fresh_us.wrapping_sub(1), true), (record.fresh_us, false)] {
                let found = find(&value, &quota, Timestamp::from_micros(now)).expect("a valid record");
                prop_assert_eq!(found, Some(bucket.clone()).filter(|_| counts && record.fresh_us > 0));
            }
        }

        /// A quota that no longer lends reads the state of a lending one. A quota that starts to
        /// lend reads no lows.
        #[test]
        fn lending_and_other_quotas_read_each_others_records(
            (lends, bucket) in lent(),
        ) {
            let Bucket::Lent(state) = &bucket else {
                return Err(TestCaseError::fail("it lends"));
            };
            let (now, refundable) = (Timestamp::from_micros(7), lends.with_lending(false));
            let mut value = begin();
            push(&mut value, &bucket, &lends);
            let read = |value: &[u8], quota: &Quota| {
                let record = records(value).next().expect("one").expect("a valid record");
                record.bucket(quota, now).expect("a valid record")
            };
            prop_assert_eq!(read(&value, &refundable), Bucket::Tokens(state.tokens));
            let mut value = begin();
            push(&mut value, &Bucket::Tokens(state.tokens), &refundable);
            let unknown = LendingBucket::unknown(state.tokens, now);
            prop_assert_eq!(read(&value, &lends), Bucket::Lent(Box::new(unknown)));
        }

        #[test]
        fn any_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut ours = bytes.clone();
            if let Some(version) = ours.first_mut() {
                *version = 1;
            }
            for bytes in [bytes, ours] {
                for record in records(&bytes).flatten() {
                    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
                        record.bucket(&quota(algorithm, "a"), Timestamp::default());
                    }
                }
                let quota = quota(Algorithm::SlidingWindow, "a");
                find_in(&Value::BulkString(bytes), &quota, Timestamp::default()).ok();
            }
        }
    }
}
