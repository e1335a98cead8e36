//! The health of the store, for callers of the limiter.

use super::StoreHealth;
use crate::limiter::Limiter;
use tidegate_core::{Store, StoreError};

impl<S: Store> Limiter<S> {
    /// Returns the health of the store; `None` for one that cannot fail.
    pub fn store_health(&self) -> Option<StoreHealth> {
        Some(self.failover()?.health())
    }

    /// Records a result observed elsewhere: that the store answers, or the reason why it does not.
    pub fn note_store(&self, heard: Result<(), &StoreError>) {
        if let Some(failover) = self.failover() {
            match heard {
                Ok(()) => failover.succeeded(),
                Err(error) => failover.failed(error),
            }
        }
    }

    /// Sends a harmless read to the store, so that its health is known even without requests. Changes
    /// nothing, in the store or in any local bucket. Returns `None` for a store that cannot fail.
    pub async fn probe_store(&self) -> Option<StoreHealth> {
        let failover = self.failover()?;
        let rules = self.present();
        let named = rules.policies.iter().find_map(|policy| {
            // An unlimited limit has no band to read.
            let mut limits = policy.limits.iter();
            limits.find_map(|limit| Some((policy, limit, limit.shapes().first()?)))
        });
        if let Some((policy, limit, band)) = named {
            let bucket = format!("{}/{}/probe", policy.name, limit.name);
            let asked = self.store().inspect(bucket.as_bytes(), &band.quota);
            self.note_store(asked.await.as_ref().map(drop));
        }
        Some(failover.health())
    }

    /// Returns true if any limit lets requests pass while the store is unreachable, all of them or at a
    /// share.
    pub fn goes_on_without_store(&self) -> bool {
        self.present().goes_on_without_store()
    }
}
