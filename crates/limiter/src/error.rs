//! Errors of building a limiter and of deciding a request.

use std::fmt;
use tidegate_core::StoreError;
use tidegate_policy::{ConfigErrors, Policy};

/// The reason why a limiter could not be built.
///
/// `Debug` prints the same readable text as `Display`, with causes, because that is the output of a program
/// whose `main` returns the error.
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is invalid; lists all its errors.
    Config(ConfigErrors),
    /// The configuration could not be read.
    Read {
        /// The path of the file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A limit written in code is invalid.
    Limit {
        /// The limit's name.
        name: String,
        /// The mistake, and how to fix it.
        reason: String,
    },
    /// The limits written in code cannot be combined with the reservation settings.
    Reserve {
        /// The mistake, and how to fix it.
        reason: String,
    },
    /// A rate from a plan does not fit the limits of the new configuration.
    Plans {
        /// The subject, the limit, and the reason.
        reason: String,
    },
    /// The configuration has a policy `default`, and there are limits in code. These would form a second
    /// policy of this name that no request reaches.
    TwoDefaults,
    /// There is no policy at all.
    NoPolicy,
    /// The system has no memory for this many buckets.
    Memory {
        /// The requested number of buckets.
        max_keys: u64,
    },
    /// The store that the configuration names is unreachable.
    Unreachable {
        /// The cause; it names the store.
        source: StoreError,
    },
    /// The named store cannot be used with this constructor.
    Store {
        /// The URL of the store.
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

/// Returns the reason why a store cannot be used here, and the way to use it.
fn store_help(url: &str) -> &'static str {
    if url == "memory" {
        "is in this process, and not in Redis"
    } else if cfg!(feature = "redis") {
        "is across the network; use `Limiter::builder()` and, at the end, `.start()` or `.connect()`"
    } else {
        "is across the network, which takes the feature `redis` of the crate `tidegate`"
    }
}

/// Writes an error and its causes, for the `Debug` of an error that `main` may return.
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
            // `Display` already contains the store's own message.
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

/// The reason why a request has no decision. A refusal is not an error: it is a decision.
///
/// `Debug` prints the same readable text as `Display`, with causes, because that is the output of a program
/// whose `main` returns the error.
#[non_exhaustive]
pub enum CheckError {
    /// The request names a policy that does not exist.
    UnknownPolicy {
        /// The name in the request.
        name: String,
        /// The names of the existing policies.
        known: Vec<String>,
    },
    /// The request carries an invalid limit: see [`Descriptor::limit`](tidegate_policy::Descriptor::limit).
    BadLimit {
        /// The reason why it is invalid.
        reason: String,
    },
    /// The request cannot be [reserved](crate::Limiter::reserve).
    CannotReserve {
        /// The policy of the request.
        policy: String,
        /// The reason, and how to fix it.
        reason: &'static str,
    },
    /// The store did not answer.
    Store(StoreError),
    /// The limiter was closed.
    Closed,
}

impl CheckError {
    pub(crate) fn unknown_policy(name: &str, policies: &[Policy]) -> Self {
        // Joined policies are internal to the routes that join them; requests do not name them.
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

    /// Returns true if the request itself is invalid, so that retrying it is useless.
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
