//! The process that this is: its variables, and the files that it can read.

use crate::error::BuildError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tidegate_policy::Config;
use tidegate_policy::config::Environment;

/// The most that a file which a configuration names may hold. Nobody's secret is longer, and all the
/// authorities that a system trusts take a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The most that is read of a configuration: more than the language takes, so that it is the
/// language's own message that says so.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// The process's own environment: `${NAME}` and overriding variables such as `TIDEGATE_STORE_URL`
/// are its variables, and files are files. Relative paths begin at the working directory.
///
/// ```
/// use tidegate::{Environment, ProcessEnvironment};
///
/// let process = ProcessEnvironment::new();
/// assert!(process.variable("PATH").is_some());
/// assert!(process.file("/nowhere/secret").is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment(());

impl ProcessEnvironment {
    /// The process's own environment.
    pub const fn new() -> Self {
        Self(())
    }

    /// The configuration in a file, read as the program `tidegate` reads it: for
    /// [`Limiter::reload`](crate::Limiter::reload), or to look into it first.
    pub fn config(&self, path: impl AsRef<Path>) -> Result<Config, BuildError> {
        config_in(path.as_ref(), self)
    }
}

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        // A value that is not text is passed on as far as it is, and refused by whoever reads it.
        let value = std::env::var_os(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        // One byte more than allowed tells too long from just long enough.
        let text = read(Path::new(path), FILE_BYTES_MAX + 1).map_err(|error| error.to_string())?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err("it is longer than 1 MiB".to_owned());
        }
        Ok(text)
    }

    fn has_file(&self, path: &str) -> Result<(), String> {
        open(path).map(drop)
    }
}

/// The most that a list in a file may hold: a dozen million addresses.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// What a file holds that lists whom a guard knows, or why it cannot be read.
pub(crate) fn list_file(path: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let unread = |why: String| format!("{path} cannot be read: {why}");
    let file = open(path).map_err(unread)?;
    let read = file.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(error.to_string()))?;
    if bytes.len() as u64 > LIST_BYTES_MAX {
        return Err(format!("{path} is longer than 256 MiB"));
    }
    Ok(bytes)
}

/// Opens a file that has an end, or says why not: a folder is read in vain, and to open a pipe is to wait
/// for somebody to write to it.
fn open(path: &str) -> Result<File, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if about.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    File::open(path).map_err(|error| error.to_string())
}

/// The configuration in a file; what it names is looked up in `environment`.
pub(crate) fn config_in(path: &Path, environment: &dyn Environment) -> Result<Config, BuildError> {
    let text = read(path, CONFIG_BYTES_MAX).map_err(|source| BuildError::Read {
        path: path.into(),
        source,
    })?;
    let name = path.display().to_string();
    Ok(Config::parse(&text, &name, environment)?)
}

/// What a file holds, up to `max` bytes: some have no end.
fn read(path: &Path, max: u64) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(max).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Environment, ProcessEnvironment};

    #[test]
    fn a_list_that_is_no_file_is_refused_before_anybody_waits_for_it() {
        let process = ProcessEnvironment::new();
        for (path, why) in [
            ("/dev/zero", "it is not a regular file"),
            ("/dev", "it is a folder"),
        ] {
            assert_eq!(process.has_file(path).unwrap_err(), why);
            let read = super::list_file(path).unwrap_err();
            assert_eq!(read, format!("{path} cannot be read: {why}"));
        }
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let process = ProcessEnvironment::new();
        let error = process.file("/dev/zero").unwrap_err();
        assert_eq!(error, "it is longer than 1 MiB");
        assert!(process.config("/dev/zero").is_err());
    }
}
