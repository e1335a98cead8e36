//! How the program fails, and with which exit code.

use std::fmt;
use std::process::ExitCode;

/// Why the program ended without doing what it was asked. What it displays is for people, and may
/// have several lines.
#[derive(Debug)]
pub enum Failure {
    /// What was written is wrong: the command line, the configuration, a trace. Exit code 2, which
    /// is also what a mistyped flag gives.
    Input(String),
    /// What was written is right, and yet it did not work. Exit code 1.
    Runtime(String),
    /// The command worked, but found nothing. Exit code 3.
    NotFound(String),
}

impl Failure {
    /// Something that was written is wrong.
    pub fn input(what: impl fmt::Display) -> Self {
        Self::Input(what.to_string())
    }

    /// Something did not work.
    pub fn runtime(what: impl fmt::Display) -> Self {
        Self::Runtime(what.to_string())
    }

    /// Nothing was found.
    pub fn not_found(what: impl fmt::Display) -> Self {
        Self::NotFound(what.to_string())
    }

    /// The one place where failures become exit codes.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Input(_) => 2,
            Self::Runtime(_) => 1,
            Self::NotFound(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(what) | Self::Runtime(what) | Self::NotFound(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Failure {}
