//! Third-party programs and their paths.

use std::env;
use std::path::PathBuf;

/// A program that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Curl,
    H2load,
    Nginx,
}

impl Program {
    /// Returns its path. If it is not installed, reports that the test is skipped; with `CI` set,
    /// panics instead.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let (name, variable) = self.names();
        let found = env::var_os(variable).map(PathBuf::from);
        let found = found.or_else(|| in_path(name));
        if found.is_none() {
            let missing = format!(
                "{name} is not installed: ./scripts/test installs it, or set {variable} to its path"
            );
            assert!(!in_ci(), "{missing}");
            eprintln!("skipped: {missing}");
        }
        found
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Curl => ("curl", "TIDEGATE_TEST_CURL"),
            Self::H2load => ("h2load", "TIDEGATE_TEST_H2LOAD"),
            Self::Nginx => ("nginx", "TIDEGATE_TEST_NGINX"),
        }
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // A Debian package installs servers outside of the usual path.
    env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}
