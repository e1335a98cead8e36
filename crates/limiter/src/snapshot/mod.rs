//! Snapshots of a store in memory, so that a restart of the program keeps its buckets.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the state of the snapshot of a limiter, and its figures |
//! | `file` | the file: its lock, reading, setting it aside, replacing it |
//!
//! `tidegate_memory::snapshot` defines the content. Writing blocks a thread, which is never one that
//! decides; `upkeep` has the task that does.

mod file;

pub(crate) use file::open;

use file::SnapshotFile;
use parking_lot::Mutex;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_core::Clock;
use tidegate_memory::MemoryStore;
use tidegate_memory::snapshot::{RestoredSnapshot, SnapshotTotals};
use tidegate_policy::store::SnapshotSettings;
use tokio::time::Instant;
use tracing::{info, warn};

/// A store that can write itself.
pub(crate) trait SnapshotSource {
    /// Writes the store, and a note of the caller.
    fn write_to(&self, out: &mut dyn Write, note: &[u8]) -> io::Result<SnapshotTotals>;
}

impl<C: Clock> SnapshotSource for MemoryStore<C> {
    fn write_to(&self, out: &mut dyn Write, note: &[u8]) -> io::Result<SnapshotTotals> {
        self.write_snapshot(out, note)
    }
}

/// Returns the part of a store that can be written, if it is in memory.
pub(crate) type SourceOf<S> = fn(&S) -> Option<&dyn SnapshotSource>;

/// The file of a store that was opened with it.
#[derive(Debug)]
pub(crate) struct OpenedSnapshot {
    settings: SnapshotSettings,
    file: SnapshotFile,
    /// The content of the file, if it had any.
    pub(crate) restored: Option<RestoredSnapshot>,
}

/// Writes the snapshot of a limiter.
pub(crate) struct SnapshotKeeper<S> {
    settings: SnapshotSettings,
    source: SourceOf<S>,
    /// Bytes of the limiter in the snapshot.
    note: Vec<u8>,
    /// Serializes writes.
    file: Mutex<SnapshotFile>,
    progress: Mutex<SnapshotProgress>,
}

/// The writes so far.
#[derive(Debug)]
struct SnapshotProgress {
    /// The instant up to which charges are in the file.
    covered: Instant,
    last: SnapshotTotals,
    /// True if `last` is what the file has.
    is_known: bool,
    /// True if the last write found that nothing had changed.
    is_idle: bool,
    took: Duration,
    written: u64,
    unchanged: u64,
    failed: u64,
    /// The reason of the last write, if it failed.
    error: Option<String>,
    restored: u64,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotWrite {
    Written,
    /// The file has the same buckets already.
    Unchanged,
}

/// The state of the snapshot of a limiter with its buckets in memory; [`Limiter::snapshot`](crate::Limiter::snapshot)
/// returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotStatus {
    /// The file.
    pub file: PathBuf,
    /// The configured interval.
    pub every: Duration,
    /// The time of charges that a crash would lose now: since the start of the last write that succeeded or
    /// found nothing to write, else since the limiter was built.
    pub age: Duration,
    /// The number of buckets in the file, as last written.
    pub buckets: u64,
    /// The length of the file, as last written.
    pub bytes: u64,
    /// The duration of the last write.
    pub took: Duration,
    /// The number of writes that succeeded.
    pub written: u64,
    /// The number of writes that were not needed, because nothing had changed.
    pub unchanged: u64,
    /// The number of writes that failed.
    pub failed: u64,
    /// The reason, if the last write failed.
    pub error: Option<String>,
    /// The number of buckets that the limiter started with.
    pub restored: u64,
}

impl<S> SnapshotKeeper<S> {
    /// Creates the keeper of a store whose limiter adds `note`.
    pub(crate) fn new(opened: OpenedSnapshot, source: SourceOf<S>, note: Vec<u8>) -> Self {
        let restored = opened.restored.map_or(0, |restored| restored.buckets);
        Self {
            settings: opened.settings,
            source,
            note,
            file: Mutex::new(opened.file),
            progress: Mutex::new(SnapshotProgress {
                covered: Instant::now(),
                last: SnapshotTotals::default(),
                is_known: false,
                is_idle: false,
                took: Duration::ZERO,
                written: 0,
                unchanged: 0,
                failed: 0,
                error: None,
                restored,
            }),
        }
    }

