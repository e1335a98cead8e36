//! The file of a snapshot: one process has it at a time, and it is replaced as a whole.

use super::OpenedSnapshot;
use crate::error::BuildError;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tidegate_core::Clock;
use tidegate_files::{
    FileLock, LockAttempt, beside, folder_of, lock_file, rename_file, replace_file,
};
use tidegate_memory::snapshot::{RestoredSnapshot, SnapshotError};
use tidegate_memory::{MemoryStore, MemoryStoreBuilder, SystemClock};
use tidegate_policy::store::SnapshotSettings;
use tracing::{info, warn};

/// Number of files kept that were set aside.
const ASIDE_MAX: usize = 3;

/// The clock may go back by so much without a word: less than between two machines that are set right.
const BEHIND_US: u64 = 1_000_000;

/// Suffix of a file that was set aside; a time follows.
const ASIDE: &str = ".corrupt-";

/// Suffix of the file that is locked.
const LOCK: &str = ".lock";

/// The file of a snapshot, and its lock.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    path: PathBuf,
    /// `None` if it could not be locked yet, because the folder cannot be written.
    lock: Option<FileLock>,
}

/// Opens the file that `settings` name, and creates the store with its content. A file that is no valid
/// snapshot is set aside.
///
/// # Errors
///
/// [`BuildError::Snapshot`] if another process uses the file, if its folder does not exist, or if the file
/// cannot be read.
pub(crate) fn open<C: Clock>(
    settings: &SnapshotSettings,
    builder: MemoryStoreBuilder<C>,
    max_keys: u64,
) -> Result<(MemoryStore<C>, OpenedSnapshot), BuildError> {
    let path = settings.file.clone();
    let failed = |source| BuildError::Snapshot {
        path: path.clone(),
        source,
    };
    let file = SnapshotFile::open(&path).map_err(failed)?;
    let (store, restored) = match file.read().map_err(failed)? {
        None => (builder.with_snapshots().try_build(), None),
        Some(input) => match builder.restore(&mut BufReader::new(input)) {
            Ok((store, restored)) => {
                report(&path, &restored);
                (Some(store), Some(restored))
            }
            Err(failure) => {
                let builder = file.rejected(failure.error, failure.builder);
                let builder = builder.map_err(failed)?;
                (builder.with_snapshots().try_build(), None)
            }
        },
    };
    let store = store.ok_or(BuildError::Memory { max_keys })?;
    let opened = OpenedSnapshot {
        settings: settings.clone(),
        file,
        restored,
    };
    Ok((store, opened))
}

impl SnapshotFile {
    fn open(path: &Path) -> io::Result<Self> {
        let folder = folder_of(path);
        if !fs::metadata(folder)?.is_dir() {
            return Err(io::Error::other(format!(
                "{} is not a folder",
                folder.display()
            )));
        }
        let mut file = Self {
            path: path.to_owned(),
            lock: None,
        };
        match file.lock() {
            // The first write reports it, and the snapshot may be good to read.
            Err(error) if is_unwritable(&error) => {}
            locked => locked?,
        }
        Ok(file)
    }

    /// Locks the file, unless that is done.
    fn lock(&mut self) -> io::Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        match lock_file(&self.path, LOCK)? {
            LockAttempt::Held(lock) => {
                self.lock = Some(lock);
                Ok(())
            }
            LockAttempt::Taken => Err(io::Error::new(
                ErrorKind::ResourceBusy,
                "another process uses it; give each instance its own file",
            )),
        }
    }

    /// Opens the file; `None` if it does not exist.
    fn read(&self) -> io::Result<Option<File>> {
        match fs::metadata(&self.path) {
            Ok(about) if about.is_file() => File::open(&self.path).map(Some),
            Ok(_) => Err(io::Error::other("it is not a regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the file exists.
    pub(super) fn exists(&self) -> bool {
        self.path.is_file()
    }

    /// Replaces the file, if `is_wanted` returns true for what was written.
    pub(super) fn replace<T>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
        is_wanted: impl FnOnce(&T) -> bool,
    ) -> io::Result<T> {
        self.lock()?;
        replace_file(&self.path, write, is_wanted)
    }

    /// Sets a file aside that is no valid snapshot. Any other error is returned.
    fn rejected<C: Clock>(
        &self,
        error: SnapshotError,
        builder: MemoryStoreBuilder<C>,
    ) -> io::Result<MemoryStoreBuilder<C>> {
        if let SnapshotError::Io(error) = error {
            return Err(error);
        }
        // The caller finds that out again.
        if matches!(error, SnapshotError::Memory) {
            return Ok(builder);
        }
        let file = self.path.display();
        match self.set_aside() {
            Ok(aside) => {
                let aside = aside.display();
                warn!(event = "snapshot_rejected", %file, %error, %aside, "snapshot unusable and set aside; starting with full buckets");
            }
            Err(failure) => {
                warn!(event = "snapshot_rejected", %file, %error, %failure, "snapshot unusable, and it cannot be set aside; starting with full buckets");
            }
        }
        Ok(builder)
    }

    /// Renames the file, and removes the oldest of those that were set aside before.
    fn set_aside(&self) -> io::Result<PathBuf> {
        let name = self.path.file_name().unwrap_or_default();
        let prefix = format!("{}{ASIDE}", name.to_string_lossy());
        let mut others: Vec<PathBuf> = fs::read_dir(folder_of(&self.path))?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .map(|entry| entry.path())
            .collect();
        // The names end with times of the same length.
        others.sort();
        let excess = others.len().saturating_sub(ASIDE_MAX.saturating_sub(1));
        for old in others.iter().take(excess) {
            fs::remove_file(old)?;
        }
        let now = SystemClock::wall().as_micros();
        let aside = beside(&self.path, &format!("{ASIDE}{now}"));
        rename_file(&self.path, &aside)?;
        Ok(aside)
    }
}

/// Returns true if a file cannot be created because of the folder or the disk, which may change.
fn is_unwritable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
    )
}

/// Logs what a snapshot brought.
fn report(path: &Path, restored: &RestoredSnapshot) {
    let file = path.display();
    let RestoredSnapshot {
        buckets,
        expired,
        without_room,
        clock_behind_us,
        ..
    } = restored;
    info!(event = "snapshot_loaded", %file, buckets, expired, "buckets restored from the snapshot");
    if *without_room > 0 {
        warn!(event = "snapshot_without_room", %file, count = without_room, fix = "raise store.max_keys", "no room for a part of the snapshot; these clients start with full buckets");
    }
    if *clock_behind_us > BEHIND_US {
        let seconds = clock_behind_us / 1_000_000;
        warn!(event = "snapshot_clock_behind", %file, seconds, "the clock is behind the snapshot; buckets in it count the difference as used");
    }
}
