//! Refunding charges: for the caller, or because a request that waited has left.

use super::WaitQueue;
use super::credits::CreditWatch;
use crate::backend::Backend;
use crate::charges::Charges;
use crate::wait_room::WaitPermit;
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tidegate_core::{Store, StoreError};

/// Refunds charges in the background.
pub(super) type RefundTask = dyn Fn(Arc<Charges>, RefundHold) + Send + Sync;

/// Resources held until charges are refunded: the permits to wait, so that never more refunds are in flight
/// than requests may wait, and the record of other requests that left.
pub(crate) struct RefundHold {
    pub(super) permits: SmallVec<[WaitPermit; 2]>,
    pub(super) watch: CreditWatch,
}

/// The refunds of a limiter.
#[derive(Default)]
pub(super) struct Refunds {
    /// Refunds across the network run one after the other, so that each knows the result of the one before.
    order: tokio::sync::Mutex<()>,
    /// Absent for a store that decides immediately.
    background: OnceLock<Box<RefundTask>>,
}

impl WaitQueue {
    /// Refunds `charges` if the store does so immediately; `None` means that nothing was done.
    pub(crate) fn refund_at_once<S: Store>(
        &self,
        backend: &Backend<S>,
        charges: &Charges,
    ) -> Option<()> {
        if backend.waits() {
            return None;
        }
        // Under one lock: of two requests that leave at the same time, the second knows of the first, and a
        // newcomer in between moves up with the others.
        let ledger = self.credits.hold();
        ledger.refund_charges(charges, |asks| backend.reply_at_once(asks))
    }

    /// Refunds `charges` in any store.
    pub(crate) async fn refund<S: Store>(
        &self,
        backend: &Backend<S>,
        charges: &Charges,
    ) -> Result<(), StoreError> {
        if self.refund_at_once(backend, charges).is_some() {
            return Ok(());
        }
        let list = charges.to_share();
        if list.is_empty() {
            return Ok(());
        }
        let _in_order = self.refunds.order.lock().await;
        let receipts = self.credits.hold().receipts(charges, &list);
        let asks = charges.asks(&list, &receipts);
        let reply = backend.store.decide(&asks).await?;
        self.credits.hold().note(charges, &list, &reply);
        Ok(())
    }

    /// Refunds the charges of a request that has left, immediately or in the background. Without a runtime to
    /// do so, they stay charged.
    pub(super) fn abandon<S: Store>(
        &self,
        backend: &Backend<S>,
        charges: &Arc<Charges>,
        mut held: RefundHold,
    ) {
        if !charges.claim() || self.refund_at_once(backend, charges).is_some() {
            return;
        }
        held.watch.hand_over();
        if let Some(background) = self.refunds.background.get()
            && charges.is_refundable(backend.waits())
        {
            background(Arc::clone(charges), held);
        }
    }

    /// Makes `background` refund charges to a store that does not do so immediately.
    pub(crate) fn refund_by(
        &self,
        background: impl Fn(Arc<Charges>, RefundHold) + Send + Sync + 'static,
    ) {
        let refunds = &self.refunds;
        refunds.background.get_or_init(|| Box::new(background));
    }
}

impl fmt::Debug for Refunds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refunds").finish_non_exhaustive()
    }
}
