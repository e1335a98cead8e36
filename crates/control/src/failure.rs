//! Failures of the program, and their exit codes.
//!
//! | failure | exit code | fixed by |
//! |---|---|---|
//! | [`Failure::Input`] | 2 | the operator: another input |
//! | [`Failure::Runtime`] | 1 | time or repair: the same command may work later |
//! | [`Failure::NotFound`] | 3 | nothing is broken; scripts test for it |
//! | [`Failure::Refused`] | 4 | nothing is broken; scripts test for it |

use std::fmt;
use std::process::ExitCode;
use tidegate_net::BindError;

/// The reason why the program failed. Its display text is for people, and may have several lines.
#[derive(Debug)]
pub enum Failure {
    /// The input is invalid: the command line, the configuration, a trace. Exit code 2, which is also that of
    /// a mistyped flag.
    Input(String),
    /// The input is valid, but an operation failed. Exit code 1.
    Runtime(String),
    /// The command worked, but found nothing. Exit code 3.
    NotFound(String),
    /// The command worked: a limit refused a request, which is printed already. Exit code 4.
    Refused,
}

impl Failure {
    /// Creates a failure because of invalid input.
    pub fn input(what: impl fmt::Display) -> Self {
        Self::Input(what.to_string())
    }

    /// Creates a failure of an operation.
    pub fn runtime(what: impl fmt::Display) -> Self {
        Self::Runtime(what.to_string())
    }

    /// Creates a failure because nothing was found.
    pub fn not_found(what: impl fmt::Display) -> Self {
        Self::NotFound(what.to_string())
    }

    /// Returns the exit code. The only place where failures become exit codes.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Input(_) => 2,
            Self::Runtime(_) => 1,
            Self::NotFound(_) => 3,
            Self::Refused => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(what) | Self::Runtime(what) | Self::NotFound(what) => f.write_str(what),
            Self::Refused => f.write_str("a request was refused"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Settings(what) => Self::Input(what),
            BindError::Socket(what) => Self::Runtime(what),
        }
    }
}
