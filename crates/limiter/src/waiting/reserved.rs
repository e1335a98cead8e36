//! A place that somebody waits in, and what becomes of it if they go.

use super::rooms::Permit;
use crate::giving::{Charges, Held};
use crate::limiter::Limiter;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::Store;

/// A place that is waited in. Dropped, it is given back, with all else that the request was charged;
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
    ) -> Self {
        permits.iter_mut().for_each(Permit::begin);
        let watch = limiter.giving().credits.watch(&charges);
        let held = Held {
            permits,
            _watch: watch,
        };
        Self {
            limiter,
            place: Some((charges, held)),
        }
    }

    /// Its turn has come.
    pub(super) fn pass(mut self) {
        self.place = None;
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
