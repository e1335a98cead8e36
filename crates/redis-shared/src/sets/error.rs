//! Failures of loading a whole set.

use crate::foreign_keys;
use std::error::Error;
use std::fmt;
use tidegate_redis_client::{CallError, ClientFailure, FailureReason};

/// Why something was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// Redis gave no usable answer, or not in time; or the key holds something else.
    Call(CallError),
    /// There is more than may be held.
    TooMany {
        /// The key, for people.
        key: String,
        /// The most members that may be loaded.
        max: usize,
    },
}

impl LoadError {
    pub(crate) fn too_many(key: &[u8], max: usize) -> Self {
        let key = foreign_keys::shown(key);
        Self::TooMany { key, max }
    }

    /// Returns true if a later attempt may succeed without an operator.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Call(error) => error.is_transient(),
            Self::TooMany { .. } => false,
        }
    }
}

impl From<CallError> for LoadError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<LoadError> for ClientFailure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Call(error) => error.into(),
            error @ LoadError::TooMany { .. } => Self {
                reason: FailureReason::Other,
                is_transient: false,
                message: error.to_string(),
            },
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::TooMany { key, max } => {
                write!(f, "the Redis key {key} has more than {max} members, ")?;
                f.write_str("which is as many as may be loaded")
            }
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Call(error) => Some(error),
            Self::TooMany { .. } => None,
        }
    }
}
