//! The packed value: all bands of one subject in one string.
//!
//! A byte for the version, then records, all numbers little-endian:
//!
//! ```text
//! fresh (7 bytes)  id (6)  length (3)  payload (length)
//! ```
//!
//! `fresh` is the instant in microseconds from which on the state is as good as new; a record counts
//! as absent from then on. `id` is the low 48 bits of the band's id. The payload, in numbers of seven
//! bytes, is
//!
//! | algorithm | payload |
//! |---|---|
//! | token bucket | `at`, `fraction`; if refundable, also what was credited: `since`, `ticks`; if it lends, then up to eight lows of `at`, `ticks`, earliest first |
//! | fixed window | `start`, `used` |
//! | sliding window | `index`, `current`, `previous`, and the length of a window in microseconds |
//! | sliding log, bucketed window | all units, then runs of `stamp`, `units`, oldest first |
//!
//! A token bucket whose ticks are longer than a microsecond, and whatever [scales](Quota::scales), ends
//! with a [mark]: under which numbers it was written. A refundable one then has a low at least, of 0 and 0
//! if it has none, so that records can be told apart by their length.
//!
//! 2^53 stands for an instant that is later than that (the year 2255).

use crate::mark;
use crate::script::record_id;
use redis::Value;
use smallvec::SmallVec;
use tidegate_core::algorithm::lent::{LOWS_MAX, Low, Lows};
use tidegate_core::algorithm::log::Run;
use tidegate_core::algorithm::token_bucket::Credits;
use tidegate_core::algorithm::{FixedWindow, Lent, Log, SlidingWindow, TokenBucket};
use tidegate_core::quota::{Basis, EXACT_MAX};
use tidegate_core::{Algorithm, Bucket, Meter, Quota, Timestamp};

const VERSION: u8 = 1;
const HEAD: usize = 16;
const NUMBER: usize = 7;
/// The most numbers of a token bucket: a refundable one, its lows and a mark.
const TOKENS_MAX: usize = 4 + 2 * LOWS_MAX + 1;

/// A value that is not of our form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// One band's state as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// From when on it is as good as new.
    pub(crate) fresh_us: u64,
    pub(crate) id: u64,
    payload: &'a [u8],
}

/// The records of a value, in order; the last may be the news that the value is corrupt.
pub(crate) fn records(value: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Corrupt>> {
    let mut rest = match value.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        _ => Err(Corrupt),
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
                Some(Err(Corrupt))
            }
        },
        Err(corrupt) => {
            rest = Ok(&[]);
            Some(Err(corrupt))
        }
    })
}

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
pub(crate) fn find(value: &[u8], quota: &Quota, now: Timestamp) -> Result<Option<Bucket>, Corrupt> {
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
    let bucket = record.bucket(quota, now).ok_or(Corrupt)?;
    Ok((record.fresh_us > now.as_micros()).then_some(bucket))
}

/// [`find`] in what Redis replied: a string, nothing, or 0 for a key of another type.
pub(crate) fn find_in(
    value: &Value,
    quota: &Quota,
    now: Timestamp,
) -> Result<Option<Bucket>, Corrupt> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => find(bytes, quota, now),
        _ => Err(Corrupt),
    }
}

/// The bucket to decide on: what Redis replied, or a new one, settled at `now`.
pub(crate) fn bucket(value: &Value, quota: &Quota, now: Timestamp) -> Result<Bucket, Corrupt> {
    let mut bucket = find_in(value, quota, now)?.unwrap_or_else(|| Bucket::new(quota));
    bucket.settle(quota, now);
    Ok(bucket)
}

