//! A request that waits for its answer.

use crate::request::SlotAsks;
use smallvec::SmallVec;
use tidegate_core::{Outcomes, Reply, StoreError};
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) type Buckets = SmallVec<[u64; 2]>;

/// A request under way, and where its answer goes.
#[derive(Debug)]
pub(crate) struct LaneRequest {
    pub(crate) request: SlotAsks,
    /// About how much of Redis' time it takes, in tenths of a microsecond.
    pub(crate) weight: u32,
    /// A hash of each of its keys. Two keys with one hash are taken for one bucket, which costs a
    /// little time.
    pub(crate) buckets: Buckets,
    /// Whether whoever came before asks for the same.
    pub(crate) is_repeat: bool,
    pub(crate) asker: ReplyWaiter,
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) struct ReplyWaiter {
    /// After this instant nobody wants the answer.
    pub(crate) deadline: Instant,
    /// Whether the answer is to tell what the buckets read before they were charged as well.
    pub(crate) wants_before: bool,
    pub(crate) answer: oneshot::Sender<Result<RequestReply, StoreError>>,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct RequestReply {
    pub(crate) reply: Reply,
    /// What each bucket read before it was charged, where that was wanted.
    pub(crate) before: Option<Outcomes>,
}

impl ReplyWaiter {
    /// Whether nobody wants the answer any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }

    /// Hands the answer over. Whoever has stopped waiting does not miss it.
    pub(crate) fn tell(self, answer: Result<RequestReply, StoreError>) {
        self.answer.send(answer).ok();
    }
}
