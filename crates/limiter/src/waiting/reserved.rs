//! A place that somebody waits in, and what becomes of it if they go.

use super::rooms::Permit;
use crate::giving::{Charges, Held, Watch};
use crate::limiter::Limiter;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::Store;

/// A place that is waited in. Dropped, it is given up, with all else that the request was charged;
/// [passed](Self::pass), it is used.
pub(super) struct Reserved<'a, S: Store> {
    limiter: &'a Limiter<S>,
    /// Taken when it passes, or is given back.
    place: Option<(Arc<Charges>, Held)>,
}

impl<'a, S: Store> Reserved<'a, S> {
    pub(super) fn new(
        limiter: &'a Limiter<S>,
        charges: Arc<Charges>,
        mut permits: SmallVec<[Permit; 2]>,
        watch: Watch,
    ) -> Self {
        permits.iter_mut().for_each(Permit::begin);
        Self {
            limiter,
            place: Some((charges, Held { permits, watch })),
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

impl<S: Store> Drop for Reserved<'_, S> {
    fn drop(&mut self) {
        if let Some((charges, mut held)) = self.place.take() {
            // Leave to wait is held until all is given back, but nobody waits by it any more.
            held.permits.iter_mut().for_each(Permit::end);
            self.limiter.abandon(&charges, held);
        }
    }
}
