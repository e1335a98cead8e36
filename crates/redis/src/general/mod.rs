//! The general call: any requests, decided in order by one script.
//!
//! | module | what it is |
//! |---|---|
//! | `program` | what the script is told |
//! | `plain` | what it is told in the usual case |
//! | `runs` | requests of one shape in a row |
//! | `row` | one ask and one quota as the script is told |
//! | `replay` | from what it replied to everybody's answer |
//! | this one | how much a request weighs |
//!
//! # What is exact
//!
//! Lua counts in doubles, which are exact below 2^53, and quotas are built so that the products of
//! their numbers stay below that. Instants are: until the year 2255. A state that is an instant in
//! the future stays exact as long as that instant lies before 2255, which all do but those of token
//! buckets counted in microseconds that take more than two centuries to refill. Windows are exact
//! whatever their length; one that ends after 2255 is forgotten in 2255. (A token bucket that gives
//! out more than 2^51 units a microsecond is exact but for giving back while the clock goes back.)
//! Where script and engine should ever come to different decisions, that is an error and no guess.

mod plain;
mod program;
mod replay;
mod row;
mod runs;
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

/// The script itself, and the shape that it has to be told; once for most of a call's requests.
const REQUEST_WEIGHT: u32 = 4;

/// About how much of Redis' time a request takes, in tenths of a microsecond, in a call with others.
pub(crate) fn weight(request: &SlotAsks) -> u32 {
    let keys = u32::try_from(request.keys.len()).unwrap_or(u32::MAX);
    let asks = request.asks.iter().fold(0_u32, |sum, ask| {
        let extra = match ask.quota.algorithm() {
            Algorithm::TokenBucket if !ask.quota.is_refundable() => 0,
            Algorithm::FixedWindow(_) => 0,
            Algorithm::TokenBucket if ask.quota.lends() => 45,
            Algorithm::TokenBucket | Algorithm::SlidingWindow => 25,
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
