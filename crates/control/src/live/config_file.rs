//! Reading a configuration from a file, for every command that takes one, and the files of other limiters
//! from a folder.

use super::config_source::ConfigInput;
use crate::failure::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_config::Config;
use tidegate_config::Environment;
use tidegate_import::SourceFile;

/// The most bytes read of a file: more than the language accepts, so that the language's own message reports
/// the excess.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The most files read of a folder: more than there can be domains.
const FILES_MAX: usize = 10_000;

/// The most bytes read of a folder.
const FOLDER_BYTES_MAX: usize = 64 << 20;

/// The content of a folder.
#[derive(Debug, Default)]
pub struct Folder {
    /// The files, by name.
    pub files: Vec<SourceFile>,
    /// The skipped entries, with the reasons.
    pub passed_over: Vec<String>,
}

/// Loads the configuration in `path`, with the sources that it lists. Returns all errors at once.
///
/// # Errors
///
/// All errors of the text, each with its line; or the failure of the read, if a file or a required source
/// cannot be read.
pub fn load(path: &Path, environment: &dyn Environment) -> Result<Config, Failure> {
    let source = ConfigInput {
        file: Some(path),
        envoy: None,
        source: None,
    };
    let (config, _) = source.load(environment)?;
    Ok(config)
}

/// Reads the text in `path`.
///
/// # Errors
///
/// If the file cannot be read, is larger than the bound on configuration files, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, Failure> {
    tidegate_files::read_text(path, FILE_BYTES_MAX).map_err(|error| unreadable(path, &error))
}

/// Reads the YAML files in the folder `path`, by name; or `path` itself, if it is a file. Links are followed,
/// because Kubernetes mounts a `ConfigMap` that way. Hidden files are ignored.
///
/// At most 10,000 entries and 64 MiB of text are read, so that a wrong path cannot fill the memory.
///
/// # Errors
///
/// [`Failure::Input`] beyond these bounds, if a file cannot be read, and if a folder has no YAML file: an empty
/// mount would otherwise remove all limits.
pub fn read_all(path: &Path) -> Result<Folder, Failure> {
    let about = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !about.is_dir() {
        return Ok(Folder {
            files: vec![source(path)?],
            ..Folder::default()
        });
    }
    let mut folder = Folder::default();
    let mut bytes: usize = 0;
    for path in entries(path)? {
        if is_hidden(&path) {
            continue;
        }
        if let Some(why) = why_not(&path) {
            let shown = path.display();
            folder
                .passed_over
                .push(format!("{shown} is skipped: {why}"));
            continue;
        }
        let file = source(&path)?;
        bytes = bytes.saturating_add(file.text.len());
        folder.files.push(file);
        if bytes > FOLDER_BYTES_MAX {
            let folder = path.parent().unwrap_or(&path).display();
            return Err(Failure::input(format!("{folder} holds more than 64 MiB")));
        }
    }
    if folder.files.is_empty() {
        return Err(nothing_in(path));
    }
    Ok(folder)
}

/// Returns the entries of a folder, in order.
fn entries(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
        let entry = entry.map_err(|error| unreadable(path, &error))?;
        paths.push(entry.path());
        if paths.len() > FILES_MAX {
            let shown = path.display();
            let message = format!("{shown} holds more than {FILES_MAX} files");
            return Err(Failure::input(message));
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_none_or(|name| name.starts_with('.'))
}

/// Returns the reason to skip an entry of a folder. A `.yaml` name that is a pipe or a device is not
/// skipped: its limits would be removed without an error.
fn why_not(path: &Path) -> Option<&'static str> {
    if path.is_dir() {
        return Some("it is a folder");
    }
    let is_yaml = path
        .extension()
        .is_some_and(|it| it == "yaml" || it == "yml");
    (!is_yaml).then_some("its name ends neither in .yaml nor in .yml")
}

fn source(path: &Path) -> Result<SourceFile, Failure> {
    Ok(SourceFile {
        name: path.display().to_string(),
        text: read(path)?,
    })
}

fn nothing_in(path: &Path) -> Failure {
    let shown = path.display();
    let inner = path.join("config");
    let hint = if inner.is_dir() {
        format!("; did you mean {}?", inner.display())
    } else {
        String::new()
    };
    Failure::input(format!(
        "{shown} holds no file whose name ends in .yaml or .yml{hint}"
    ))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Regression: the reload succeeded, without the limits of that file.
    #[test]
    fn a_device_with_the_name_of_a_file_was_skipped_with_its_limits() {
        let name = format!("tidegate-config-file-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("folder.yaml")).unwrap();
        fs::write(folder.join("a.yaml"), "domain: a").unwrap();
        symlink("/dev/null", folder.join("notes")).unwrap();
        let read = read_all(&folder).unwrap();
        assert_eq!((read.files.len(), read.passed_over.len()), (1, 2));
        symlink("/dev/null", folder.join("b.yaml")).unwrap();
        let failure = read_all(&folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        let why = "b.yaml: it is a device, not a regular file";
        assert!(failure.ends_with(why), "{failure}");
    }
}
