//! The process's environment with flags over it, which remembers the variables that it gave out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use tidegate_policy::config::Environment;

/// Where a configuration looks up `${NAME}`, overrides and files: flags first, then the process.
#[derive(Debug, Default)]
pub struct ProcessEnvironment {
    /// What flags say, under the name of the variable that means the same.
    flags: Vec<(&'static str, String)>,
    taken: RefCell<BTreeSet<String>>,
    process: tidegate::ProcessEnvironment,
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
        let value = self.process.variable(name)?;
        if !value.is_empty() {
            self.taken.borrow_mut().insert(name.to_owned());
        }
        Some(value)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.process.file(path)
    }

    fn has_file(&self, path: &str) -> Result<(), String> {
        self.process.has_file(path)
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
}