impl Record<'_> {
    /// How many bytes it takes in the value.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        HEAD + self.payload.len()
    }

    /// The state under `quota`, if the payload can be one of its algorithm.
    pub(crate) fn bucket(&self, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let (bucket, basis) = self.written(quota, now)?;
        bucket.adapted(basis, quota, now)
    }

    /// The state as it was written, and what is known of the quota that it was written under.
    fn written(&self, quota: &Quota, now: Timestamp) -> Option<(Bucket, Basis)> {
        match quota.algorithm() {
            Algorithm::TokenBucket => self.tokens(quota, now),
            Algorithm::FixedWindow(_) => {
                let ([start, used], mark) = match numbers(self.payload) {
                    Some([start, used, mark]) => ([start, used], Some(mark)),
                    None => (numbers(self.payload)?, None),
                };
                let start = if used == 0 { 0 } else { start };
                let window = FixedWindow { start, used };
                Some((Bucket::Fixed(window), mark::read(mark, 0)?))
            }
            Algorithm::SlidingWindow => {
                let numbers = all(self.payload)?;
                let (window, period, mark) = match numbers.as_slice() {
                    // As earlier versions wrote it.
                    window if window.len() == 3 => (window, quota.period_us(), None),
                    [window @ .., period] if window.len() == 3 => (window, *period, None),
                    [window @ .., period, mark] if window.len() == 3 => {
                        (window, *period, Some(*mark))
                    }
                    _ => return None,
                };
                let [index, current, previous] = window.try_into().ok()?;
                let counts = current > 0 || previous > 0;
                let window = SlidingWindow {
                    index: if counts { index } else { 0 },
                    current,
                    previous,
                };
                let basis = mark::read(mark, period).filter(|_| period > 0)?;
                Some((Bucket::Sliding(window), basis))
            }
            _ => {
                let runs = self.payload.get(NUMBER..)?;
                let (runs, []) = runs.as_chunks::<{ 2 * NUMBER }>() else {
                    return None;
                };
                let run = |bytes: &[u8; 2 * NUMBER]| {
                    let [stamp, units] = numbers(bytes)?;
                    Some(Run { stamp, units })
                };
                let log = Log::from_runs(runs.iter().filter_map(run));
                Some((Bucket::Log(log), quota.basis()))
            }
        }
    }

    fn tokens(&self, quota: &Quota, now: Timestamp) -> Option<(Bucket, Basis)> {
        let all = all(self.payload).filter(|all| all.len() <= TOKENS_MAX)?;
        let is_marked = all.len() % 2 == 1 && all.len() != 5;
        let (mark, rest) = match all.split_last() {
            Some((mark, rest)) if is_marked => (Some(*mark), rest),
            _ => (None, all.as_slice()),
        };
        let (at, fraction, credits, lows) = match rest {
            // Earlier versions remembered three other numbers, which say nothing of this.
            [at, fraction] | [at, fraction, _, _, _] => (*at, *fraction, unknown(now), None),
            [at, fraction, since, ticks, lows @ ..] => {
                let credits = Credits {
                    since: *since,
                    ticks: *ticks,
                };
                let lows = known_lows(lows).filter(|_| !(is_marked && *lows == [0, 0]));
                (*at, *fraction, credits, lows)
            }
            _ => return None,
        };
        let (at, fraction) = less_than_a_tick(at, fraction, quota);
        let tokens = TokenBucket {
            at,
            fraction,
            credits: if quota.is_refundable() {
                credits
            } else {
                Credits::default()
            },
        };
        let bucket = match lows {
            _ if !quota.lends() => Bucket::Tokens(tokens),
            Some(lows) => Bucket::Lent(Box::new(Lent { tokens, lows })),
            None => Bucket::Lent(Box::new(Lent::unknown(tokens, now))),
        };
        Some((bucket, mark::read(mark, 0)?))
    }
}

/// At and fraction, which may have been left by a quota with a larger drain: it is less than a tick.
pub(crate) fn less_than_a_tick(at: u64, fraction: u64, quota: &Quota) -> (u64, u64) {
    if fraction < quota.drain_and_price().0 {
        (at, fraction)
    } else {
        (at.saturating_add(1), 0)
    }
}

/// The lows of a bucket that lent, if it is one's.
fn known_lows(numbers: &[u64]) -> Option<Lows> {
    let (pairs, _) = numbers.as_chunks::<2>();
    match pairs {
        [] => None,
        pairs => {
            let low = |[at, ticks]: &[u64; 2]| Low {
                at: *at,
                ticks: *ticks,
            };
            Some(Lows::from_list(pairs.iter().map(low)))
        }
    }
}

/// What was credited to a state that did not count it: nothing is known of the time before.
pub(crate) fn unknown(now: Timestamp) -> Credits {
    Credits {
        since: now.as_micros(),
        ticks: 0,
    }
}

/// From when on a state is as good as new, as it is written into its record.
pub(crate) fn fresh_us(bucket: &Bucket, quota: &Quota) -> u64 {
    match bucket {
        // Without a count there is no window, wherever the clock has been.
        Bucket::Fixed(window) if window.used == 0 => 0,
        Bucket::Sliding(window) if window.current == 0 && window.previous == 0 => 0,
        _ => bucket.fresh_at(quota).as_micros().min(EXACT_MAX),
    }
}

/// Begins a value.
pub(crate) fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Appends the record of a state.
pub(crate) fn push(value: &mut Vec<u8>, bucket: &Bucket, quota: &Quota) {
    let mut payload = Vec::new();
    let mark = mark::of(quota);
    match bucket {
        Bucket::Tokens(tokens) => {
            put(&mut payload, &[tokens.at, tokens.fraction]);
            if quota.is_refundable() {
                let Credits { since, ticks } = tokens.credits;
                put(&mut payload, &[since, ticks]);
                if mark.is_some() {
                    put(&mut payload, &[0, 0]);
                }
            }
        }
        Bucket::Lent(lent) => {
            let TokenBucket {
                at,
                fraction,
                credits: Credits { since, ticks },
            } = lent.tokens;
            put(&mut payload, &[at, fraction, since, ticks]);
            for low in lent.lows.iter() {
                put(&mut payload, &[low.at, low.ticks]);
            }
            if mark.is_some() && lent.lows.iter().next().is_none() {
                put(&mut payload, &[0, 0]);
            }
        }
        Bucket::Fixed(window) => put(&mut payload, &[window.start, window.used]),
        Bucket::Sliding(window) => {
            let SlidingWindow {
                index,
                current,
                previous,
            } = *window;
            put(&mut payload, &[index, current, previous, quota.period_us()]);
        }
        Bucket::Log(log) => {
            let units = log
                .runs()
                .fold(0_u64, |sum, run| sum.saturating_add(run.units));
            put(&mut payload, &[units]);
            for run in log.runs() {
                put(&mut payload, &[run.stamp, run.units]);
            }
        }
        // There is no other.
        _ => {}
    }
    put(&mut payload, mark.as_slice());
    put(value, &[fresh_us(bucket, quota)]);
    value.extend_from_slice(bytes(record_id(quota)).get(..6).unwrap_or_default());
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    value.extend_from_slice(bytes(length).get(..3).unwrap_or_default());
    value.extend_from_slice(&payload);
}

