//! Why what is served did not change.

use crate::config_source::Unusable;
use crate::live::edit::EditError;
use std::fmt;
use tidegate_policy::ConfigErrors;

/// Why what is served did not change.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Something could not be read.
    Unread(String),
    /// It is not sound: everything that is wrong with it.
    Invalid(ConfigErrors),
    /// It is sound, and cannot be served by what runs.
    Unservable(String),
    /// There is nothing to read.
    BuiltIn,
}

impl From<Unusable> for Refused {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Unread(failure) => Self::Unread(failure.to_string()),
            Unusable::Wrong(errors) => Self::Invalid(errors),
        }
    }
}

impl From<Refused> for EditError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Invalid(errors),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) | Self::Unservable(why) => f.write_str(why),
            Self::Invalid(errors) => errors.fmt(f),
            Self::BuiltIn => f.write_str(
                "there is nothing to read again: this was started without --config FILE",
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// Something of ours ended before its end.
pub(super) fn lost() -> Refused {
    Refused::Unread("reading it came to no end".to_owned())
}