    /// Returns the state of the snapshot.
    pub(crate) fn status(&self) -> SnapshotStatus {
        let progress = self.progress.lock();
        SnapshotStatus {
            file: self.settings.file.clone(),
            every: self.settings.every,
            age: progress.covered.elapsed(),
            buckets: progress.last.buckets,
            bytes: progress.last.bytes,
            took: progress.took,
            written: progress.written,
            unchanged: progress.unchanged,
            failed: progress.failed,
            error: progress.error.clone(),
            restored: progress.restored,
        }
    }

    /// Returns the pause before the next write, after one that began now: so that the next one ends, if it
    /// takes up to twice as long, before the charges since then are older than the interval.
    pub(crate) fn pause(&self) -> Duration {
        let took = self.progress.lock().took;
        pause_after(took, self.settings.every)
    }

    /// Writes the snapshot, unless the file has the same buckets already. Blocks this thread.
    ///
    /// Logs the first failure, and the first success after it.
    pub(crate) fn write(&self, store: &S) -> io::Result<SnapshotWrite> {
        let is_idle = self.progress.lock().is_idle;
        self.write_unless_same(store, is_idle)
    }

    /// Writes the snapshot when the limiter ends, if anything has changed since the last one.
    pub(crate) fn write_last(&self, store: &S) {
        // Logged there.
        self.write_unless_same(store, true).ok();
    }

    /// Writes the snapshot. If it is likely that nothing has changed, that is found out before anything is
    /// written.
    fn write_unless_same(&self, store: &S, looks_first: bool) -> io::Result<SnapshotWrite> {
        let mut file = self.file.lock();
        let begun = Instant::now();
        let written = self.try_write(&mut file, store, looks_first);
        let mut progress = self.progress.lock();
        progress.took = begun.elapsed();
        match written {
            Ok((totals, done)) => {
                progress.covered = begun;
                progress.last = totals;
                progress.is_known = true;
                progress.is_idle = done == SnapshotWrite::Unchanged;
                let count = match done {
                    SnapshotWrite::Written => &mut progress.written,
                    SnapshotWrite::Unchanged => &mut progress.unchanged,
                };
                *count = count.saturating_add(1);
                if progress.error.take().is_some() {
                    let file = self.settings.file.display();
                    info!(event = "snapshot_recovered", %file, "snapshot written again");
                }
                Ok(done)
            }
            Err(error) => {
                progress.failed = progress.failed.saturating_add(1);
                progress.is_idle = false;
                if progress.error.is_none() {
                    let file = self.settings.file.display();
                    warn!(event = "snapshot_failed", %file, %error, "cannot write the snapshot; a restart would lose all charges since the last one; retrying");
                }
                progress.error = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn try_write(
        &self,
        file: &mut SnapshotFile,
        store: &S,
        looks_first: bool,
    ) -> io::Result<(SnapshotTotals, SnapshotWrite)> {
        let Some(source) = (self.source)(store) else {
            return Err(io::Error::other("the store is not in memory"));
        };
        let known = {
            let progress = self.progress.lock();
            (progress.is_known && file.exists()).then_some(progress.last)
        };
        let same = |totals: &SnapshotTotals| known.is_some_and(|last| last.digest == totals.digest);
        if looks_first && known.is_some() {
            let totals = source.write_to(&mut io::sink(), &self.note)?;
            if same(&totals) {
                return Ok((totals, SnapshotWrite::Unchanged));
            }
        }
        let write = |out: &mut dyn Write| source.write_to(out, &self.note);
        let totals = file.replace(write, |totals| !same(totals))?;
        let done = if same(&totals) {
            SnapshotWrite::Unchanged
        } else {
            SnapshotWrite::Written
        };
        Ok((totals, done))
    }
}

/// Returns the time from the start of a write that took `took` to the start of the next one.
fn pause_after(took: Duration, every: Duration) -> Duration {
    let spare = took.saturating_mul(2).min(every / 2);
    every.saturating_sub(spare)
}

// By hand: the note is secret.
impl<S> fmt::Debug for SnapshotKeeper<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotKeeper")
            .field("settings", &self.settings)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::pause_after;
    use std::time::Duration;

    /// The charges that a crash loses are those since the start of the last whole write: the pause, and the
    /// time that the next one takes.
    #[test]
    fn the_next_write_ends_within_the_interval_if_it_takes_up_to_twice_as_long() {
        let ms = Duration::from_millis;
        for every in [100, 10_000, 3_600_000].map(ms) {
            for took in [0, 1, 20, 25].map(ms) {
                let lost = pause_after(took, every) + took * 2;
                assert!(lost <= every, "{lost:?} {took:?} {every:?}");
            }
            // Half of the time is left for others, however slow the disk is.
            assert_eq!(pause_after(every * 3, every), every / 2);
        }
    }
}
