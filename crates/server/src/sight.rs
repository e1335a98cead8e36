//! What is seen of a file without reading it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// When a file was changed, how long it is, and which it is; nothing where it cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight(Option<[i64; 4]>);

impl Sight {
    /// How the file looks now.
    pub(crate) fn of(path: &Path) -> Self {
        // Links are followed: that is how Kubernetes mounts a `ConfigMap`, or a `Secret`.
        let about = fs::metadata(path).ok();
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self(about.map(|about| {
            [
                about.mtime(),
                about.mtime_nsec(),
                whole(about.size()),
                whole(about.ino()),
            ]
        }))
    }
}
