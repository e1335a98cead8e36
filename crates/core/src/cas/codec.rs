//! A bucket's state as bytes: a byte for the version of this format, then numbers of eight bytes,
//! little-endian.
//!
//! | numbers | meaning |
//! |---|---|
//! | 1 | instant of the write |
//! | 4 | [`Basis`] of the quota under which it was written |
//! | 1 | kind of state |
//! | any | the state |

use crate::algorithm::lent::{Low, Lows};
use crate::algorithm::log::Run;
use crate::algorithm::token_bucket::Credits;
use crate::algorithm::{FixedWindow, Lent, Log, SlidingWindow, TokenBucket};
use crate::quota::Basis;
use crate::{Bucket, Timestamp};

const VERSION: u8 = 1;

/// A state, and when and under which numbers it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredBucket {
    pub(super) written: Timestamp,
    pub(super) basis: Basis,
    pub(super) bucket: Bucket,
}

impl StoredBucket {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Basis {
            tick_us,
            parts,
            period_us,
            whole,
        } = self.basis;
        let mut numbers = vec![self.written.as_micros(), tick_us, parts, period_us, whole];
        match &self.bucket {
            Bucket::Tokens(it) => {
                numbers.push(0);
                numbers.extend(of_tokens(it));
            }
            Bucket::Fixed(it) => numbers.extend([1, it.start, it.used]),
            Bucket::Sliding(it) => numbers.extend([2, it.index, it.current, it.previous]),
            Bucket::Log(it) => {
                numbers.push(3);
                numbers.extend(it.runs().flat_map(|run| [run.stamp, run.units]));
            }
            Bucket::Lent(it) => {
                numbers.push(4);
                numbers.extend(of_tokens(&it.tokens));
                numbers.extend(it.lows.iter().flat_map(|low| [low.at, low.ticks]));
            }
        }
        let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
        std::iter::once(VERSION).chain(bytes).collect()
    }

    /// Returns `None` for bytes that [`encode`](Self::encode) cannot have written.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&VERSION, bytes) = bytes.split_first()? else {
            return None;
        };
        let (numbers, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
        let [written, tick_us, parts, period_us, whole, kind, state @ ..] = numbers.as_slice()
        else {
            return None;
        };
        let bucket = match (kind, state) {
            (0, &[at, fraction, since, ticks]) => {
                Bucket::Tokens(tokens([at, fraction, since, ticks]))
            }
            (1, &[start, used]) => Bucket::Fixed(FixedWindow { start, used }),
            (2, &[index, current, previous]) => Bucket::Sliding(SlidingWindow {
                index,
                current,
                previous,
            }),
            (3, runs) => {
                let run = |&[stamp, units]: &[u64; 2]| Run { stamp, units };
                Bucket::Log(Log::from_runs(pairs(runs)?.iter().map(run)))
            }
            (4, &[at, fraction, since, ticks, ref lows @ ..]) => {
                let low = |&[at, ticks]: &[u64; 2]| Low { at, ticks };
                Bucket::Lent(Box::new(Lent {
                    tokens: tokens([at, fraction, since, ticks]),
                    lows: Lows::from_list(pairs(lows)?.iter().map(low)),
                }))
            }
            _ => return None,
        };
        Some(Self {
            written: Timestamp::from_micros(*written),
            basis: Basis {
                tick_us: *tick_us,
                parts: *parts,
                period_us: *period_us,
                whole: *whole,
            },
            bucket,
        })
    }
}

fn of_tokens(it: &TokenBucket) -> [u64; 4] {
    [it.at, it.fraction, it.credits.since, it.credits.ticks]
}

fn tokens([at, fraction, since, ticks]: [u64; 4]) -> TokenBucket {
    TokenBucket {
        at,
        fraction,
        credits: Credits { since, ticks },
    }
}

fn pairs(numbers: &[u64]) -> Option<&[[u64; 2]]> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    rest.is_empty().then_some(pairs)
}
