//! The task that writes the snapshot.

use crate::snapshot::SnapshotWrite;
use crate::state::LimiterState;
use futures_util::future::{Either, select};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The interval after a failed write, if it is shorter.
const RETRY: Duration = Duration::from_secs(10);

/// Writes the snapshot at once and then at its interval, for as long as the limiter exists.
///
/// The first write shows at the start if the file can be written.
pub(crate) async fn keep_snapshots<S: Send + Sync + 'static>(
    owner: Weak<LimiterState<S>>,
    mut reloads: watch::Receiver<()>,
) {
    loop {
        let Some(state) = owner.upgrade() else {
            return;
        };
        let Some(snapshot) = &state.snapshot else {
            return;
        };
        let begun = Instant::now();
        let next = match write_snapshot(&state).await {
            Ok(_) => begun + snapshot.pause(),
            // Logged by the write.
            Err(_) => begun + snapshot.pause().min(RETRY),
        };
        drop(state);
        // Ends at once when the limiter is dropped.
        let dropped = async { while reloads.changed().await.is_ok() {} };
        match select(pin!(sleep_until(next)), pin!(dropped)).await {
            Either::Left(_) => {}
            Either::Right(_) => return,
        }
    }
}

/// Writes the snapshot on a thread that may block; `None` if the limiter has none.
pub(crate) async fn write_snapshot<S: Send + Sync + 'static>(
    state: &Arc<LimiterState<S>>,
) -> io::Result<Option<SnapshotWrite>> {
    if state.snapshot.is_none() {
        return Ok(None);
    }
    let state = Arc::clone(state);
    let write = move || {
        let snapshot = state.snapshot.as_ref()?;
        Some(snapshot.write(state.backend.store.inner()))
    };
    match tokio::task::spawn_blocking(write).await {
        Ok(written) => written.transpose(),
        Err(error) => Err(io::Error::other(error)),
    }
}
