//! A held place, and its release if the request leaves.

use super::WaitQueue;
use super::credits::CreditWatch;
use super::refunds::RefundHold;
use crate::backend::Backend;
use crate::charges::Charges;
use crate::wait_room::WaitPermit;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::Store;

/// A place in which a request waits. Dropping it releases the place and refunds everything that the request
/// was charged; [`pass`](Self::pass) uses it.
pub(super) struct HeldTurn<'a, S: Store> {
    backend: &'a Backend<S>,
    queue: &'a WaitQueue,
    /// Taken when the request passes, or its charges are refunded.
    place: Option<(Arc<Charges>, RefundHold)>,
}

impl<'a, S: Store> HeldTurn<'a, S> {
    pub(super) fn new(
        (backend, queue): (&'a Backend<S>, &'a WaitQueue),
        charges: Arc<Charges>,
        mut permits: SmallVec<[WaitPermit; 2]>,
        watch: CreditWatch,
    ) -> Self {
        permits.iter_mut().for_each(WaitPermit::begin);
        Self {
            backend,
            queue,
            place: Some((charges, RefundHold { permits, watch })),
        }
    }

    /// Waits until its turn has come, and uses it. Returns the number of microseconds by which each ask's
    /// bucket is full sooner because other requests have left meanwhile.
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
            // The permit is held until everything is refunded, but no request waits by it any more.
            held.permits.iter_mut().for_each(WaitPermit::end);
            self.queue.abandon(self.backend, &charges, held);
        }
    }
}
