//! The state that all clones of a limiter share.

use crate::addresses::RetiredCounters;
use crate::backend::Backend;
use crate::lists::ListSources;
use crate::naming::BucketRenamer;
use crate::overrides::CodeOverrides;
use crate::permits::{PermitRelay, ReleasePermits};
use crate::plans::PlanSources;
use crate::queue::WaitQueue;
use crate::reservations::ReservationState;
use crate::rules::Rules;
use crate::snapshot::SnapshotKeeper;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tidegate_core::{Ask, Store};
use tokio::sync::watch;

/// The state that all clones of a limiter share. Each verb takes the part that it needs.
#[derive(Debug)]
pub(crate) struct LimiterState<S> {
    /// The current rules. A reload replaces them as a whole; a decision keeps the version it started with.
    pub(crate) rules: ArcSwap<Rules>,
    /// Serializes reloads: each one builds on the rules it replaces.
    pub(crate) reloading: Mutex<()>,
    /// Settings made in code, applied on top of every reloaded configuration.
    pub(crate) overrides: CodeOverrides,
    pub(crate) backend: Backend<S>,
    /// Present only for a store that names buckets by their policies.
    pub(crate) naming: Option<BucketRenamer>,
    pub(crate) closed: AtomicBool,
    /// The id of this limiter, by which it recognizes its own rules.
    pub(crate) owner: u64,
    /// The way of its decisions' permits back to here.
    pub(crate) permits: PermitRelay,
    pub(crate) queue: WaitQueue,
    pub(crate) reservations: ReservationState,
    /// The sources of the guards' lists.
    pub(crate) list_sources: ListSources,
    /// Notified of every reload; closed when the limiter is dropped.
    pub(crate) reloads: watch::Sender<()>,
    /// The state of the plan sources.
    pub(crate) plan_sources: PlanSources,
    /// Address counters from before a reload.
    pub(crate) retired: RetiredCounters,
    /// Present if the store is in memory and is kept over a restart.
    pub(crate) snapshot: Option<SnapshotKeeper<S>>,
}

impl<S> Drop for LimiterState<S> {
    fn drop(&mut self) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.write_last(self.backend.store.inner());
        }
    }
}

impl<S> LimiterState<S> {
    /// Returns the current rules, even if the limiter is closed.
    pub(crate) fn present(&self) -> Arc<Rules> {
        self.rules.load_full()
    }
}

impl<S: Store> ReleasePermits for LimiterState<S> {
    fn release(&self, asks: &[Ask<'_>]) {
        let store = &self.backend.store;
        if store.decide_at_once(asks).is_none() {
            store.refund(asks);
        }
        self.queue.note_release(asks);
    }
}
