//! Waiting instead of refusing (`on_refusal: wait`): in order, for a bounded time, by a bounded number of
//! requests. A request that leaves releases its place to those behind it.
//!
//! | module | what it is |
//! |---|---|
//! | `turn` | a request that waits for its turn |
//! | `asking` | requesting places, and the result |
//! | `places` | the asks of a request that may wait |
//! | `reserved` | a held place, and its release if the request leaves |
//! | `line` | lines before windows |
//! | `rooms` | the number of requests that wait for each limit, and their maximum |
//!
//! On a *token bucket*, a request that waits is charged immediately and knows from then on when its turn
//! comes. The debt of the bucket is the line, and the store keeps it, so that all processes that share the
//! store share the line. When a request leaves, those behind move up (see `giving`). On *windows*, each
//! process has its own line, and only its first request calls the store.

mod asking;
mod line;
mod places;
mod reserved;
mod rooms;
mod turn;

pub(crate) use line::WaitLines;
pub(crate) use rooms::{Rooms, WaitPermit, WaitRoom};
pub(crate) use turn::decide;

/// The number of requests that wait for one limit: see [`Limiter::waiting`](crate::Limiter::waiting).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingAt {
    /// The name of the policy.
    pub policy: String,
    /// The name of the limit.
    pub limit: String,
    /// The number of requests.
    pub count: u32,
}