fn put(bytes_of: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        bytes_of.extend_from_slice(bytes(*number).get(..NUMBER).unwrap_or_default());
    }
}

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

/// Exactly `N` numbers.
fn numbers<const N: usize>(payload: &[u8]) -> Option<[u64; N]> {
    let (chunks, []) = payload.as_chunks::<NUMBER>() else {
        return None;
    };
    let chunks: &[[u8; NUMBER]; N] = chunks.try_into().ok()?;
    Some(chunks.map(|chunk| number(&chunk)))
}

/// All numbers, if it is nothing but numbers.
fn all(payload: &[u8]) -> Option<SmallVec<[u64; 8]>> {
    let (chunks, []) = payload.as_chunks::<NUMBER>() else {
        return None;
    };
    Some(chunks.iter().map(|chunk| number(chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::{Record, begin, bucket, find, fresh_us, push, records};
    use proptest::prelude::*;
    use redis::Value;
    use tidegate_core::algorithm::lent::{Low, Lows};
    use tidegate_core::algorithm::log::Run;
    use tidegate_core::algorithm::token_bucket::Credits;
    use tidegate_core::algorithm::{FixedWindow, Lent, Log, SlidingWindow, TokenBucket};
    use tidegate_core::{Algorithm, Align, Bucket, Quota, Timestamp};

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
                let credits = Credits { since, ticks };
                let tokens = TokenBucket {
                    at,
                    fraction,
                    credits: if refundable {
                        credits
                    } else {
                        Credits::default()
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
            Some((quota, Bucket::Lent(Box::new(Lent { tokens, lows }))))
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
                Run { stamp, units }
            });
            (quota(algorithm, "a"), Bucket::Log(Log::from_runs(runs)))
        });
        prop_oneof![fixed, sliding, log]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (quota, bucket) in prop_oneof![tokens(), lent(), windows()],
            (other, beside) in windows(),
        ) {
            let other = Quota::new(other.amount(), 77).algorithm(other.algorithm()).build().unwrap();
            let mut value = begin();
            push(&mut value, &beside, &other);
            push(&mut value, &bucket, &quota);
            let read: Vec<Record<'_>> = records(&value).map(|it| it.expect("is ours")).collect();
            prop_assert_eq!(read.len(), 2);
            let record = read[1];
            prop_assert_eq!(record.fresh_us, fresh_us(&bucket, &quota));
            prop_assert_eq!(record.bucket(&quota, Timestamp::default()), Some(bucket.clone()));
            // It counts until it is fresh, and not after.
            for (now, counts) in [(record.fresh_us.wrapping_sub(1), true), (record.fresh_us, false)] {
                let found = find(&value, &quota, Timestamp::from_micros(now)).expect("is ours");
                prop_assert_eq!(found, Some(bucket.clone()).filter(|_| counts && record.fresh_us > 0));
            }
        }

        /// A policy that no longer lends finds the state, and one that begins to knows no lows.
        #[test]
        fn a_quota_that_lends_and_one_that_does_not_read_each_others_records(
            (lends, bucket) in lent(),
        ) {
            let Bucket::Lent(state) = &bucket else {
                return Err(TestCaseError::fail("it lends"));
            };
            let (now, refundable) = (Timestamp::from_micros(7), lends.with_lending(false));
            let mut value = begin();
            push(&mut value, &bucket, &lends);
            let read = |value: &[u8], quota: &Quota| {
                let record = records(value).next().expect("one").expect("is ours");
                record.bucket(quota, now).expect("is ours")
            };
            prop_assert_eq!(read(&value, &refundable), Bucket::Tokens(state.tokens));
            let mut value = begin();
            push(&mut value, &Bucket::Tokens(state.tokens), &refundable);
            let unknown = Lent::unknown(state.tokens, now);
            prop_assert_eq!(read(&value, &lends), Bucket::Lent(Box::new(unknown)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
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
                bucket(&Value::BulkString(bytes), &quota, Timestamp::default()).ok();
            }
        }
    }
}
