//! Loads sources again, and takes in the results.

use super::Composer;
use super::reload_error::ReloadError;
use crate::live::report;
use crate::live::source::{LoadResult, SourceError};
use crate::live::sources::{ChangedOrigin, SourceHandle, SourceState};
use crate::live::start::PATIENCE;
use futures_util::future::join_all;
use std::sync::Arc;
use tidegate_net::tasks::undisturbed;
use tokio::time::timeout;

impl Composer {
    /// Keeps one source up to date.
    pub(super) async fn keep(&self, kept: Arc<SourceHandle>) {
        // It may have failed before this task started.
        let mut failures: u32 = u32::from(kept.health.is_failing());
        loop {
            match failures.checked_sub(1) {
                Some(earlier) => {
                    let pause = tidegate::retry_delay(earlier);
                    timeout(pause, kept.source.notified()).await.ok();
                }
                None => kept.source.changed().await,
            }
            let was_failing = failures > 0;
            match self.refresh(&kept).await {
                Ok(()) => {
                    if was_failing {
                        report::back(&kept.settings.name);
                    }
                    failures = 0;
                }
                Err(trouble) => {
                    if kept.health.failed(&trouble) {
                        report::failed(&kept.settings.name, &trouble);
                    }
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    /// Loads a source, and serves a new version.
    pub(super) async fn refresh(&self, kept: &Arc<SourceHandle>) -> Result<(), SourceError> {
        loop {
            let seen = self.inner.state.lock().await.seen(kept);
            let Some((seen, epoch)) = seen else {
                return Ok(());
            };
            let loaded = kept.load(seen.as_ref()).await?;
            let (this, kept) = (self.clone(), Arc::clone(kept));
            // This task may be dropped at any time, and a part that was taken in must still be served.
            let taken = undisturbed(async move { this.take_in(&kept, epoch, loaded).await });
            if taken.await.unwrap_or(true) {
                return Ok(());
            }
            // The source was written to meanwhile, so this version is outdated.
        }
    }

    /// Takes in a version that was loaded at `epoch`, and serves it. Returns false if the epoch has
    /// changed.
    async fn take_in(&self, kept: &Arc<SourceHandle>, epoch: u64, loaded: LoadResult) -> bool {
        let mut state = self.inner.state.lock().await;
        let Some(slot) = state.slot(kept) else {
            return true;
        };
        if slot.epoch != epoch {
            return false;
        }
        if self.take(slot, loaded) {
            state.is_unsettled = true;
        }
        if state.is_unsettled {
            self.apply_pending(&mut state).await;
        }
        state.log_verdicts();
        true
    }

    /// Loads all sources concurrently, without serving anything yet: the caller settles the results. A
    /// slow source is not waited for; its own task loads it anyway.
    pub(super) async fn ask_all(&self) {
        let pool: Vec<_> = {
            let state = self.inner.state.lock().await;
            let seen = |slot: &SourceState| (Arc::clone(&slot.kept), state.seen(&slot.kept));
            state.pool.iter().map(seen).collect()
        };
        let asked = pool.into_iter().map(|(kept, seen)| async move {
            let (version, epoch) = seen.unwrap_or_default();
            let loaded = timeout(PATIENCE, kept.load(version.as_ref())).await;
            Some((kept, epoch, loaded.ok()?))
        });
        let asked = join_all(asked).await;
        let mut state = self.inner.state.lock().await;
        // A requested reload logs all current problems again.
        state.forget_logged();
        for (kept, epoch, loaded) in asked.into_iter().flatten() {
            let slot = state.slot(&kept).filter(|slot| slot.epoch == epoch);
            match (loaded, slot) {
                (Err(trouble), _) => {
                    if kept.health.failed(&trouble) {
                        report::failed(&kept.settings.name, &trouble);
                    }
                }
                (Ok(loaded), Some(slot)) => {
                    let is_new = self.take(slot, loaded);
                    state.is_unsettled |= is_new;
                }
                // The source was written to meanwhile, so this version is outdated.
                (Ok(_), None) => kept.health.answered(),
            }
        }
    }

    /// Takes in a load result. Returns true if it may change the served configuration.
    pub(super) fn take(&self, slot: &mut SourceState, loaded: LoadResult) -> bool {
        let health = Arc::clone(&slot.kept.health);
        match loaded {
            LoadResult::Unchanged => {
                health.unchanged();
                false
            }
            LoadResult::Part(part) => {
                report::notes(&part.notes);
                health.answered();
                slot.take(part)
            }
            LoadResult::Wrong(wrong) => {
                health.answered();
                let which = ChangedOrigin::Source(Arc::clone(&slot.kept));
                self.log_rejection(&which, &ReloadError::Unread(wrong.why.clone()));
                slot.wrong = Some(wrong);
                false
            }
        }
    }
}
