//! No server outlives the tests, even if they are killed.
//!
//! A value that is dropped ends its server. But values in statics are never dropped, and a process
//! that is killed drops nothing. So a shell waits at the other end of a pipe: when the pipe closes,
//! the test process is gone, and the shell kills the remaining servers and removes the files.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

const SCRIPT: &str = r#"
pids=" "
while read -r sign pid; do
  case $sign in
    +) pids="$pids$pid " ;;
    -) case $pids in *" $pid "*) pids="${pids%% $pid *} ${pids#* $pid }" ;; esac ;;
  esac
done
if [ "$pids" != " " ]; then kill -9 $pids; fi
rm -rf -- "$1"
"#;

/// One for each test process.
pub(crate) static UNDERTAKER: LazyLock<Reaper> = LazyLock::new(Reaper::hire);

pub(crate) struct Reaper {
    folder: PathBuf,
    shell: Mutex<Child>,
}

impl Reaper {
    fn hire() -> Self {
        let folder = std::env::temp_dir().join(format!("tidegate-test-redis-{}", process::id()));
        // One of a process with the same number, long gone.
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "undertaker"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Not in our group: an interrupt from the keyboard is not for it.
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        Self {
            folder,
            shell: Mutex::new(shell),
        }
    }

    /// Creates a folder, which is removed with the process at the latest.
    pub(crate) fn folder(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(number.to_string());
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        folder
    }

    /// Watches a process, which ends with this one.
    pub(crate) fn watch(&self, pid: u32) {
        self.tell('+', pid);
    }

    /// Forgets a process that is about to end, because its number may be reused.
    pub(crate) fn forget(&self, pid: u32) {
        self.tell('-', pid);
    }

    fn tell(&self, sign: char, pid: u32) {
        let line = format!("{sign} {pid}\n");
        if let Some(pipe) = &mut self.shell.lock().stdin {
            // If the shell is gone, there is nothing to do.
            drop(pipe.write_all(line.as_bytes()));
        }
    }
}

/// Removes a folder that [`Reaper::folder`] made.
pub(crate) fn remove(folder: &Path) {
    drop(fs::remove_dir_all(folder));
}
