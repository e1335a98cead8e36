//! How the files looked when they were last read: those of the configuration, and those that it names.

use crate::sight::FileStamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::time::Instant;

/// Files that a configuration names and that are read with it, each as it looked just before.
pub(super) type NamedFiles = BTreeMap<PathBuf, FileStamp>;

/// What is seen of files without reading them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// The files themselves, and those of a folder.
    pub(super) own: Vec<(PathBuf, FileStamp)>,
    /// Secrets, certificates and documents that they name.
    pub(super) named: NamedFiles,
}

/// How the files looked when they were last read.
#[derive(Debug, Default)]
pub(super) struct FileWatch(Mutex<FileChanges>);

#[derive(Debug, Default)]
struct FileChanges {
    last: Fingerprint,
    /// Whether a file that is named has changed since the configuration was read, or reading it came to
    /// nothing: its own text may well be the one that is served, and yet more is to be done than to see that.
    is_due: bool,
    /// When the files themselves are read again that could not be.
    file: Again,
    /// When what sources say is composed again that could not be for want of a file.
    composing: Again,
}

/// Something that failed and may not the next time, though nothing looks otherwise: when too many files
/// are open, say. It is tried again by itself, less and less often.
#[derive(Debug, Default)]
pub(crate) struct Again {
    failures: u32,
    at: Option<Instant>,
}

impl Again {
    pub(crate) fn note(&mut self, has_failed: bool) {
        if !has_failed {
            *self = Self::default();
            return;
        }
        self.at = Some(Instant::now() + tidegate::retry_delay(self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }
}

impl FileWatch {
    /// The files themselves look so, and are about to be read.
    pub(super) fn new(last: Fingerprint) -> Self {
        Self(Mutex::new(FileChanges {
            last,
            ..FileChanges::default()
        }))
    }

    /// How they looked.
    pub(super) fn last(&self) -> Fingerprint {
        self.0.lock().last.clone()
    }

    /// Notes that they look so now, and are about to be read.
    pub(super) fn see(&self, now: Fingerprint) {
        let mut seen = self.0.lock();
        seen.is_due |= seen.last.named != now.named;
        seen.last = now;
    }

    /// Whether the configuration is to be read again although its own text is the same.
    pub(super) fn is_due(&self) -> bool {
        self.0.lock().is_due
    }

    /// The reading came to nothing. The next goes all the way, even if somebody has put back what is served:
    /// that is refused no longer then, and the files that it names are looked at again.
    pub(super) fn owe(&self) {
        self.0.lock().is_due = true;
    }

    /// A reading of the configuration begins with these files that it names. What others named is
    /// forgotten.
    pub(super) fn begin(&self, named: NamedFiles) {
        let mut seen = self.0.lock();
        seen.last.named = named;
        seen.is_due = false;
    }

    /// Notes whether the files, or those that their list of sources names, could not be read.
    pub(super) fn note_reading(&self, has_failed: bool) {
        self.0.lock().file.note(has_failed);
    }

    /// Notes whether something is not served because a file could not be read.
    pub(super) fn note_composing(&self, has_failed: bool) {
        self.0.lock().composing.note(has_failed);
    }

    /// Whether it is time to try once more what failed, however the files look.
    pub(super) fn is_overdue(&self) -> bool {
        let seen = self.0.lock();
        seen.file.is_due() || seen.composing.is_due()
    }

    /// It names these as well. Of one that is known the first sight stays: sources were opened by what it
    /// held then, whatever somebody read there since.
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
    use crate::sight::FileStamp;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;
    use tokio::time::advance;

    fn named(path: &Path) -> NamedFiles {
        NamedFiles::from([(path.to_owned(), FileStamp::of(path))])
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_tried_again_later_and_later_until_it_goes_well() {
        let looked = FileWatch::new(Fingerprint::default());
        assert!(!looked.is_overdue());
        for _ in 0..2 {
            looked.note_composing(true);
            assert!(!looked.is_overdue());
        }
        // A second after the first time, and two at most after the second.
        advance(Duration::from_secs(2)).await;
        assert!(looked.is_overdue());
        // That one thing went well is no news of the other.
        looked.note_reading(false);
        assert!(looked.is_overdue());
        looked.note_composing(false);
        assert!(!looked.is_overdue());
        advance(Duration::from_mins(1)).await;
        assert!(!looked.is_overdue());
    }

    #[test]
    fn what_somebody_else_read_of_a_file_does_not_hide_that_it_has_changed() {
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
        // It is, until it was read, however often somebody looks.
        looked.see(now);
        assert!(looked.is_due());
        looked.begin(named(&path));
        assert!(!looked.is_due());
        fs::remove_file(&path).unwrap();
    }
}
