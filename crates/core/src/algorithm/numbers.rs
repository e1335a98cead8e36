//! A state as numbers that need no quota to be read: for a store that keeps its buckets under hashes,
//! and knows the quota of none.

use super::lent::{Low, Lows};
use super::log::LogRun;
use super::permits::Permits;
use super::token_bucket::CreditCount;
use super::{Bucket, CalendarWindow, FixedWindow, LendingBucket, Log, SlidingWindow, TokenBucket};

/// Number of a token bucket's numbers without its lows.
const TOKEN_NUMBERS: usize = 4;

impl Bucket {
    /// Writes the whole state as numbers, one `put` for each, and returns the code of its kind.
    /// [`from_numbers`](Self::from_numbers) reads them.
    ///
    /// Unlike [`encode`](Self::encode), it writes the same numbers under every quota, and no basis: the
    /// caller keeps [`Basis::code`](crate::quota::Basis::code) and the period next to them. The form
    /// never changes.
    ///
    /// | code | state | numbers |
    /// |---|---|---|
    /// | 1 | token bucket | `at`, `fraction`, and the credits: `since`, `ticks` |
    /// | 2 | fixed window | `start`, `used` |
    /// | 3 | sliding window | `index`, `current`, `previous` |
    /// | 4 | sliding log, bucketed window | runs of `stamp`, `units`, oldest first |
    /// | 5 | token bucket that lends | those of a token bucket, then up to eight lows of `at`, `ticks` |
    /// | 6 | calendar window | `end`, `used`, and when it was last charged |
    /// | 7 | permits | those that guards hold; then of each id both halves, the units and the end |
    ///
    /// ```
    /// use tidegate_core::{Algorithm, Bucket, BucketState, Quota, Timestamp};
    ///
    /// let (quota, now) = (Quota::new(9, 1_000_000).build()?, Timestamp::from_millis(1_700_000_000_000));
    /// let mut bucket = Bucket::new(&quota);
    /// bucket.charge(&quota, 3, now);
    ///
    /// let mut numbers = Vec::new();
    /// let code = bucket.to_numbers(&mut |number| numbers.push(number));
    /// assert_eq!(Bucket::from_numbers(code, &numbers), Some(bucket));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn to_numbers(&self, put: &mut impl FnMut(u64)) -> u8 {
        match self {
            Self::Tokens(tokens) => {
                token_numbers(*tokens).into_iter().for_each(put);
                1
            }
            Self::Fixed(window) => {
                [window.start, window.used].into_iter().for_each(put);
                2
            }
            Self::Calendar(window) => {
                let numbers = [window.end, window.used, window.at];
                numbers.into_iter().for_each(put);
                6
            }
            Self::Sliding(window) => {
                let numbers = [window.index, window.current, window.previous];
                numbers.into_iter().for_each(put);
                3
            }
            Self::Log(log) => {
                let runs = log.runs().flat_map(|run| [run.stamp, run.units]);
                runs.for_each(put);
                4
            }
            Self::Permits(permits) => {
                permits.encode(put);
                7
            }
            Self::Lent(lent) => {
                let lows = lent.lows.iter().flat_map(|low| [low.at, low.ticks]);
                let numbers = token_numbers(lent.tokens).into_iter().chain(lows);
                numbers.for_each(put);
                5
            }
        }
    }

    /// Reads what [`to_numbers`](Self::to_numbers) wrote. `None` if there is no such kind of state, or it
    /// has another count of numbers.
    pub fn from_numbers(code: u8, numbers: &[u64]) -> Option<Self> {
        match (code, numbers) {
            (1, numbers) => {
                let numbers: &[u64; TOKEN_NUMBERS] = numbers.try_into().ok()?;
                Some(Self::Tokens(tokens(*numbers)))
            }
            (2, [start, used]) => Some(Self::Fixed(FixedWindow {
                start: *start,
                used: *used,
            })),
            (3, [index, current, previous]) => Some(Self::Sliding(SlidingWindow {
                index: *index,
                current: *current,
                previous: *previous,
            })),
            (4, numbers) => {
                let (runs, rest) = numbers.as_chunks::<2>();
                let runs = runs.iter().map(|[stamp, units]| LogRun {
                    stamp: *stamp,
                    units: *units,
                });
                rest.is_empty().then(|| Self::Log(Log::from_runs(runs)))
            }
            (5, numbers) => {
                let (bucket, lows) = numbers.split_first_chunk::<TOKEN_NUMBERS>()?;
                let (lows, rest) = lows.as_chunks::<2>();
                let lows = lows.iter().map(|[at, ticks]| Low {
                    at: *at,
                    ticks: *ticks,
                });
                let lent = LendingBucket {
                    tokens: tokens(*bucket),
                    lows: Lows::from_list(lows),
                };
                rest.is_empty().then(|| Self::Lent(Box::new(lent)))
            }
            (6, [end, used, at]) => Some(Self::Calendar(CalendarWindow {
                end: *end,
                used: *used,
                at: *at,
            })),
            (7, numbers) => Some(Permits::decode(numbers.iter().copied())?.0),
            _ => None,
        }
    }
}

/// Returns the numbers of a token bucket.
fn token_numbers(tokens: TokenBucket) -> [u64; TOKEN_NUMBERS] {
    let CreditCount { since, ticks } = tokens.credits;
    [tokens.at, tokens.fraction, since, ticks]
}

/// Returns the token bucket with these numbers.
fn tokens([at, fraction, since, ticks]: [u64; TOKEN_NUMBERS]) -> TokenBucket {
    TokenBucket {
        at,
        fraction,
        credits: CreditCount { since, ticks },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Op, Quota, Timestamp, step};

    #[test]
    fn every_kind_of_state_is_read_as_it_was_written() {
        let mut at = 1_700_000_000_000_000;
        for algorithm in Algorithm::ALL {
            for lends in [false, true] {
                let quota = Quota::new(50, 1_000_000)
                    .algorithm(algorithm)
                    .refundable(true);
                let quota = quota.build().unwrap().with_lending(lends);
                let mut bucket = Bucket::new(&quota);
                for cost in [3, 1, 7, 2] {
                    at += 7_919;
                    let now = Timestamp::from_micros(at);
                    step::decide_one(&quota, &mut bucket, Op::Take(cost), now);
                    let mut numbers = Vec::new();
                    let code = bucket.to_numbers(&mut |number| numbers.push(number));
                    let read = Bucket::from_numbers(code, &numbers);
                    assert_eq!(read.as_ref(), Some(&bucket), "{quota:?}");
                    numbers.push(1);
                    assert!(Bucket::from_numbers(code, &numbers).is_none());
                }
            }
        }
        assert_eq!(Bucket::from_numbers(0, &[]), None);
        assert_eq!(Bucket::from_numbers(8, &[1, 2]), None);
    }
}
