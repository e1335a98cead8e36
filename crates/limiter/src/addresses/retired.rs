//! Counters replaced by a reload: their remaining counts still go to their own maps.

use super::AddressCounter;
use super::outbox::SendUrgency;
use parking_lot::Mutex;
use std::sync::Arc;
use tidegate_core::SharedState;
use tracing::warn;

/// The maximum number of retired counters. More reloads while Redis is unreachable lose the oldest.
const RETIRED_MAX: usize = 8;

/// Counters that were replaced and may still have counts to send: requests decided by the previous rules
/// count there until they finish.
#[derive(Debug, Default)]
pub(crate) struct RetiredCounters(Mutex<Vec<Arc<AddressCounter>>>);

impl RetiredCounters {
    /// Adds `before`, if `now` is a different counter.
    pub(crate) fn note(
        &self,
        before: Option<&Arc<AddressCounter>>,
        now: Option<&Arc<AddressCounter>>,
    ) {
        let Some(before) = before else {
            return;
        };
        if now.is_some_and(|now| Arc::ptr_eq(before, now)) {
            return;
        }
        let mut retired = self.0.lock();
        if retired.len() >= RETIRED_MAX {
            retired.remove(0);
            warn!(
                event = "address_counts_lost",
                "address counts lost: not written before further reloads"
            );
        }
        retired.push(Arc::clone(before));
    }

    /// Returns true if there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Sends their counts, and drops counters that are no longer in use. Counts that cannot be sent stay for
    /// the next call.
    pub(crate) async fn send(&self, state: &dyn SharedState, haste: SendUrgency) {
        let retired = self.0.lock().clone();
        for counting in retired {
            // Check first: any later count comes from a holder that this check sees. One reference is the
            // list's, one is this function's.
            let is_over = Arc::strong_count(&counting) <= 2;
            if counting.send(state, haste).await.is_ok() && is_over {
                self.0.lock().retain(|other| !Arc::ptr_eq(other, &counting));
            }
        }
    }
}
