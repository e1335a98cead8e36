//! Asking sources again, and taking in what they say.

use super::Composer;
use super::refused::ReloadError;
use crate::live::begin::PATIENCE;
use crate::live::report;
use crate::live::source::{Loaded, SourceError};
use crate::live::state::{ChangedOrigin, SourceHandle, SourceState};
use crate::tasks::undisturbed;
use futures_util::future::join_all;
use std::sync::Arc;
use tokio::time::timeout;

impl Composer {
    /// Keeps one source.
    pub(super) async fn keep(&self, kept: Arc<SourceHandle>) {
        // It may have failed before anybody kept it.
        let mut failures: u32 = u32::from(kept.health.is_failing());
        loop {
            match failures.checked_sub(1) {
                Some(earlier) => {
                    let pause = tidegate::retry_delay(earlier);
                    timeout(pause, kept.source.told()).await.ok();
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

    /// Asks a source what it says, and serves it if that is something else.
    pub(super) async fn refresh(&self, kept: &Arc<SourceHandle>) -> Result<(), SourceError> {
        loop {
            let seen = self.inner.state.lock().await.seen(kept);
            let Some((seen, epoch)) = seen else {
                return Ok(());
            };
            let loaded = kept.load(seen.as_ref()).await?;
            let (this, kept) = (self.clone(), Arc::clone(kept));
            // Whoever keeps it may be let go at any time, and what was taken is to be served still.
            let taken = undisturbed(async move { this.take_in(&kept, epoch, loaded).await });
            if taken.await.unwrap_or(true) {
                return Ok(());
            }
            // Something was written meanwhile, and this is from before.
        }
    }

    /// Takes what a source said when it was at `epoch`, and serves it. Tells whether it still was.
    async fn take_in(&self, kept: &Arc<SourceHandle>, epoch: u64, loaded: Loaded) -> bool {
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
            self.settle_beside(&mut state).await;
        }
        true
    }

    /// Asks all sources at once, without serving anything yet: whoever calls it settles what they said.
    /// One that takes its time is not waited for; whoever keeps it asks it anyway.
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
        // Whoever asks for all of it wants to hear of what is still wrong.
        state.forget_told();
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
                // Something was written meanwhile, and this is from before.
                (Ok(_), None) => kept.health.answered(),
            }
        }
    }

    /// Takes what a source says. Tells whether that may change what is served.
    pub(super) fn take(&self, slot: &mut SourceState, loaded: Loaded) -> bool {
        let health = Arc::clone(&slot.kept.health);
        match loaded {
            Loaded::Unchanged => {
                health.unchanged();
                false
            }
            Loaded::Part(part) => {
                report::notes(&part.notes);
                health.answered();
                slot.take(part)
            }
            Loaded::Wrong(wrong) => {
                health.answered();
                let which = ChangedOrigin::Source(Arc::clone(&slot.kept));
                self.complain(&which, &ReloadError::Unread(wrong.why.clone()));
                slot.wrong = Some(wrong);
                false
            }
        }
    }
}
