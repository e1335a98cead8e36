//! A request that waits for its answer.

use crate::request::SlotAsks;
use smallvec::SmallVec;
use tidegate_core::{Outcomes, Reply, StoreError};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Hashes of the keys of a request.
pub(crate) type Buckets = SmallVec<[u64; 2]>;

/// A request in a lane, and the receiver of its reply.
#[derive(Debug)]
pub(crate) struct LaneRequest {
    pub(crate) request: SlotAsks,
    /// About how much of Redis' time it takes, in tenths of a microsecond.
    pub(crate) weight: u32,
    /// A hash of each of its keys. Two keys with one hash are taken for one bucket, which costs a
    /// little time.
    pub(crate) buckets: Buckets,
    /// True if the previous request is the same.
    pub(crate) is_repeat: bool,
    pub(crate) asker: ReplyWaiter,
}

/// A caller that waits for a reply.
#[derive(Debug)]
pub(crate) struct ReplyWaiter {
    /// The instant after which the reply is useless.
    pub(crate) deadline: Instant,
    /// True if the caller also wants the readings of the buckets before the charge.
    pub(crate) wants_before: bool,
    pub(crate) answer: oneshot::Sender<Result<RequestReply, StoreError>>,
}

/// The reply to a request.
#[derive(Debug)]
pub(crate) struct RequestReply {
    pub(crate) reply: Reply,
    /// The readings of the buckets before the charge, if wanted.
    pub(crate) before: Option<Outcomes>,
}

impl ReplyWaiter {
    /// Returns true if the caller has stopped waiting.
    pub(crate) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    /// Sends the reply. A caller that has stopped waiting needs none.
    pub(crate) fn tell(self, answer: Result<RequestReply, StoreError>) {
        self.answer.send(answer).ok();
    }
}
