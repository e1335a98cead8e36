//! Waiting instead of refusing (`on_refusal: wait`): in order, for a bounded time, by a bounded number,
//! and given up by whoever goes, to those behind.
//!
//! | module | what it is |
//! |---|---|
//! | `turn` | a request that waits for its turn |
//! | `asking` | asking for places, and what comes of it |
//! | `places` | a question as somebody asks it who may wait |
//! | `reserved` | a place, and what becomes of it if somebody goes |
//! | `line` | lines before windows |
//! | `rooms` | how many wait for each limit, and how many may |
//!
//! On a *token bucket* whoever waits is charged at once and knows from then on when its turn comes:
//! the debt of the bucket is the line, and the store keeps it, so that all processes that share the
//! store stand in the same one. When somebody goes, those behind move up (see `giving`). On *windows*
//! the line is this process's own, and only its first asks.

mod asking;
mod line;
mod places;
mod reserved;
mod rooms;
mod turn;

pub(crate) use line::WaitLines;
pub(crate) use rooms::{Rooms, WaitPermit, WaitRoom};
pub(crate) use turn::decide;

/// How many requests wait for one limit: see [`Limiter::waiting`](crate::Limiter::waiting).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingAt {
    /// The name of the policy.
    pub policy: String,
    /// The name of the limit.
    pub limit: String,
    /// How many.
    pub count: u32,
}
