//! How the store is, for those who ask the limiter.

use super::StoreHealth;
use crate::limiter::Limiter;
use tidegate_core::{Store, StoreError};

impl<S: Store> Limiter<S> {
    /// How the store is; `None` for one that cannot fail.
    pub fn store_health(&self) -> Option<StoreHealth> {
        Some(self.failover()?.health())
    }

    /// Tells what was learnt of the store elsewhere: that it answers, or why it does not.
    pub fn note_store(&self, heard: Result<(), &StoreError>) {
        if let Some(failover) = self.failover() {
            match heard {
                Ok(()) => failover.succeeded(),
                Err(error) => failover.failed(error),
            }
        }
    }

    /// Asks the store for something harmless, so that it is known how it is even if nobody else
    /// asks. Nothing is changed, in the store or in any bucket of this process.
    pub async fn probe_store(&self) -> Option<StoreHealth> {
        let failover = self.failover()?;
        let rules = self.present();
        let named = rules.policies.iter().find_map(|policy| {
            // One that is unlimited has no band to ask for.
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

    /// Whether any limit lets requests pass while the store is away, at a share or all of them.
    pub fn goes_on_without_store(&self) -> bool {
        self.present().goes_on_without_store()
    }
}
