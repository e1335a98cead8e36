//! A request that waits for its answer.

use crate::request::Request;
use tidegate_core::{Outcomes, Reply, StoreError};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A request under way, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) request: Request,
    pub(crate) asker: Asker,
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) struct Asker {
    /// After this instant nobody wants the answer.
    pub(crate) deadline: Instant,
    /// Whether the answer is to tell what the buckets read before they were charged as well.
    pub(crate) wants_before: bool,
    pub(crate) answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    /// What each bucket read before it was charged, where that was wanted.
    pub(crate) before: Option<Outcomes>,
}

impl Asker {
    /// Hands the answer over. Whoever has stopped waiting does not miss it.
    pub(crate) fn tell(self, answer: Result<Answer, StoreError>) {
        self.answer.send(answer).ok();
    }
}
