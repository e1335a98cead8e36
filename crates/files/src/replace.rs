//! Files that are replaced as a whole, by one process at a time.

use crate::refuse_irregular;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size of the buffer for writes.
const BUFFER_BYTES: usize = 64 << 10;

/// A lock that ends with the process, however it ends.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "closing the file ends the lock")] File);

/// The result of trying to lock a file.
#[derive(Debug)]
pub enum LockAttempt {
    /// It is locked for as long as this is kept.
    Held(FileLock),
    /// Another process, or another part of this one, has locked it.
    Taken,
}

/// Locks `path` with `suffix` after its name. The file stays when the lock ends.
///
/// # Errors
///
/// The lock file cannot be opened or created, its file system has no locks, or this crate was built without
/// the feature `lock`.
pub fn lock_file(path: &Path, suffix: &str) -> io::Result<LockAttempt> {
    let path = beside(path, suffix);
    refuse_irregular(&path)?;
    let mut options = private();
    let file = options.read(true).create(true).truncate(false).open(path)?;
    lock(file)
}

#[cfg(all(unix, feature = "lock"))]
fn lock(file: File) -> io::Result<LockAttempt> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(LockAttempt::Held(FileLock(file))),
        Err(Errno::WOULDBLOCK) => Ok(LockAttempt::Taken),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(all(unix, feature = "lock")))]
fn lock(_file: File) -> io::Result<LockAttempt> {
    let why = "files cannot be locked here, or in a build without the feature `snapshot`";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Returns options for a file to write, which only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file whole or not at all: into a file with `.tmp` after its name, which then takes its
/// place. When this returns, a crash of the machine does not undo it. Only this user may read the file.
///
/// If `is_wanted` returns false for the result of `write`, the file stays as it was.
///
/// Only one caller at a time may replace a file: see [`lock_file`].
///
/// # Errors
///
/// Those of `write`, and of the file system. The file then stays as it was.
pub fn replace_file<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    is_wanted: impl FnOnce(&T) -> bool,
) -> io::Result<T> {
    refuse_irregular(path)?;
    let temporary = beside(path, ".tmp");
    let written = fill(&temporary, write, is_wanted);
    let (result, is_wanted) = match written {
        Ok(written) => written,
        Err(error) => {
            // It may not exist, and the reason above matters more.
            fs::remove_file(&temporary).ok();
            return Err(error);
        }
    };
    if is_wanted {
        fs::rename(&temporary, path)?;
        sync_folder(path)?;
    } else {
        fs::remove_file(&temporary)?;
    }
    Ok(result)
}

/// Renames a file, and makes that last.
///
/// # Errors
///
/// Those of the file system.
pub fn rename_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to)
}

/// Returns the path with `suffix` after its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates the file and writes it.
fn fill<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    is_wanted: impl FnOnce(&T) -> bool,
) -> io::Result<(T, bool)> {
    // What an earlier process left. A new file is created, so that no link is followed, and the mode is
    // this one.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = private().create_new(true).open(path)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let result = write(&mut out)?;
    let is_wanted = is_wanted(&result);
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if is_wanted {
        file.sync_all()?;
    }
    Ok((result, is_wanted))
}

/// Makes the names in the folder of a file last. Only Unix opens folders.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder_of(path))?.sync_all()?;
    }
    Ok(())
}
