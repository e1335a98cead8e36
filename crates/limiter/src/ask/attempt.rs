//! Decisions that could not be made at once.

use super::check;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::purpose::AskPurpose;
use crate::request::{BUFFERS, Buffers, CountedRequest, DetachedRequest, PreparedRequest};
use crate::rules::Rules;
use crate::state::LimiterState;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_memory::MemoryStore;

/// The result of [`Limiter::attempt`](crate::Limiter::attempt): decided at once, or prepared to be decided
/// later.
///
/// A frontend that serves most requests from memory takes the first branch without allocating a future:
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{AskPurpose, Attempt, LimitSpec, Limiter, Request};
///
/// let limit = LimitSpec::new("jobs").band("50/s burst 1").wait(Duration::from_secs(1));
/// let limiter = Limiter::builder().limit(limit).build()?;
/// let rules = limiter.rules()?;
/// // A limit that lets requests wait may have to: never at once.
/// let Attempt::Pending(pending) = limiter.attempt(&rules, &Request::new(), AskPurpose::Pass)? else {
///     panic!("it may have to wait")
/// };
/// assert!(pending.decision().await?.is_allowed());
/// // A test waits for nothing.
/// let tested = limiter.attempt(&rules, &Request::new(), AskPurpose::Test)?;
/// assert!(matches!(tested, Attempt::Done(decision) if !decision.is_allowed()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum Attempt<S = MemoryStore, T = Decision> {
    /// The decision, or the value that the caller's function made of it.
    Done(T),
    /// Not decided yet: the store is across the network, or a limit lets the request wait.
    Pending(PendingDecision<S>),
}

/// The terms of an [attempt](crate::Limiter::attempt_with). An [`AskPurpose`] converts into them, for a
/// request that follows no other.
#[derive(Clone, Copy, Debug)]
///
/// ```
/// use tidegate::{AskPurpose, Attempt, AttemptTerms, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("5/h")).build()?;
/// let rules = limiter.rules()?;
/// // An earlier request of the same batch is pending, so this one must not be decided before it.
/// let behind = AttemptTerms { purpose: AskPurpose::Pass, is_behind: true };
/// let attempt = limiter.attempt_with(&rules, &Request::new(), behind, |decision| decision)?;
/// assert!(matches!(attempt, Attempt::Pending(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
/// everything it needs; the [`Request`](tidegate_policy::Request) may be dropped.
///
/// Nothing is charged before [`decision`](Self::decision) is polled.
///
/// Dropping it without polling decides nothing, and leaves its buffers to this thread for the next request.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{AskPurpose, Attempt, LimitSpec, Limiter, Request};
///
/// let limit = LimitSpec::new("jobs").band("5/s").wait(Duration::from_secs(1));
/// let limiter = Limiter::builder().limit(limit).build()?;
/// let pending = {
///     let user = String::from("ann");
///     let request = Request::new().user(&user).cost(3);
///     match limiter.attempt(&limiter.rules()?, &request, AskPurpose::Pass)? {
///         Attempt::Pending(pending) => pending,
///         Attempt::Done(_) => panic!("a limit lets it wait"),
///     }
/// };
/// // The request is gone; the pending decision has all it needs.
/// assert_eq!(pending.counted().request().cost, 3);
/// assert!(pending.decision().await?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PendingDecision<S = MemoryStore> {
    state: Arc<LimiterState<S>>,
    rules: Arc<Rules>,
    request: DetachedRequest,
    /// The buffers of the thread that prepared the request.
    buffers: Option<Box<Buffers>>,
}

impl<S: Store> PendingDecision<S> {
    pub(super) fn new(
        state: &Arc<LimiterState<S>>,
        rules: &Arc<Rules>,
        request: DetachedRequest,
    ) -> Self {
        Self {
            state: Arc::clone(state),
            rules: Arc::clone(rules),
            request,
            buffers: None,
        }
    }

    /// Keeps the buffers that the request was prepared in.
    pub(super) fn lend(&mut self, mut buffers: Box<Buffers>) {
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
    pub fn counted(&self) -> CountedRequest<'_> {
        self.request.counted(&self.rules)
    }

    /// Decides the request: calls the store, and waits for limits that let it, as [`Limiter::check`](crate::Limiter::check)
    /// describes. Each call decides, and charges, again.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer and a limit has `on_failure: error`.
    // Boxed: the future is large, and would be part of every decision that does not wait.
    pub fn decision(&self) -> Pin<Box<impl Future<Output = Result<Decision, CheckError>> + Send>> {
        let LimiterState { backend, queue, .. } = &*self.state;
        Box::pin(async { check::decide(backend, queue, &self.prepared()).await })
    }

    /// Decides the request without waiting for limits. Returns `None` if the store cannot decide immediately.
    pub(crate) fn decision_now(&self) -> Option<Decision> {
        let LimiterState { backend, queue, .. } = &*self.state;
        check::decide_at_once(backend, queue, &self.prepared(), |decision| decision)
    }

    /// Returns the request with its asks.
    pub(crate) fn prepared(&self) -> PreparedRequest<'_> {
        let buffers = self.buffers.as_deref();
        let buffers = buffers.expect("lent as soon as it is made");
        self.request.prepared(&self.rules, buffers)
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
            .field("request", &self.request)
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
