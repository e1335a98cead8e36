//! The environment of this process: its variables, and the files that it can read.

#[cfg(feature = "config")]
use crate::error::BuildError;
use std::path::Path;
use std::time::Duration;
#[cfg(feature = "config")]
use tidegate_config::{Config, Environment};
use tidegate_files::read_within;
#[cfg(feature = "config")]
use tidegate_files::{read_text, try_append, try_file};

/// The maximum size of a file that a configuration names. No secret is longer, and all the certificate
/// authorities that a system trusts take a quarter of it.
#[cfg(feature = "config")]
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The maximum size of a configuration to read: more than the language accepts, so that the language's own
/// error is reported.
#[cfg(feature = "config")]
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// The environment of this process: `${NAME}` and overriding variables such as `TIDEGATE_STORE_URL` are its
/// variables, and files are read from disk. Relative paths start at the working directory.
///
/// ```
/// use tidegate::{Environment, ProcessEnvironment};
///
/// let process = ProcessEnvironment::new();
/// assert!(process.variable("PATH").is_some());
/// assert!(process.file("/nowhere/secret").is_err());
/// ```
#[cfg(feature = "config")]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment(());

#[cfg(feature = "config")]
impl ProcessEnvironment {
    /// Returns the environment of this process.
    pub const fn new() -> Self {
        Self(())
    }

    /// Reads a configuration file like the program `tidegate`, for
    /// [`Limiter::reload`](crate::Limiter::reload), or to inspect it first.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`] if the file cannot be read, [`BuildError::Config`] if it is invalid.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use tidegate::{Limiter, ProcessEnvironment};
    ///
    /// let config = ProcessEnvironment::new().config("tidegate.yaml")?;
    /// println!("{} policies", config.policies.len());
    /// let limiter = Limiter::builder().config(config).build()?;
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn config(&self, path: impl AsRef<Path>) -> Result<Config, BuildError> {
        config_in(path.as_ref(), self)
    }
}

#[cfg(feature = "config")]
impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        // A value that is not UTF-8 is passed on lossily, and rejected by the setting that uses it.
        let value = std::env::var_os(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        read_text(Path::new(path), FILE_BYTES_MAX).map_err(|error| error.to_string())
    }

    fn has_file(&self, path: &str) -> Result<(), String> {
        try_file(Path::new(path)).map_err(|error| error.to_string())
    }

    fn can_append(&self, path: &str) -> Result<(), String> {
        try_append(Path::new(path)).map_err(|error| error.to_string())
    }
}

/// The maximum size of a list in a file: a dozen million addresses.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Reads the list file that a guard names, within `deadline`.
pub(crate) fn list_file(path: &str, deadline: Duration) -> Result<Vec<u8>, String> {
    let read = read_within(deadline, Path::new(path), LIST_BYTES_MAX);
    read.map_err(|error| format!("{path} cannot be read: {error}"))
}

/// Reads a configuration file. Variables and files that it names are looked up in `environment`.
#[cfg(feature = "config")]
pub(crate) fn config_in(path: &Path, environment: &dyn Environment) -> Result<Config, BuildError> {
    let text = read_text(path, CONFIG_BYTES_MAX).map_err(|source| BuildError::Read {
        path: path.into(),
        source,
    })?;
    let name = path.display().to_string();
    Ok(Config::parse(&text, &name, environment)?)
}

#[cfg(all(test, feature = "config"))]
mod tests {
    use super::{Environment, ProcessEnvironment};

    #[test]
    fn a_list_that_is_not_a_regular_file_is_rejected_at_once() {
        let process = ProcessEnvironment::new();
        for (path, why) in [
            ("/dev/zero", "it is a device, not a regular file"),
            ("/dev", "it is a folder"),
        ] {
            assert_eq!(process.has_file(path).unwrap_err(), why);
            let read = super::list_file(path, super::Duration::MAX).unwrap_err();
            assert_eq!(read, format!("{path} cannot be read: {why}"));
        }
    }

    #[test]
    fn a_file_without_end_is_not_read() {
        let process = ProcessEnvironment::new();
        let error = process.file("/dev/zero").unwrap_err();
        assert_eq!(error, "it is a device, not a regular file");
        assert!(process.config("/dev/zero").is_err());
    }
}
