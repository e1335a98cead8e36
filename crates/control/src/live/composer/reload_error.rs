//! The reason why a reload was rejected.

use crate::live::config_source::InputError;
use crate::live::edit::EditError;
use std::fmt;
use tidegate_config::ConfigErrors;

/// The reason why the served configuration did not change.
#[derive(Debug)]
pub enum ReloadError {
    /// Something could not be read.
    Unread(String),
    /// The configuration is invalid: all errors.
    Invalid(ConfigErrors),
    /// The configuration is valid, but the running server cannot apply it.
    Unservable(String),
    /// There is nothing to read.
    BuiltIn,
}

impl From<InputError> for ReloadError {
    fn from(unusable: InputError) -> Self {
        match unusable {
            InputError::Unread(failure) => Self::Unread(failure.to_string()),
            InputError::Wrong(errors) => Self::Invalid(errors),
        }
    }
}

impl From<ReloadError> for EditError {
    fn from(refused: ReloadError) -> Self {
        match refused {
            ReloadError::Invalid(errors) => Self::Invalid(errors),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) | Self::Unservable(why) => f.write_str(why),
            Self::Invalid(errors) => errors.fmt(f),
            Self::BuiltIn => f.write_str("nothing to reload: started without --config FILE"),
        }
    }
}

impl std::error::Error for ReloadError {}

/// Returns the error for an internal task that ended early.
pub(super) fn lost() -> ReloadError {
    ReloadError::Unread("the read did not finish".to_owned())
}
