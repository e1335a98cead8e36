//! Decisions that could not be made at once.

use crate::checking::BUFFERS;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::purpose::AskPurpose;
use crate::question::{Buffers, KeptQuestion, PreparedRequest};
use crate::rules::Rules;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_memory::MemoryStore;
use tidegate_policy::Request;

/// The result of [`Limiter::attempt`]: decided at once, or prepared to be decided later.
#[derive(Debug)]
pub enum Attempt<S = MemoryStore, T = Decision> {
    /// The decision, or the value that the caller's function made of it.
    Done(T),
    /// Not decided yet: the store is across the network, or a limit lets the request wait.
    Pending(PendingDecision<S>),
}

/// The terms of an [attempt](Limiter::attempt_with).
#[derive(Clone, Copy, Debug)]
pub struct AttemptTerms {
    /// The purpose of the request.
    pub purpose: AskPurpose,
    /// True if an earlier request of the same list is pending. This request then calls no store before it is
    /// polled, so that it does not overtake the other at limits that both match.
    pub is_behind: bool,
}

impl From<AskPurpose> for AttemptTerms {
    #[inline]
    fn from(purpose: AskPurpose) -> Self {
        Self {
            purpose,
            is_behind: false,
        }
    }
}

/// A request that is prepared to be decided: guards let it pass, and its limits are matched. It owns
/// everything it needs; the [`Request`] may be dropped.
///
/// Nothing is charged before [`decision`](Self::decision) is polled.
pub struct PendingDecision<S = MemoryStore> {
    limiter: Limiter<S>,
    rules: Arc<Rules>,
    question: KeptQuestion,
    /// The buffers of the thread that prepared the request.
    buffers: Option<Box<Buffers>>,
}

impl<S: Store> PendingDecision<S> {
    pub(crate) fn new(limiter: &Limiter<S>, rules: &Arc<Rules>, question: KeptQuestion) -> Self {
        Self {
            limiter: limiter.clone(),
            rules: Arc::clone(rules),
            question,
            buffers: None,
        }
    }

    /// Keeps the buffers that the request was prepared in.
    pub(crate) fn lend(&mut self, mut buffers: Box<Buffers>) {
        // Drop the lists: they are large, may be replaced in the meantime, and guards have already decided.
        buffers.guards.lists.clear();
        self.buffers = Some(buffers);
    }

    /// Returns the rules that the request is decided by.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Returns the parts of the request that its decision is counted by: its policy and its costs. See
    /// [`Decision::limit_hits`].
    pub fn counted(&self) -> Request<'_> {
        self.question.counted(&self.rules)
    }

    /// Decides the request: calls the store, and waits for limits that let it, as [`Limiter::check`]
    /// describes. Each call decides, and charges, again.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer and a limit has `on_failure: error`.
    // Boxed: the future is large, and would be part of every decision that does not wait.
    pub fn decision(&self) -> Pin<Box<impl Future<Output = Result<Decision, CheckError>> + Send>> {
        Box::pin(async { self.limiter.resolve(&self.question()).await })
    }

    /// Decides the request without waiting for limits. Returns `None` if the store cannot decide immediately.
    pub(crate) fn decision_now(&self) -> Option<Decision> {
        self.limiter
            .answer_at_once(&self.question(), |decision| decision)
    }

    fn question(&self) -> PreparedRequest<'_> {
        let buffers = self.buffers.as_deref();
        let buffers = buffers.expect("lent as soon as it is made");
        self.question.question(&self.rules, buffers)
    }
}

/// Leaves the buffers to the thread that drops it, for reuse.
impl<S> Drop for PendingDecision<S> {
    fn drop(&mut self) {
        let buffers = self.buffers.take();
        // Fails while a thread ends; the buffers are then freed.
        BUFFERS.try_with(|free| free.set(buffers)).ok();
    }
}

impl<S> fmt::Debug for PendingDecision<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingDecision")
            .field("question", &self.question)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::PendingDecision;
    use crate::Decision;

    /// Both are moved often, a decision several times per request.
    #[test]
    fn decisions_are_small() {
        assert!(size_of::<Decision>() <= 336, "{}", size_of::<Decision>());
        let pending = size_of::<PendingDecision>();
        assert!(pending <= size_of::<Decision>(), "{pending}");
    }
}
