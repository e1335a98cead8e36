//! A place that somebody waits in, and what becomes of it if they go.

use super::rooms::WaitPermit;
use crate::giving::{Charges, CreditWatch, RefundHold};
use crate::limiter::Limiter;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::Store;

/// A place that is waited in. Dropped, it is given up, with all else that the request was charged;
/// [passed](Self::pass), it is used.
pub(super) struct HeldTurn<'a, S: Store> {
    limiter: &'a Limiter<S>,
    /// Taken when it passes, or is given back.
    place: Option<(Arc<Charges>, RefundHold)>,
}

impl<'a, S: Store> HeldTurn<'a, S> {
    pub(super) fn new(
        limiter: &'a Limiter<S>,
        charges: Arc<Charges>,
        mut permits: SmallVec<[WaitPermit; 2]>,
        watch: CreditWatch,
    ) -> Self {
        permits.iter_mut().for_each(WaitPermit::begin);
        Self {
            limiter,
            place: Some((charges, RefundHold { permits, watch })),
        }
    }

    /// Waits until its turn has come, and uses it. Tells for each ask by how many microseconds sooner
    /// its bucket is as good as new, because others have gone meanwhile.
    pub(super) async fn pass(mut self) -> SmallVec<[(usize, u64); 2]> {
        let Some((_, held)) = &self.place else {
            return SmallVec::new();
        };
        held.watch.turn().await;
        let sooner_us = held.watch.sooner_us();
        self.place = None;
        sooner_us
    }
}

impl<S: Store> Drop for HeldTurn<'_, S> {
    fn drop(&mut self) {
        if let Some((charges, mut held)) = self.place.take() {
            // Leave to wait is held until all is given back, but nobody waits by it any more.
            held.permits.iter_mut().for_each(WaitPermit::end);
            self.limiter.abandon(&charges, held);
        }
    }
}
