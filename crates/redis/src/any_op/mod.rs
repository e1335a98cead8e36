//! The general call: any requests, decided in order by one script.
//!
//! | module | what it is |
//! |---|---|
//! | `program` | the script's arguments |
//! | `takes_only` | its arguments in the usual case |
//! | `runs` | requests of one shape in a row |
//! | `row` | one ask and one quota as arguments |
//! | `replay` | the answers, from its reply |
//! | this one | the weight of a request |
//!
//! # Exactness
//!
//! Lua counts in doubles, which are exact below 2^53, and quotas are built so that the products of their
//! numbers stay below that. Instants stay below it until the year 2255. A state that is an instant in the
//! future is exact as long as that instant is before 2255. All are, except those of token buckets counted
//! in microseconds that take more than two centuries to refill. Windows of any length are exact; one that
//! ends after 2255 is dropped in 2255. (A token bucket that gives out more than 2^51 units a microsecond
//! is exact except for refunds while the clock goes back.) If script and engine should ever decide
//! differently, that is an error and no guess.

mod program;
mod replay;
mod row;
mod runs;
mod takes_only;
#[cfg(test)]
mod tests;

pub(crate) use program::{ScriptCall, encode, encode_open};
#[cfg(test)]
pub(crate) use replay::answer;
pub(crate) use replay::{Replay, ReplayedRequest, inspection};
pub(crate) use row::cost_beside;

use crate::request::SlotAsks;
use tidegate_core::Algorithm;

/// Reading and writing one key, in tenths of a microsecond of Redis' time.
pub(crate) const KEY_WEIGHT: u32 = 20;

/// One ask.
pub(crate) const ASK_WEIGHT: u32 = 10;

/// The script itself, and the shape in its arguments; once for most of a call's requests.
const REQUEST_WEIGHT: u32 = 4;

/// About how much of Redis' time a request takes, in tenths of a microsecond, in a call with others.
pub(crate) fn weight(request: &SlotAsks) -> u32 {
    let keys = u32::try_from(request.keys.len()).unwrap_or(u32::MAX);
    let asks = request.asks.iter().fold(0_u32, |sum, ask| {
        let extra = match ask.quota.algorithm() {
            Algorithm::TokenBucket if !ask.quota.is_refundable() => 0,
            // Permits are refused before they are sent.
            Algorithm::FixedWindow(_) | Algorithm::Concurrent => 0,
            Algorithm::TokenBucket if ask.quota.lends() => 45,
            Algorithm::TokenBucket | Algorithm::SlidingWindow | Algorithm::CalendarWindow => 25,
            // A log is copied as a whole.
            Algorithm::SlidingLog => {
                30_u32.saturating_add(u32::try_from(ask.quota.amount() / 2).unwrap_or(u32::MAX))
            }
            Algorithm::BucketedWindow => 35,
        };
        sum.saturating_add(ASK_WEIGHT).saturating_add(extra)
    });
    keys.saturating_mul(KEY_WEIGHT)
        .saturating_add(asks)
        .saturating_add(REQUEST_WEIGHT)
}
