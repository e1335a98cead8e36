//! The store of a limiter, and the fallback for a store that can fail. Asks reach the store in one place,
//! here.
//!
//! Every verb (check, reserve, throttle, waiting, limits that are decided separately) goes through
//! [`Backend::answers`]:
//!
//! 1. The store answered: its health is recorded, and local buckets remember the levels that it reported.
//! 2. It answered in part, as a cluster may: the `on_failure` of the other limits decides. If the request is
//!    refused, the charges that were made are refunded.
//! 3. It did not answer: the `on_failure` of each limit decides. With `on_failure: error`, the caller gets the
//!    error.
//!
//! The result is one type, [`Answers`], for all three. It lists for each ask the outcome, the receipt of the
//! charge, and the place where the bucket is: in the store, or in this process.
//!
//! [`Backend::settle`] does 1, and refunds as 2 does. It has no `on_failure`: only the store can settle a charge.

use crate::dated_store::{DatedStore, drop_closed};
use crate::decision::Answers;
use crate::error::CheckError;
use crate::failure::{Failover, FallbackTerms, StoreHealth};
use smallvec::SmallVec;
use tidegate_core::{
    Ask, Op, PartialAnswer, Quota, Reply, SharedState, Store, StoreError, StoreErrorKind,
};
use tokio::time::timeout;

/// A store, and the decisions in place of it if it does not answer.
#[derive(Debug)]
pub(crate) struct Backend<S> {
    pub(crate) store: DatedStore<S>,
    /// Present only for a store that can fail.
    failover: Option<Box<Failover>>,
    /// True if a decision may have to wait for the store.
    waits: bool,
}

impl<S> Backend<S> {
    /// Returns true if a decision may have to wait for the store.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) fn failover(&self) -> Option<&Failover> {
        self.failover.as_deref()
    }

    /// Returns the health of the store; `None` for one that cannot fail.
    pub(crate) fn health(&self) -> Option<StoreHealth> {
        Some(self.failover()?.health())
    }

    /// Records that the store answers, or the reason why it does not.
    pub(crate) fn note(&self, result: Result<(), &StoreError>) {
        if let Some(failover) = self.failover() {
            match result {
                Ok(()) => failover.succeeded(),
                Err(error) => failover.failed(error),
            }
        }
    }
}

impl<S: Store> Backend<S> {
    pub(crate) fn new(store: S, failover: Option<Failover>) -> Self {
        Self {
            waits: failover.is_some() || store.decide_at_once(&[]).is_none(),
            store: DatedStore::new(store),
            failover: failover.map(Box::new),
        }
    }

    pub(crate) fn shared_state(&self) -> Option<&dyn SharedState> {
        self.store.shared_state()
    }

    /// Sends the asks to the store, and waits for it only if it does not decide immediately. If it does not
    /// answer, or only in part, the `on_failure` of each limit decides.
    pub(crate) async fn ask(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
    ) -> Result<Answers, CheckError> {
        if !self.waits
            && let Some(reply) = self.reply_at_once(asks)
        {
            return Ok(Answers::of(asks, &reply));
        }
        let reply = self.store.decide(asks).await;
        self.answers(terms, asks, reply)
    }

    /// Sends the asks to a store that decides immediately, which no caller [waits](Self::waits) for. `None`
    /// means that nothing was done.
    #[inline]
    pub(crate) fn reply_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        debug_assert!(!self.waits, "the health of this store has to be recorded");
        self.store.decide_at_once(asks)
    }

    /// Returns the answers for `reply`, and records the store's health.
    ///
    /// If the store answered only in part, its charges stay if the request passes, and are refunded
    /// otherwise.
    pub(crate) fn answers(
        &self,
        terms: FallbackTerms<'_>,
        asks: &[Ask<'_>],
        reply: Result<Reply, StoreError>,
    ) -> Result<Answers, CheckError> {
        let failover = self.failover();
        let error = match reply {
            Ok(reply) => {
                if let Some(failover) = failover {
                    failover.note(asks, &reply);
                }
                return Ok(Answers::of(asks, &reply));
            }
            Err(error) => error,
        };
        match failover.and_then(|failover| failover.decide(terms, asks, &error)) {
            Some(answers) if answers.passed => Ok(answers),
            refused => {
                self.refund_partial(asks, &error);
                let refused = refused.map(Answers::refunded);
                refused.ok_or_else(|| CheckError::Store(error))
            }
        }
    }

    /// Sends asks that settle a charge to the store, which alone can: no `on_failure` decides in its place.
    /// A partial answer is refunded, because the same call again settles all of it. Asks of windows that are over
    /// are removed: they settle nothing.
    ///
    /// Returns `None` if no single step of the store reaches all of these buckets. That is permanent, and
    /// independent of the store's health.
    pub(crate) async fn settle(
        &self,
        asks: &mut SmallVec<[Ask<'_>; 4]>,
    ) -> Result<Option<Reply>, StoreError> {
        let mut reply = self.store.decide(asks).await;
        while let Ok(outside) = &reply
            && outside.outside
            && drop_closed(asks, outside.at)
        {
            reply = self.store.decide(asks).await;
        }
        let error = match reply {
            Ok(reply) => {
                if let Some(failover) = self.failover() {
                    failover.note_settled(asks, &reply);
                }
                return Ok(Some(reply));
            }
            Err(error) if is_apart(&error, asks) => return Ok(None),
            Err(error) => error,
        };
        self.note(Err(&error));
        self.refund_partial(asks, &error);
        Err(error)
    }

    /// Refunds the charges of a store that answered only in part.
    fn refund_partial(&self, asks: &[Ask<'_>], error: &StoreError) {
        let mut refunds: SmallVec<[Ask<'_>; 4]> = SmallVec::new();
        for (ask, partial) in asks.iter().zip(error.answers()) {
            let receipt = partial.as_ref().and_then(PartialAnswer::receipt);
            refunds.extend(receipt.map(|receipt| Ask {
                op: Op::GiveBack(receipt),
                ..*ask
            }));
        }
        if !refunds.is_empty() {
            self.store.refund(&refunds);
        }
    }

    /// Sends a harmless read of `bucket` to the store, and records the result. Returns the health of the
    /// store; `None` for one that cannot fail, which is not called.
    pub(crate) async fn probe(&self, bucket: &[u8], quota: &Quota) -> Option<StoreHealth> {
        let failover = self.failover()?;
        let inspected = self.store.inspect(bucket, quota).await;
        self.note(inspected.as_ref().map(drop));
        Some(failover.health())
    }

    /// Waits for the store as long as for a decision. The store's own timeout to inspect or reset a bucket is
    /// longer: it is meant for people, who prefer to wait.
    pub(crate) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, CheckError> {
        let answered = match self.store.timeout() {
            None => call.await,
            Some(time) => timeout(time, call).await.unwrap_or_else(|_| {
                let message = format!("the store did not respond within {time:?}");
                Err(StoreError::transient(message).with_kind(StoreErrorKind::Timeout))
            }),
        };
        answered.map_err(CheckError::Store)
    }
}

/// Returns true if a store cannot refund because no single step reaches a bucket and its mark, or all bands
/// of a bucket.
fn is_apart(error: &StoreError, asks: &[Ask<'_>]) -> bool {
    let returns = |ask: &Ask<'_>| matches!(ask.op, Op::Return { .. });
    !error.is_transient() && error.kind() == StoreErrorKind::Other && asks.iter().any(returns)
}
