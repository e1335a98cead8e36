//! The metadata by which changes of a file are detected without reading it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The times of the last changes of a file's content and of its metadata (its permissions, say), its length
/// and its inode; `None` if they cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(Option<[i64; 6]>);

impl FileStamp {
    /// Returns the present stamp of the file.
    pub fn of(path: &Path) -> Self {
        // Links are followed: Kubernetes mounts a `ConfigMap` or a `Secret` that way.
        let about = fs::metadata(path).ok();
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self(about.map(|about| {
            [
                about.mtime(),
                about.mtime_nsec(),
                about.ctime(),
                about.ctime_nsec(),
                whole(about.size()),
                whole(about.ino()),
            ]
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::FileStamp;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// File timestamps may not advance for some milliseconds; this takes seconds.
    const TRIES_MAX: u32 = 1_000_000;

    #[test]
    fn a_file_with_changed_permissions_looked_unchanged() {
        let name = format!("tidegate-sight-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "a secret").unwrap();
        let before = FileStamp::of(&path);
        let is_seen = (0..TRIES_MAX).any(|_| {
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            FileStamp::of(&path) != before
        });
        fs::remove_file(&path).unwrap();
        assert!(is_seen);
    }
}
