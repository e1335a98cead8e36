//! Reading a configuration from a file, for every command that takes one.

use crate::failure::Failure;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tidegate_policy::Config;
use tidegate_policy::config::Environment;

/// The most that is read of a file: more than the language takes, so that it is the language's own
/// message that says so.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The configuration in `path`, or everything that is wrong with it.
pub fn load(path: &Path, environment: &dyn Environment) -> Result<Config, Failure> {
    let text = read(path)?;
    Config::parse(&text, &path.display().to_string(), environment).map_err(Failure::input)
}

/// The text in `path`.
pub fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))?;
    Ok(text)
}
