//! Third-party clients and their paths.

use super::in_time;
use std::env;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// A program of Redis, or redis-py.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Cli,
    Benchmark,
    /// redis-py of this version, by its folder in `scripts/test`.
    Python(&'static str),
}

impl Program {
    /// Returns its path. If it is not installed, reports that the test is skipped; with `CI` set,
    /// panics instead.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let found = match self {
            Self::Cli => in_path("redis-cli"),
            Self::Benchmark => in_path("redis-benchmark"),
            Self::Python(folder) => installed(folder),
        };
        if found.is_none() {
            let missing = format!("redis: {self:?} is not installed: ./scripts/test installs it");
            assert!(!in_ci(), "{missing}");
            eprintln!("skipped: {missing}");
        }
        found
    }

    /// Returns the program with these arguments, or Python with this library.
    pub(crate) fn command(self, words: &[&str]) -> Option<Command> {
        let path = self.find()?;
        let mut command = match self {
            Self::Python(_) => {
                let mut python = Command::new(in_path("python3").unwrap());
                python
                    .env("PYTHONPATH", path)
                    .env("PYTHONDONTWRITEBYTECODE", "1");
                python
            }
            _ => Command::new(path),
        };
        command.args(words).kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Some(command)
    }

    /// Runs it to its end, with `input` as its stdin.
    pub(crate) async fn run(self, words: &[&str], input: &str) -> Option<Output> {
        let mut child = self.command(words)?.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let told = async {
            // A program that does not read it may have ended already.
            stdin.write_all(input.as_bytes()).await.ok();
            drop(stdin);
        };
        let ran = async { tokio::join!(told, child.wait_with_output()).1 };
        Some(in_time("the end of a program", ran).await.unwrap())
    }

    /// Runs it, and returns its output; it must succeed.
    pub(crate) async fn says(self, words: &[&str], input: &str) -> Option<String> {
        let output = self.run(words, input).await?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}{complained}");
        assert_eq!(complained, "", "{words:?}");
        Some(said)
    }
}

/// Returns the path at which `scripts/test` installs it.
fn installed(folder: &str) -> Option<PathBuf> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/python");
    let folder = PathBuf::from(tools).join(folder);
    folder.join("redis/__init__.py").is_file().then_some(folder)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}
