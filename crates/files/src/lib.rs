//! Reads files that an operator names, within a bound of size and a bound of time, opens files to append to,
//! and replaces files as a whole.
//!
//! Opening a named pipe waits for a writer, and a device or a hung file system may never end. None of them
//! may block the start of a program, or its reloads.

mod replace;

pub use replace::{FileLock, LockAttempt, beside, folder_of, lock_file, rename_file, replace_file};

use parking_lot::Mutex;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Time to open and read one file.
const DEADLINE: Duration = Duration::from_secs(30);

/// Reads in progress. Each has a thread, and one whose file never answers keeps it.
const READERS_MAX: usize = 64;

static READERS: Mutex<Vec<Arc<FileRead>>> = Mutex::new(Vec::new());

/// Reads a regular file of at most `max` bytes. Follows links, as Kubernetes mounts `ConfigMap`s.
///
/// A pipe is accepted only by its descriptor (`/dev/stdin`, `/dev/fd/63`), as a shell passes `<(…)`.
///
/// # Errors
///
/// The path is a folder, a named pipe, a device or a socket; the file is longer, or could not be read
/// within 30 s. While a read that missed its deadline still hangs, others of this path fail at once.
pub fn read_file(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_within(DEADLINE, path, max)
}

/// Reads a file as [`read_file`] does, within `deadline` if that is shorter.
pub fn read_within(deadline: Duration, path: &Path, max: u64) -> io::Result<Vec<u8>> {
    within(deadline.min(DEADLINE), path, move |path| {
        let mut bytes = Vec::new();
        // One byte more than allowed distinguishes too long from just long enough.
        let mut file = open(path)?.take(max.saturating_add(1));
        let read = file.read_to_end(&mut bytes)?;
        if u64::try_from(read).is_ok_and(|read| read <= max) {
            return Ok(bytes);
        }
        let max = max >> 20;
        Err(io::Error::other(format!("it is longer than {max} MiB")))
    })
}

/// Reads a text as [`read_file`] does.
///
/// # Errors
///
/// As [`read_file`], or the file is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let bytes = read_file(path, max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Opens a file and closes it again, to find out early that it cannot be read.
pub fn try_file(path: &Path) -> io::Result<()> {
    within(DEADLINE, path, |path| open(path).map(drop))
}

/// Opens a regular file to append to it, and creates it if it is missing. Follows links.
///
/// # Errors
///
/// The path is a folder, a named pipe, a device or a socket, which might not accept writes; or the file could
/// not be opened within 30 s.
pub fn append_file(path: &Path) -> io::Result<File> {
    within(DEADLINE, path, |path| {
        refuse_irregular(path)?;
        OpenOptions::new().append(true).create(true).open(path)
    })
}

/// Fails if [`append_file`] would fail because of the kind of the path. Creates nothing.
pub fn try_append(path: &Path) -> io::Result<()> {
    within(DEADLINE, path, refuse_irregular)
}

fn refuse_irregular(path: &Path) -> io::Result<()> {
    let about = std::fs::metadata(path).ok();
    let why = about.as_ref().and_then(why_unreadable);
    why.map_or(Ok(()), |why| Err(io::Error::other(why)))
}

/// Returns the kind of a path, if it cannot be read to an end; `None` for regular files.
fn why_unreadable(about: &Metadata) -> Option<&'static str> {
    let kind = about.file_type();
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("it is a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("it is a named pipe, not a regular file");
        }
        if kind.is_socket() {
            return Some("it is a socket, not a regular file");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("it is a device, not a regular file");
        }
    }
    Some("it is not a regular file")
}

fn open(path: &Path) -> io::Result<File> {
    let about = std::fs::metadata(path)?;
    match why_unreadable(&about) {
        Some(why) if !is_passed_pipe(path, &about) => Err(io::Error::other(why)),
        _ => File::open(path),
    }
}

