//! Waiting instead of refusing (`on_refusal: wait`): in order, for a bounded time, by a bounded number of
//! requests. A request that leaves releases its place to those behind it.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the state of a limiter's queue |
//! | `turn` | a request that waits for its turn |
//! | `place_request` | requesting places, and the result |
//! | `places` | the asks of a request that may wait |
//! | `held_turn` | a held place, and its release if the request leaves |
//! | `line` | lines before windows |
//! | `refunds` | refunding charges: for the caller, or because a request that waited has left |
//! | `credits` | the credits of each bucket while requests wait for it |
//! | `bucket` | one such bucket: the requests that wait for it, and how they move up |
//!
//! On a *token bucket*, a request that waits is charged immediately and knows from then on when its turn
//! comes. The debt of the bucket is the line, and the store keeps it, so that all processes that share the
//! store share the line. On *windows*, each process has its own line, and only its first request calls the
//! store. So it is with permits of requests in flight, where a release wakes the first.
//!
//! When a charge to a token bucket is refunded, the requests that wait behind it move up. Otherwise they
//! would pass together with newcomers that take the freed units. An in-memory store is credited, and all
//! requests move up by as much. A shared store is not credited, because requests that wait in other instances
//! would not be notified. There the place of a request that leaves is handed over to those behind it in this
//! process, and the last place expires.

mod bucket;
mod credits;
mod held_turn;
mod line;
mod place_request;
mod places;
mod refunds;
mod turn;

pub(crate) use refunds::RefundHold;
pub(crate) use turn::decide;

use credits::{CreditLedgers, Ledger};
use line::WaitLines;
use refunds::Refunds;
use tidegate_core::Ask;

/// The requests of a limiter that wait, and the refunds that let them move up.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    credits: CreditLedgers,
    refunds: Refunds,
    lines: WaitLines,
}

impl WaitQueue {
    /// Keeps requests from being charged out of order, until the result is dropped.
    #[inline]
    pub(crate) fn hold(&self) -> Ledger<'_> {
        self.credits.hold()
    }

    /// Wakes the first request that waits for each of these buckets: permits of them were released.
    pub(crate) fn note_release(&self, asks: &[Ask<'_>]) {
        for ask in asks {
            self.lines.ring(ask.bucket);
        }
    }
}
