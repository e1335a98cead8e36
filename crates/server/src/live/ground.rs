//! The file: the first source, which names all the others.

use super::looked::{FileWatch, Fingerprint, NamedFiles};
use crate::config_source::{ConfigInput, ConfigTexts, Unusable};
use crate::environment::FlagEnvironment;
use crate::sight::FileStamp;
use crate::tasks::blocking;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_policy::config::Setting;
use tidegate_policy::import::EnvoyOptions;
use tokio::time::sleep;

/// How often files are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// The most files of a folder whose changes are noticed.
const FILES_MAX: usize = 10_000;

/// Where the configuration is, and the flags that go before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFiles {
    pub(crate) file: Option<PathBuf>,
    pub(crate) envoy: Option<(PathBuf, EnvoyOptions)>,
    /// What flags say, under the name of the variable that means the same.
    pub(crate) flags: Vec<(&'static str, String)>,
    /// Settings for where the configuration has none.
    pub(crate) defaults: Vec<Setting>,
    /// Whether the files are looked at by themselves, or only when told.
    pub(crate) is_watched: bool,
}

impl ConfigFiles {
    /// It as commands know it.
    pub(super) fn source(&self) -> ConfigInput<'_> {
        ConfigInput {
            file: self.file.as_deref(),
            envoy: self
                .envoy
                .as_ref()
                .map(|(path, options)| (path.as_path(), *options)),
        }
    }

    /// Where a configuration looks things up.
    pub(super) fn environment(&self) -> FlagEnvironment {
        let mut environment = FlagEnvironment::new();
        for (name, value) in &self.flags {
            environment.set(name, Some(value));
        }
        environment.set_defaults(self.defaults.clone());
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
    pub(super) async fn read(&self) -> Result<ConfigTexts, Unusable> {
        let this = self.clone();
        let read = blocking(move || this.source().read_files());
        let lost = || Unusable::Unread(crate::failure::Failure::runtime("reading came to no end"));
        read.await.unwrap_or_else(|| Err(lost()))
    }

    /// How the files look now, and those that they name.
    pub(super) async fn look(&self, named: NamedFiles) -> Fingerprint {
        let this = self.clone();
        blocking(move || this.fingerprint(named))
            .await
            .unwrap_or_default()
    }

    fn fingerprint(&self, mut named: NamedFiles) -> Fingerprint {
        let mut paths: Vec<PathBuf> = self.file.iter().cloned().collect();
        if let Some((path, _)) = &self.envoy {
            // A file has no entries, and what cannot be read is told when it is.
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let mut entries: Vec<PathBuf> = entries.take(FILES_MAX).map(|it| it.path()).collect();
            entries.sort();
            paths.push(path.clone());
            paths.extend(entries);
        }
        for (path, sight) in &mut named {
            *sight = FileStamp::of(path);
        }
        let seen = paths.into_iter().map(|path| {
            let sight = FileStamp::of(&path);
            (path, sight)
        });
        let own = seen.collect();
        Fingerprint { own, named }
    }

    /// Comes to an end when the files look otherwise than they did when they were last read, or when it is
    /// time to try once more what failed, and they have looked so twice in a row: half a file is not worth
    /// reading.
    pub(super) async fn changed(&self, looked: &FileWatch) -> Fingerprint {
        let mut before = looked.last();
        loop {
            sleep(EVERY).await;
            // Somebody else may have read them meanwhile.
            let last = looked.last();
            let now = self.look(last.named.clone()).await;
            if now == before && (now != last || looked.is_overdue()) {
                return now;
            }
            before = now;
        }
    }
}