/// Returns true for a pipe that the process was started with: its writer is there, or has finished.
#[cfg(unix)]
fn is_passed_pipe(path: &Path, about: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_descriptor = path == Path::new("/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd");
    is_descriptor && about.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_passed_pipe(_path: &Path, _about: &Metadata) -> bool {
    false
}

/// Runs `work` in a thread, and stops waiting for it after `deadline`.
fn within<T: Send + 'static>(
    deadline: Duration,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let reader = Reader::new(path)?;
    let reading = Arc::clone(&reader.0);
    let (sender, done) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("read-file".to_owned());
    thread.spawn(move || {
        let result = work(&reader.0.path);
        // The next read of this path may begin as soon as the result is there.
        drop(reader);
        // No caller receives it after the deadline.
        drop(sender.send(result));
    })?;
    done.recv_timeout(deadline).unwrap_or_else(|_| {
        reading.is_late.store(true, Relaxed);
        let why = format!("it could not be opened within {deadline:?}");
        Err(io::Error::new(ErrorKind::TimedOut, why))
    })
}

/// A read in progress.
struct FileRead {
    path: PathBuf,
    /// True if it missed its deadline, and no caller waits for it any more.
    is_late: AtomicBool,
}

/// One of the [`READERS`].
struct Reader(Arc<FileRead>);

