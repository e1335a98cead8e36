//! Refunding the charges of a decision: for the caller, or because a request that waited has left.
//!
//! | module | what it is |
//! |---|---|
//! | this one | refunds, immediate or across the network |
//! | `back` | refunds for callers |
//! | `charges` | the charges of a decision, to be refunded at most once |
//! | `credits` | the credits of each bucket while requests wait for it |
//! | `given` | one such bucket: the requests that wait for it, and how they move up |
//!
//! When a charge to a token bucket is refunded, the requests that wait behind it move up. Otherwise they
//! would pass together with newcomers that take the freed units. An in-memory store is credited, and all
//! requests move up by as much. A shared store is not credited, because requests that wait in other instances
//! would not be notified. There the place of a request that leaves is handed over to those behind it in this
//! process, and the last place expires.

mod back;
mod charges;
mod credits;
mod given;

pub(crate) use charges::{BucketCharge, Charges};
pub(crate) use credits::{CreditLedgers, CreditWatch, Ledger};

use crate::limiter::Limiter;
use crate::waiting::WaitPermit;
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use tidegate_core::{Store, StoreError};
use tokio::runtime::Handle;

/// Refunds charges in the background.
type Background = dyn Fn(Arc<Charges>, RefundHold) + Send + Sync;

/// Resources held until charges are refunded: the permits to wait, so that never more refunds are in flight
/// than requests may wait, and the record of other requests that left.
pub(crate) struct RefundHold {
    pub(crate) permits: SmallVec<[WaitPermit; 2]>,
    pub(crate) watch: CreditWatch,
}

/// The refund state of a limiter.
#[derive(Default)]
pub(crate) struct Giving {
    pub(crate) credits: CreditLedgers,
    /// Refunds across the network run one after the other, so that each knows the result of the one before.
    order: tokio::sync::Mutex<()>,
    /// Absent for a store that decides immediately.
    background: OnceLock<Box<Background>>,
}

impl<S: Store> Limiter<S> {
    /// Refunds `charges` if the store does so immediately; `None` means that nothing was done.
    pub(crate) fn return_at_once(&self, charges: &Charges) -> Option<()> {
        if self.waits() {
            return None;
        }
        // Under one lock: of two requests that leave at the same time, the second knows of the first, and a
        // newcomer in between moves up with the others.
        let ledger = self.giving().credits.hold();
        ledger.give_back(charges, |asks| self.store().decide_at_once(asks))
    }

    /// Refunds `charges` in any store.
    pub(crate) async fn return_charges(&self, charges: &Charges) -> Result<(), StoreError> {
        if self.return_at_once(charges).is_some() {
            return Ok(());
        }
        let list = charges.to_share();
        if list.is_empty() {
            return Ok(());
        }
        let giving = self.giving();
        let _in_order = giving.order.lock().await;
        let receipts = giving.credits.hold().receipts(charges, &list);
        let asks = charges.asks(&list, &receipts);
        let reply = self.store().decide(&asks).await?;
        giving.credits.hold().note(charges, &list, &reply);
        Ok(())
    }

    /// Returns true if any of `charges` can be refunded.
    pub(crate) fn is_returnable(&self, charges: &Charges) -> bool {
        if self.waits() {
            !charges.to_share().is_empty()
        } else {
            !charges.list.is_empty()
        }
    }

    /// Refunds the charges of a request that has left, immediately or in the background. Without a runtime to
    /// do so, they stay charged.
    pub(crate) fn abandon(&self, charges: &Arc<Charges>, mut held: RefundHold) {
        if !charges.claim() || self.return_at_once(charges).is_some() {
            return;
        }
        held.watch.hand_over();
        if let Some(background) = self.giving().background.get()
            && self.is_returnable(charges)
        {
            background(Arc::clone(charges), held);
        }
    }
}

impl<S: Store + 'static> Limiter<S> {
    /// Enables refunds in the background.
    pub(crate) fn with_background(self) -> Self {
        let weak = self.downgrade();
        let background = move |charges: Arc<Charges>, held: RefundHold| {
            let limiter = Weak::upgrade(&weak).map(Self::of_shared);
            if let (Some(limiter), Ok(runtime)) = (limiter, Handle::try_current()) {
                runtime.spawn(async move {
                    if let Err(error) = limiter.return_charges(&charges).await {
                        tracing::debug!(%error, "what a request was charged that has gone stays charged");
                    }
                    drop(held);
                });
            }
        };
        self.giving()
            .background
            .get_or_init(|| Box::new(background));
        self
    }
}

impl fmt::Debug for Giving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Giving").finish_non_exhaustive()
    }
}
