//! Giving back what a decision has charged: by whoever asked, or because somebody who waited has gone.
//!
//! | module | what it is |
//! |---|---|
//! | this one | giving back, at once or across the network |
//! | `back` | the same, for whoever asked |
//! | `charges` | what a decision has charged, to be given back at most once |
//! | `credits` | what was given back of each bucket while somebody waits for it |
//! | `given` | one such bucket: who waits for it, and how they move up |
//!
//! Whoever waits behind a charge in a token bucket moves up when it is given back; if not, they would
//! pass together with the newcomers who get what has come free. A store in this process is credited,
//! and everybody moves up by as much. A store that others share is not, for those who wait elsewhere
//! would not hear of it: there the place of somebody who goes is handed over to those behind it in
//! this process, and the last one lapses.

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

/// Gives charges back in the background.
type Background = dyn Fn(Arc<Charges>, RefundHold) + Send + Sync;

/// What is kept until charges are given back: leave to wait, so that no more is ever under way than
/// may wait, and what is known of others who went.
pub(crate) struct RefundHold {
    pub(crate) permits: SmallVec<[WaitPermit; 2]>,
    pub(crate) watch: CreditWatch,
}

/// How a limiter gives back.
#[derive(Default)]
pub(crate) struct Giving {
    pub(crate) credits: CreditLedgers,
    /// Across the network one after the other, so that each knows what the one before it did.
    order: tokio::sync::Mutex<()>,
    /// Absent for a store that decides at once.
    background: OnceLock<Box<Background>>,
}

impl<S: Store> Limiter<S> {
    /// Gives `charges` back if the store does that at once; `None` means that nothing was done.
    pub(crate) fn return_at_once(&self, charges: &Charges) -> Option<()> {
        if self.waits() {
            return None;
        }
        // Under one lock, so that of two who go at the same time the second knows of the first, and
        // whoever comes meanwhile moves up with the others.
        let ledger = self.giving().credits.hold();
        ledger.give_back(charges, |asks| self.store().decide_at_once(asks))
    }

    /// Gives `charges` back, wherever the store is.
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

    /// Whether any of `charges` can be given back.
    pub(crate) fn is_returnable(&self, charges: &Charges) -> bool {
        if self.waits() {
            !charges.to_share().is_empty()
        } else {
            !charges.list.is_empty()
        }
    }

    /// Gives back what somebody was charged who has gone: here and now, or in the background. Where
    /// there is no runtime any more to do it on, it stays charged.
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
    /// Lets this limiter give back in the background.
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
