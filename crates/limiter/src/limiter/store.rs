//! The store of a limiter, and its health.

use super::Limiter;
use crate::failure::StoreHealth;
use tidegate_core::{Store, StoreError};

impl<S: Store> Limiter<S> {
    /// Returns the health of the store; `None` for one that cannot fail. Reads counters only: see
    /// [`probe_store`](Self::probe_store) for a call to the store.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// assert!(limiter.store_health().is_none(), "buckets in memory cannot be unreachable");
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn store_health(&self) -> Option<StoreHealth> {
        self.state.backend.health()
    }

    /// Records a result observed elsewhere: that the store answers, or the reason why it does not. For
    /// programs that use the same store for other things, and learn of an outage first.
    pub fn note_store(&self, heard: Result<(), &StoreError>) {
        self.state.backend.note(heard);
    }

    /// Sends a harmless read to the store, so that its health is known even without requests. Changes
    /// nothing, in the store or in any local bucket. Returns `None` for a store that cannot fail.
    ///
    /// A program calls it every few seconds, so that it notices an outage and a recovery while it is idle.
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    ///
    /// let limiter = tidegate::Limiter::builder().file("tidegate.yaml")?.start().await?;
    /// loop {
    ///     if let Some(health) = limiter.probe_store().await {
    ///         println!("store up: {}", health.is_up);
    ///     }
    ///     tokio::time::sleep(Duration::from_secs(5)).await;
    /// }
    /// # #[expect(unreachable_code)]
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn probe_store(&self) -> Option<StoreHealth> {
        let rules = self.state.present();
        let named = rules.policies.iter().find_map(|policy| {
            // An unlimited limit has no band to read.
            let mut limits = policy.limits.iter();
            limits.find_map(|limit| Some((policy, limit, limit.shapes().first()?)))
        });
        let Some((policy, limit, band)) = named else {
            return self.store_health();
        };
        let bucket = format!("{}/{}/probe", policy.name, limit.name);
        let backend = &self.state.backend;
        backend.probe(bucket.as_bytes(), &band.quota).await
    }

    /// Returns true if any limit lets requests pass while the store is unreachable, all of them or at a
    /// share. A readiness check uses it: an instance for which it is false is of no use during an outage.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, OnFailure};
    ///
    /// let with = |on_failure| {
    ///     Limiter::builder().limit(LimitSpec::new("all").band("10/s")).on_failure(on_failure).build()
    /// };
    /// assert!(with(OnFailure::Local)?.can_pass_without_store());
    /// assert!(!with(OnFailure::Deny)?.can_pass_without_store());
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn can_pass_without_store(&self) -> bool {
        self.state.present().can_pass_without_store()
    }
}