impl Reader {
    fn new(path: &Path) -> io::Result<Self> {
        let mut readers = READERS.lock();
        let hangs = |it: &Arc<FileRead>| it.path == path && it.is_late.load(Relaxed);
        if readers.iter().any(hangs) {
            let why = "it is still being opened: an earlier attempt hangs";
            return Err(io::Error::new(ErrorKind::ResourceBusy, why));
        }
        if readers.len() >= READERS_MAX {
            let why = format!("{READERS_MAX} other files are being opened, and none of them ends");
            return Err(io::Error::new(ErrorKind::ResourceBusy, why));
        }
        let reading = Arc::new(FileRead {
            path: path.to_owned(),
            is_late: AtomicBool::new(false),
        });
        readers.push(Arc::clone(&reading));
        Ok(Self(reading))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = READERS.lock();
        readers.retain(|it| !Arc::ptr_eq(it, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    /// A temporary folder, removed on drop.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("tidegate-files-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// Regression: opening it waited for a writer, and blocked the start of the program, or a reload.
    #[test]
    fn opening_a_named_pipe_blocked() {
        let folder = Folder::new("pipe");
        let pipe = folder.at("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let link = folder.at("link");
        symlink(&pipe, &link).unwrap();
        for path in [pipe, link] {
            let why = "it is a named pipe, not a regular file";
            assert_eq!(read_file(&path, 1).unwrap_err().to_string(), why);
            assert_eq!(try_file(&path).unwrap_err().to_string(), why);
            assert_eq!(try_append(&path).unwrap_err().to_string(), why);
            assert_eq!(append_file(&path).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn folders_devices_and_sockets_are_refused() {
        let folder = Folder::new("kinds");
        let socket = folder.at("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, why) in [
            (Path::new("/dev/zero"), "it is a device, not a regular file"),
            (&folder.0, "it is a folder"),
            (&socket, "it is a socket, not a regular file"),
        ] {
            assert_eq!(read_file(path, 1).unwrap_err().to_string(), why);
            assert_eq!(append_file(path).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn a_file_to_append_to_is_created_when_it_is_needed() {
        let folder = Folder::new("append");
        let path = folder.at("file");
        try_append(&path).unwrap();
        assert!(!path.exists());
        for line in ["one ", "two"] {
            append_file(&path)
                .unwrap()
                .write_all(line.as_bytes())
                .unwrap();
        }
        try_append(&path).unwrap();
        assert_eq!(read_text(&path, 7).unwrap(), "one two");
    }

    /// Kubernetes mounts a link to a link to a file.
    #[test]
    fn a_link_to_a_file_is_followed() {
        let folder = Folder::new("links");
        fs::create_dir(folder.at("..data_1")).unwrap();
        fs::write(folder.at("..data_1/config"), "text").unwrap();
        symlink("..data_1", folder.at("..data")).unwrap();
        symlink("..data/config", folder.at("config")).unwrap();
        assert_eq!(read_text(&folder.at("config"), 4).unwrap(), "text");
    }

    #[test]
    fn a_file_at_the_size_limit_is_read_and_one_byte_more_is_not() {
        let folder = Folder::new("size");
        let path = folder.at("file");
        fs::write(&path, vec![b'a'; (1 << 20) + 1]).unwrap();
        assert_eq!(
            read_file(&path, (1 << 20) + 1).unwrap().len(),
            (1 << 20) + 1
        );
        let error = read_file(&path, 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1 MiB");
    }

    #[test]
    fn a_pipe_that_a_shell_passes_is_read() {
        let mut writer = Command::new("echo");
        writer.arg("text").stdout(Stdio::piped());
        let mut writer = writer.spawn().unwrap();
        let pipe = writer.stdout.take().unwrap();
        let path = format!("/dev/fd/{}", pipe.as_raw_fd());
        assert_eq!(read_text(Path::new(&path), 10).unwrap(), "text\n");
        writer.wait().unwrap();
    }

    #[test]
    fn an_endless_read_is_abandoned_at_its_deadline() {
        let (release, released) = mpsc::channel::<()>();
        let work = move |_: &Path| {
            released.recv().ok();
            Ok(())
        };
        let path = Path::new("never ends");
        let error = within(Duration::from_millis(1), path, work).unwrap_err();
        assert_eq!(error.to_string(), "it could not be opened within 1ms");
        drop(release);
    }

    #[test]
    fn every_read_of_a_hanging_file_took_another_thread() {
        let (release, released) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel::<()>();
        let work = move |_: &Path| {
            let _ended = ended;
            released.recv().ok();
            Ok(())
        };
        let path = Path::new("hangs");
        within(Duration::from_millis(1), path, work).unwrap_err();
        for _ in 0..2 {
            let error = within(DEADLINE, path, |_| Ok(())).unwrap_err();
            let why = "it is still being opened: an earlier attempt hangs";
            assert_eq!(error.to_string(), why);
        }
        within(DEADLINE, Path::new("another"), |_| Ok(())).unwrap();
        drop(release);
        end.recv().unwrap_err();
        // Its thread has a few steps left.
        while within(DEADLINE, path, |_| Ok(())).is_err() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        use std::os::unix::fs::PermissionsExt;

        let folder = Folder::new("replace");
        let path = folder.at("state");
        let put = |text: &'static str, is_wanted: bool| {
            replace_file(&path, |out| out.write_all(text.as_bytes()), |()| is_wanted)
        };
        put("one", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else may read it");

        put("two", false).unwrap();
        let failed = replace_file::<()>(
            &path,
            |out| {
                out.write_all(b"th")?;
                Err(io::Error::other("full"))
            },
            |()| true,
        );
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert!(!folder.at("state.tmp").exists());

        // What a process left that was killed, even if it is a link to something else.
        fs::write(folder.at("other"), "other").unwrap();
        symlink(folder.at("other"), folder.at("state.tmp")).unwrap();
        put("four", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "four");
        assert_eq!(fs::read_to_string(folder.at("other")).unwrap(), "other");
        assert!(put_into_a_folder(&folder.0).is_err());
    }

    fn put_into_a_folder(path: &Path) -> io::Result<()> {
        replace_file(path, |_| Ok(()), |()| true)
    }

    #[test]
    #[cfg(feature = "lock")]
    fn a_lock_has_one_holder_and_ends_when_it_is_dropped() {
        let folder = Folder::new("lock");
        let path = folder.at("state");
        let LockAttempt::Held(lock) = lock_file(&path, ".lock").unwrap() else {
            panic!("nobody else has it");
        };
        assert!(matches!(
            lock_file(&path, ".lock").unwrap(),
            LockAttempt::Taken
        ));
        drop(lock);
        assert!(matches!(
            lock_file(&path, ".lock").unwrap(),
            LockAttempt::Held(_)
        ));
        assert!(!path.exists() && folder.at("state.lock").exists());
    }
}
