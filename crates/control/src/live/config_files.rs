//! The configuration file: the first source, which names all the others.

use super::file_changes::{FileWatch, Fingerprint, NamedFiles};
use crate::environment::FlagEnvironment;
use crate::live::config_source::{ConfigInput, ConfigTexts, InputError};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::Setting;
use tidegate_config::compose::NamedText;
use tidegate_import::EnvoyOptions;
use tidegate_net::file_stamp::FileStamp;
use tidegate_net::tasks::blocking;
use tokio::time::sleep;

/// The interval at which files are checked for changes.
pub const EVERY: Duration = Duration::from_secs(1);

/// The maximum number of files of a folder whose changes are noticed.
const FILES_MAX: usize = 10_000;

/// The location of the configuration, and the flags that override it.
#[derive(Clone, Debug, Default)]
pub struct ConfigFiles {
    /// The file.
    pub file: Option<PathBuf>,
    /// The files of envoyproxy/ratelimit.
    pub envoy: Option<(PathBuf, EnvoyOptions)>,
    /// A source in addition to those that the file lists: its name in messages, and its text.
    pub source: Option<(String, String)>,
    /// The values of flags, under the names of the equivalent variables.
    pub flags: Vec<(&'static str, String)>,
    /// Settings to use if the configuration has none.
    pub defaults: Vec<Setting>,
    /// Watch the files for changes; otherwise they are read again only on request.
    pub is_watched: bool,
}

impl ConfigFiles {
    /// Returns the input in the form that commands use.
    pub fn source(&self) -> ConfigInput<'_> {
        ConfigInput {
            file: self.file.as_deref(),
            envoy: self
                .envoy
                .as_ref()
                .map(|(path, options)| (path.as_path(), *options)),
            source: self
                .source
                .as_ref()
                .map(|(name, text)| NamedText { name, text }),
        }
    }

    /// Returns the environment in which a configuration looks up variables and files.
    pub fn environment(&self) -> FlagEnvironment {
        let mut environment = FlagEnvironment::new();
        for (name, value) in &self.flags {
            environment.set(name, Some(value));
        }
        environment.set_defaults(self.defaults.clone());
        environment
    }

    /// Returns the name for messages.
    pub fn name(&self) -> String {
        self.source().name()
    }

    /// Returns true if there is no file to read.
    pub fn is_built_in(&self) -> bool {
        self.source().is_built_in()
    }

    /// Reads the files. Reading may block, so it runs on a blocking thread.
    ///
    /// # Errors
    ///
    /// Those of [`ConfigInput::read`] for files; sources are not queried.
    pub async fn read(&self) -> Result<ConfigTexts, InputError> {
        let this = self.clone();
        let read = blocking(move || this.source().read_files());
        let lost =
            || InputError::Unread(crate::failure::Failure::runtime("the read did not finish"));
        read.await.unwrap_or_else(|| Err(lost()))
    }

    /// Returns a fingerprint of the files, and of those that they name.
    pub(super) async fn look(&self, named: NamedFiles) -> Fingerprint {
        let this = self.clone();
        blocking(move || this.fingerprint(named))
            .await
            .unwrap_or_default()
    }

    fn fingerprint(&self, mut named: NamedFiles) -> Fingerprint {
        let mut paths: Vec<PathBuf> = self.file.iter().cloned().collect();
        if let Some((path, _)) = &self.envoy {
            // A file has no entries. A folder that cannot be read is reported when it is read.
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

    /// Waits until the files differ from when they were last read, or until it is time to retry a
    /// failure. The new fingerprint must be seen twice in a row, so that a half-written file is not read.
    pub(super) async fn changed(&self, looked: &FileWatch) -> Fingerprint {
        let mut before = looked.last();
        loop {
            sleep(EVERY).await;
            // The files may have been read for another reason meanwhile.
            let last = looked.last();
            let now = self.look(last.named.clone()).await;
            if now == before && (now != last || looked.is_overdue()) {
                return now;
            }
            before = now;
        }
    }
}
