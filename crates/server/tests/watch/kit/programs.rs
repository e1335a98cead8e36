//! Third-party programs and their paths.

use std::env;
use std::path::PathBuf;

/// A program that tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Prometheus,
    Promtool,
    /// Reads OTLP like the OpenTelemetry collector: `tests/watch/otlp/`.
    Otlp,
}

impl Program {
    /// Returns its path. If it is not installed, reports that the test is skipped; with `CI` set,
    /// panics instead.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let found = self.look();
        if found.is_none() {
            let variable = self.variable();
            let missing = format!(
                "{self:?} is not installed: ./scripts/test installs it, or set {variable} to its path"
            );
            assert!(!in_ci(), "{missing}");
            eprintln!("skipped: {missing}");
        }
        found
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Prometheus => "TIDEGATE_TEST_PROMETHEUS",
            Self::Promtool => "TIDEGATE_TEST_PROMTOOL",
            Self::Otlp => "TIDEGATE_TEST_OTLP",
        }
    }

    fn look(self) -> Option<PathBuf> {
        if let Some(path) = env::var_os(self.variable()) {
            return Some(path.into());
        }
        match self {
            Self::Prometheus => in_path("prometheus"),
            Self::Promtool => in_path("promtool"),
            Self::Otlp => {
                let tools = concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/../../target/tools/go/bin/otlp"
                );
                Some(PathBuf::from(tools)).filter(|file| file.is_file())
            }
        }
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}
