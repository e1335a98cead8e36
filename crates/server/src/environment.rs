//! The process's environment: the one place that reads variables, and remembers which it gave out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use tidegate_policy::config::Environment;

/// The most that a file with a secret may hold. Nobody's token is longer.
const SECRET_FILE_BYTES_MAX: u64 = 64 << 10;

/// Where a configuration looks up `${NAME}`, overrides and files: flags first, then the process.
#[derive(Debug, Default)]
pub struct ProcessEnvironment {
    /// What flags say, under the name of the variable that means the same.
    flags: Vec<(&'static str, String)>,
    taken: RefCell<BTreeSet<String>>,
}

impl ProcessEnvironment {
    /// The process's environment alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a flag have its way over the variable `name`.
    pub fn set(&mut self, name: &'static str, value: Option<impl ToString>) {
        self.flags
            .extend(value.map(|value| (name, value.to_string())));
    }

    /// The variables that took effect so far, by name. Their values may be secrets.
    pub fn taken(&self) -> Vec<String> {
        self.taken.borrow().iter().cloned().collect()
    }
}

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.flags.iter().find(|(flag, _)| *flag == name) {
            return Some(value.clone());
        }
        // A value that is not text is passed on as far as it is, and refused by whoever reads it.
        let value = std::env::var_os(name)?.to_string_lossy().into_owned();
        if !value.is_empty() {
            self.taken.borrow_mut().insert(name.to_owned());
        }
        Some(value)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let read = || {
            let mut text = String::new();
            let file = File::open(path)?;
            // One byte more than allowed tells too long from just long enough.
            file.take(SECRET_FILE_BYTES_MAX + 1)
                .read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        let text = read().map_err(|error| error.to_string())?;
        if text.len() as u64 > SECRET_FILE_BYTES_MAX {
            return Err("it is longer than 64 KiB".to_owned());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_and_is_not_reported_as_a_variable() {
        let mut environment = ProcessEnvironment::new();
        environment.set("PATH", Some(1));
        environment.set("HOME", None::<u8>);
        assert_eq!(environment.variable("PATH").as_deref(), Some("1"));
        assert_eq!(environment.taken(), [] as [&str; 0]);
    }

    #[test]
    fn what_is_given_out_is_remembered_by_name() {
        let environment = ProcessEnvironment::new();
        assert!(environment.variable("PATH").is_some());
        assert!(environment.variable("TIDEGATE_SURELY_NOT_SET").is_none());
        assert_eq!(environment.taken(), ["PATH"]);
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let error = ProcessEnvironment::new().file("/dev/zero").unwrap_err();
        assert_eq!(error, "it is longer than 64 KiB");
    }
}
