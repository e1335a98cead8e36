//! The state of the files when they were last read: those of the configuration, and those that it names.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidegate_net::file_stamp::FileStamp;
use tokio::time::Instant;

/// Files that a configuration names and that are read with it, each with its stamp from just before.
pub(super) type NamedFiles = BTreeMap<PathBuf, FileStamp>;

/// A fingerprint of files, taken without reading them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// The files themselves, and those of a folder.
    pub(super) own: Vec<(PathBuf, FileStamp)>,
    /// Secrets, certificates and documents that they name.
    pub(super) named: NamedFiles,
}

/// The state of the files when they were last read.
#[derive(Debug, Default)]
pub(super) struct FileWatch(Mutex<FileChanges>);

#[derive(Debug, Default)]
struct FileChanges {
    last: Fingerprint,
    /// A named file has changed since the configuration was read, or reading it failed. The configuration
    /// must then be read again, even if its own text is the served one.
    is_due: bool,
    /// The retry for files that could not be read.
    file: RetrySchedule,
    /// The retry for a composition that failed because a file could not be read.
    composing: RetrySchedule,
}

/// A retry of something that failed and may succeed without any visible change, for example when too many
/// files were open. Retries are automatic, with growing delays.
#[derive(Debug, Default)]
pub struct RetrySchedule {
    failures: u32,
    at: Option<Instant>,
}

impl RetrySchedule {
    /// Records whether the last attempt failed.
    pub fn note(&mut self, has_failed: bool) {
        if !has_failed {
            *self = Self::default();
            return;
        }
        self.at = Some(Instant::now() + tidegate::retry_delay(self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    /// Returns true if it is time for another attempt.
    pub fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }
}

impl FileWatch {
    /// Creates a watch for files with this fingerprint, which are about to be read.
    pub(super) fn new(last: Fingerprint) -> Self {
        Self(Mutex::new(FileChanges {
            last,
            ..FileChanges::default()
        }))
    }

    /// Returns the last fingerprint.
    pub(super) fn last(&self) -> Fingerprint {
        self.0.lock().last.clone()
    }

    /// Records a new fingerprint; the files are about to be read.
    pub(super) fn see(&self, now: Fingerprint) {
        let mut seen = self.0.lock();
        seen.is_due |= seen.last.named != now.named;
        seen.last = now;
    }

    /// Returns true if the configuration must be read again although its own text is the same.
    pub(super) fn is_due(&self) -> bool {
        self.0.lock().is_due
    }

    /// Records that reading failed. The next reading is then complete, even if the files are the served
    /// ones again: this clears the refusal, and watches the named files again.
    pub(super) fn owe(&self) {
        self.0.lock().is_due = true;
    }

    /// Records that a reading of the configuration begins with these named files. Forgets the earlier
    /// ones.
    pub(super) fn begin(&self, named: NamedFiles) {
        let mut seen = self.0.lock();
        seen.last.named = named;
        seen.is_due = false;
    }

    /// Records whether the files, or those that their list of sources names, could not be read.
    pub(super) fn note_reading(&self, has_failed: bool) {
        self.0.lock().file.note(has_failed);
    }

    /// Records whether something is not served because a file could not be read.
    pub(super) fn note_composing(&self, has_failed: bool) {
        self.0.lock().composing.note(has_failed);
    }

    /// Returns true if it is time to retry a failure, even if the files are unchanged.
    pub(super) fn is_overdue(&self) -> bool {
        let seen = self.0.lock();
        seen.file.is_due() || seen.composing.is_due()
    }

    /// Adds named files. A file that is known keeps its first stamp: sources were opened with its content
    /// then, even if it was read again since.
    pub(super) fn add(&self, named: NamedFiles) {
        let mut seen = self.0.lock();
        for (path, sight) in named {
            seen.last.named.entry(path).or_insert(sight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileWatch, Fingerprint, NamedFiles};
    use std::fs;
    use std::path::Path;
    use std::time::Duration;
    use tidegate_net::file_stamp::FileStamp;
    use tokio::time::advance;

    fn named(path: &Path) -> NamedFiles {
        NamedFiles::from([(path.to_owned(), FileStamp::of(path))])
    }

    #[tokio::test(start_paused = true)]
    async fn failed_reads_are_retried_with_backoff_until_they_succeed() {
        let looked = FileWatch::new(Fingerprint::default());
        assert!(!looked.is_overdue());
        for _ in 0..2 {
            looked.note_composing(true);
            assert!(!looked.is_overdue());
        }
        // One second after the first failure, and at most two after the second.
        advance(Duration::from_secs(2)).await;
        assert!(looked.is_overdue());
        // A success of one retry does not affect the other.
        looked.note_reading(false);
        assert!(looked.is_overdue());
        looked.note_composing(false);
        assert!(!looked.is_overdue());
        advance(Duration::from_mins(1)).await;
        assert!(!looked.is_overdue());
    }

    #[test]
    fn a_read_by_other_code_does_not_hide_a_file_change() {
        let name = format!("tidegate-looked-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "one").unwrap();
        let looked = FileWatch::new(Fingerprint::default());
        looked.begin(named(&path));
        let before = looked.last();
        fs::write(&path, "another").unwrap();
        looked.add(named(&path));
        assert_eq!(looked.last(), before, "a source was opened by `one`");
        let now = Fingerprint {
            named: named(&path),
            ..before
        };
        assert!(!looked.is_due());
        looked.see(now.clone());
        assert!(looked.is_due());
        // It stays due until it was read, regardless of further checks.
        looked.see(now);
        assert!(looked.is_due());
        looked.begin(named(&path));
        assert!(!looked.is_due());
        fs::remove_file(&path).unwrap();
    }
}
