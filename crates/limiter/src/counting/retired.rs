//! Counting that a reload has replaced: what is left of it still goes where it was counted for.

use super::AddressCounter;
use super::post::Haste;
use parking_lot::Mutex;
use std::sync::Arc;
use tidegate_core::SharedState;
use tracing::warn;

/// How many are kept. Whoever reloads more often while Redis is away loses the oldest.
const RETIRED_MAX: usize = 8;

/// Those that were replaced and may still have something to send: requests that were decided by the
/// rules of before count there until they are through.
#[derive(Debug, Default)]
pub(crate) struct Retired(Mutex<Vec<Arc<AddressCounter>>>);

impl Retired {
    /// Takes `before` in, if `now` is another.
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
            warn!("counts by address are lost: they could not be sent before too many reloads");
        }
        retired.push(Arc::clone(before));
    }

    /// Whether there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Sends what they have, and forgets those that nobody counts with any more. What cannot be sent
    /// stays for the next time.
    pub(crate) async fn send(&self, state: &dyn SharedState, haste: Haste) {
        let retired = self.0.lock().clone();
        for counting in retired {
            // Looked at first: what is counted after that is counted by somebody who still has it. One
            // is the list's, one is ours.
            let is_over = Arc::strong_count(&counting) <= 2;
            if counting.send(state, haste).await.is_ok() && is_over {
                self.0.lock().retain(|other| !Arc::ptr_eq(other, &counting));
            }
        }
    }
}
