//! The process's environment, overridden by flags. Records the variables that it returned, and the files.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tidegate_config::{Environment, Setting};
use tidegate_net::file_stamp::FileStamp;

/// The lookup of `${NAME}`, overrides and files for a configuration: flags first, then the process.
#[derive(Debug, Default)]
pub struct FlagEnvironment {
    /// The values of flags, under the name of the equivalent variable.
    flags: Vec<(&'static str, String)>,
    defaults: Vec<Setting>,
    taken: RefCell<BTreeSet<String>>,
    /// The files that were read, each with its stamp just before.
    read: RefCell<BTreeMap<PathBuf, FileStamp>>,
    is_lacking: Cell<bool>,
    process: tidegate::ProcessEnvironment,
}

impl FlagEnvironment {
    /// Creates an environment of the process alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Overrides the variable `name` by a flag, if the flag has a value.
    pub fn set(&mut self, name: &'static str, value: Option<impl ToString>) {
        self.flags
            .extend(value.map(|value| (name, value.to_string())));
    }

    /// Sets defaults for settings that a configuration does not have.
    pub(crate) fn set_defaults(&mut self, defaults: Vec<Setting>) {
        self.defaults = defaults;
    }

    /// Returns the names of the variables that took effect so far. Their values may be secrets.
    pub fn taken(&self) -> Vec<String> {
        self.taken.borrow().iter().cloned().collect()
    }

    /// Returns the files that were read so far, or could not be, each with its stamp just before.
    pub fn files(&self) -> BTreeMap<PathBuf, FileStamp> {
        self.read.borrow().clone()
    }

    /// Returns true if any file could not be read: an error may then not be the configuration's fault.
    pub(crate) fn is_lacking(&self) -> bool {
        self.is_lacking.get()
    }
}

impl Environment for FlagEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.flags.iter().find(|(flag, _)| *flag == name) {
            return Some(value.clone());
        }
        let value = self.process.variable(name)?;
        if !value.is_empty() {
            self.taken.borrow_mut().insert(name.to_owned());
        }
        Some(value)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        // Stamp first: any later change makes a difference.
        let sight = FileStamp::of(Path::new(path));
        let mut read = self.read.borrow_mut();
        read.entry(path.into()).or_insert(sight);
        let held = self.process.file(path);
        if held.is_err() {
            self.is_lacking.set(true);
        }
        held
    }

    fn has_file(&self, path: &str) -> Result<(), String> {
        self.process.has_file(path)
    }

    fn can_append(&self, path: &str) -> Result<(), String> {
        self.process.can_append(path)
    }

    fn defaults(&self) -> &[Setting] {
        &self.defaults
    }

    fn took(&self, variable: &str) {
        self.taken.borrow_mut().insert(variable.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_and_is_not_reported_as_a_variable() {
        let mut environment = FlagEnvironment::new();
        environment.set("PATH", Some(1));
        environment.set("HOME", None::<u8>);
        assert_eq!(environment.variable("PATH").as_deref(), Some("1"));
        assert_eq!(environment.taken(), [] as [&str; 0]);
    }

    #[test]
    fn variables_read_are_recorded_by_name() {
        let environment = FlagEnvironment::new();
        assert!(environment.variable("PATH").is_some());
        assert!(environment.variable("TIDEGATE_SURELY_NOT_SET").is_none());
        assert_eq!(environment.taken(), ["PATH"]);
    }

    #[test]
    fn files_read_and_missing_files_are_recorded() {
        let environment = FlagEnvironment::new();
        let (there, gone) = (env!("CARGO_MANIFEST_DIR"), "/nowhere/secret");
        let there = format!("{there}/Cargo.toml");
        assert!(environment.file(&there).is_ok());
        assert!(!environment.is_lacking());
        assert!(environment.file(gone).is_err());
        assert!(environment.is_lacking());
        // Lists are read later, by the code that maintains them.
        assert!(environment.has_file(file!()).is_err());
        let files = environment.files();
        assert_eq!(files.len(), 2);
        for path in [there.as_str(), gone] {
            let path = Path::new(path);
            assert_eq!(files.get(path), Some(&FileStamp::of(path)));
        }
    }
}
