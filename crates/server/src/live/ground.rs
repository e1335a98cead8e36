//! The file: the first source, which names all the others.

use crate::config_source::{Source, Texts, Unusable};
use crate::environment::ProcessEnvironment;
use crate::tasks::blocking;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_policy::import::EnvoyOptions;
use tokio::time::sleep;

/// How often files are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// The most files of a folder whose changes are noticed.
const FILES_MAX: usize = 10_000;

/// Where the configuration is, and the flags that go before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    pub(crate) file: Option<PathBuf>,
    pub(crate) envoy: Option<(PathBuf, EnvoyOptions)>,
    /// What flags say, under the name of the variable that means the same.
    pub(crate) flags: Vec<(&'static str, String)>,
    /// Whether the files are looked at by themselves, or only when told.
    pub(crate) is_watched: bool,
}

/// What is seen of files without reading them: when each was changed, how long it is, and which it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(Vec<(PathBuf, Option<[i64; 4]>)>);

impl Ground {
    /// It as commands know it.
    pub(super) fn source(&self) -> Source<'_> {
        Source {
            file: self.file.as_deref(),
            envoy: self
                .envoy
                .as_ref()
                .map(|(path, options)| (path.as_path(), *options)),
        }
    }

    /// Where a configuration looks things up.
    pub(super) fn environment(&self) -> ProcessEnvironment {
        let mut environment = ProcessEnvironment::new();
        for (name, value) in &self.flags {
            environment.set(name, Some(value));
        }
        environment
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        self.source().name()
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_built_in(&self) -> bool {
        self.source().is_built_in()
    }

    /// What the files say now. Reading may block, and happens where it holds nobody up.
    pub(super) async fn read(&self) -> Result<Texts, Unusable> {
        let this = self.clone();
        let read = blocking(move || this.source().read_files());
        let lost = || Unusable::Unread(crate::failure::Failure::runtime("reading came to no end"));
        read.await.unwrap_or_else(|| Err(lost()))
    }

    /// How the files look now.
    pub(super) async fn look(&self) -> Fingerprint {
        let this = self.clone();
        blocking(move || this.fingerprint())
            .await
            .unwrap_or_default()
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut seen = Vec::new();
        if let Some(path) = &self.file {
            seen.push((path.clone(), about(path)));
        }
        if let Some((path, _)) = &self.envoy {
            seen.push((path.clone(), about(path)));
            // A file has no entries, and what cannot be read is told when it is.
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let mut entries: Vec<PathBuf> = entries.take(FILES_MAX).map(|it| it.path()).collect();
            entries.sort();
            seen.extend(entries.into_iter().map(|path| {
                let about = about(&path);
                (path, about)
            }));
        }
        Fingerprint(seen)
    }

    /// Comes to an end when the files look otherwise than `seen`, and have looked so twice in a row: half
    /// a file is not worth reading.
    pub(super) async fn changed(&self, seen: &Fingerprint) -> Fingerprint {
        let mut before = seen.clone();
        loop {
            sleep(EVERY).await;
            let now = self.look().await;
            if now != *seen && now == before {
                return now;
            }
            before = now;
        }
    }
}

fn about(path: &Path) -> Option<[i64; 4]> {
    // Links are followed: that is how Kubernetes mounts a `ConfigMap`.
    let about = fs::metadata(path).ok()?;
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Some([
        about.mtime(),
        about.mtime_nsec(),
        whole(about.size()),
        whole(about.ino()),
    ])
}
