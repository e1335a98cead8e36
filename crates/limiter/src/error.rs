//! What can go wrong: building a limiter, and asking it.

use std::fmt;
use tidegate_core::StoreError;
use tidegate_policy::{ConfigErrors, Policy};

/// Why a limiter could not be built.
///
/// Its `Debug` is for people, because that is what a program prints whose `main` returns it.
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is refused; all its errors are listed.
    Config(ConfigErrors),
    /// The configuration could not be read.
    Read {
        /// Which file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A limit written in code is refused.
    Limit {
        /// Which limit.
        name: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// Limits written in code cannot take reservations as they are to.
    Reserve {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A rate that a plan has told cannot be by the limits of the new configuration.
    Plans {
        /// Whose rate, for which limit, and why.
        reason: String,
    },
    /// The configuration has a policy `default`, and there are limits in code, which would be a
    /// second one that nobody reaches.
    TwoDefaults,
    /// There is no policy at all.
    NoPolicy,
    /// The system has no room for as many buckets.
    Memory {
        /// How many were wanted.
        max_keys: u64,
    },
    /// The store that the configuration names is not there.
    Unreachable {
        /// Why; it names the store.
        source: StoreError,
    },
    /// The store that is named is not one that can be had in this way.
    Store {
        /// What is named.
        url: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(errors) => errors.fmt(f),
            Self::Read { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::Limit { name, reason } => write!(f, "limit `{name}`: {reason}"),
            Self::Reserve { reason } => write!(f, "reservations of limits in code: {reason}"),
            Self::Plans { reason } => write!(f, "plans: {reason}"),
            Self::TwoDefaults => f.write_str(
                "the configuration has a policy `default`, which is where limits in code belong, \
                 so that these would never be reached; give the policy another name",
            ),
            Self::NoPolicy => f.write_str("there is no policy, so there is nothing to decide"),
            Self::Memory { max_keys } => write!(
                f,
                "there is no memory for {max_keys} buckets, which take at least {} MiB; lower `max_keys`",
                max_keys.saturating_mul(32) >> 20
            ),
            Self::Unreachable { source } => write!(f, "the store cannot be reached: {source}"),
            Self::Store { url } => write!(f, "the store `{url}` {}", store_help(url)),
        }
    }
}

/// Why a store cannot be had, and how it can.
fn store_help(url: &str) -> &'static str {
    if url == "memory" {
        "is in this process, and not in Redis"
    } else if cfg!(feature = "redis") {
        "is across the network; use `Limiter::builder()` and, at the end, `.start()` or `.connect()`"
    } else {
        "is across the network, which takes the feature `redis` of the crate `tidegate`"
    }
}

/// Writes an error and its causes: what `Debug` of an error shows that may be returned by `main`.
pub(crate) fn with_causes(
    error: &dyn std::error::Error,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_causes(self, f)
    }
}

impl fmt::Debug for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_causes(self, f)
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            // What the store says itself is part of what this says.
            Self::Unreachable { source } => source.source(),
            Self::Config(_)
            | Self::Limit { .. }
            | Self::Reserve { .. }
            | Self::Plans { .. }
            | Self::TwoDefaults
            | Self::NoPolicy
            | Self::Memory { .. }
            | Self::Store { .. } => None,
        }
    }
}

impl From<ConfigErrors> for BuildError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(errors)
    }
}

/// Why a question has no decision. A refusal is not an error: it is a decision.
///
/// Its `Debug` is for people, because that is what a program prints whose `main` returns it.
#[non_exhaustive]
pub enum CheckError {
    /// The request names a policy that is not there.
    UnknownPolicy {
        /// What it names.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The request brings a limit of its own that cannot be: see
    /// [`Descriptor::limit`](tidegate_policy::Descriptor::limit).
    BadLimit {
        /// What is wrong with it.
        reason: String,
    },
    /// The request cannot be [reserved](crate::Limiter::reserve).
    CannotReserve {
        /// Whose limits it meets.
        policy: String,
        /// Why not, and what would be right.
        reason: &'static str,
    },
    /// The store could not tell.
    Store(StoreError),
    /// The limiter was closed.
    Closed,
}

impl CheckError {
    pub(crate) fn unknown_policy(name: &str, policies: &[Policy]) -> Self {
        // What routes join is theirs; nobody else is to ask for it.
        let known = policies.iter().filter(|policy| !policy.is_joined());
        Self::UnknownPolicy {
            name: name.into(),
            known: known.map(|policy| policy.name.clone()).collect(),
        }
    }

    pub(crate) fn cannot_reserve(policy: &Policy, reason: &'static str) -> Self {
        Self::CannotReserve {
            policy: policy.name.clone(),
            reason,
        }
    }

    /// Whether the question itself is wrong, so that asking again is of no use.
    pub fn is_bad_question(&self) -> bool {
        matches!(
            self,
            Self::UnknownPolicy { .. } | Self::BadLimit { .. } | Self::CannotReserve { .. }
        )
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPolicy { name, known } => {
                write!(f, "there is no policy `{name}`; there is ")?;
                for (i, known) in known.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}`{known}`")?;
                }
                Ok(())
            }
            Self::BadLimit { reason } => f.write_str(reason),
            Self::CannotReserve { policy, reason } => {
                write!(f, "policy `{policy}` cannot reserve this: {reason}")
            }
            Self::Store(_) => f.write_str("the store could not tell"),
            Self::Closed => f.write_str("the limiter is closed"),
        }
    }
}

impl std::error::Error for CheckError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::UnknownPolicy { .. }
            | Self::BadLimit { .. }
            | Self::CannotReserve { .. }
            | Self::Closed => None,
        }
    }
}
