//! Errors of building a limiter and of deciding a request.

use std::fmt;
#[cfg(feature = "config")]
use tidegate_config::ConfigErrors;
use tidegate_core::StoreError;
use tidegate_policy::Policy;
use tidegate_policy::unit::CostFault;

/// The reason why a limiter could not be built, or a configuration not be loaded.
///
/// `Debug` prints the same readable text as `Display`, with causes, because that is the output of a program
/// whose `main` returns the error.
///
/// ```
/// use tidegate::{BuildError, LimitSpec, Limiter};
///
/// let error = Limiter::builder().limit(LimitSpec::new("api")).build().unwrap_err();
/// assert!(matches!(&error, BuildError::Limit { name, .. } if name == "api"));
/// assert_eq!(error.to_string(), format!("{error:?}"));
/// ```
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is invalid; lists all its errors.
    #[cfg(feature = "config")]
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
    /// The snapshot of the store in memory cannot be used: another process uses it, or the file cannot be
    /// read. A file with invalid content is no error; it is set aside.
    Snapshot {
        /// The path of the file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
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
            #[cfg(feature = "config")]
            Self::Config(errors) => errors.fmt(f),
            Self::Read { path, .. } => write!(f, "cannot read {}", path.display()),
            Self::Limit { name, reason } => write!(f, "limit `{name}`: {reason}"),
            Self::Reserve { reason } => write!(f, "reservations of limits in code: {reason}"),
            Self::Plans { reason } => write!(f, "plans: {reason}"),
            Self::TwoDefaults => f.write_str(
                "the policy `default` is reserved for limits in code, which would never be \
                 reached; rename the policy",
            ),
            Self::NoPolicy => f.write_str("there is no policy"),
            Self::Memory { max_keys } => write!(
                f,
                "not enough memory for {max_keys} buckets, which need at least {} MiB; lower \
                 `max_keys`",
                max_keys.saturating_mul(32) >> 20
            ),
            Self::Snapshot { path, source } => {
                write!(f, "cannot use the snapshot {}: {source}", path.display())
            }
            Self::Unreachable { source } => write!(f, "the store is unreachable: {source}"),
            Self::Store { url } => write!(f, "the store `{url}` {}", store_help(url)),
        }
    }
}

/// Returns the reason why a store cannot be used here, and the way to use it.
fn store_help(url: &str) -> &'static str {
    if url == "memory" {
        "is in memory, not in Redis"
    } else if cfg!(feature = "redis") {
        "is remote; use `Limiter::builder()` and, at the end, `.start()` or `.connect()`"
    } else {
        "is remote, which needs the feature `redis` of the crate `tidegate`"
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
            // `Display` already contains the message of these causes.
            Self::Snapshot { source, .. } => source.source(),
            Self::Unreachable { source } => source.source(),
            #[cfg(feature = "config")]
            Self::Config(_) => None,
            Self::Limit { .. }
            | Self::Reserve { .. }
            | Self::Plans { .. }
            | Self::TwoDefaults
            | Self::NoPolicy
            | Self::Memory { .. }
            | Self::Store { .. } => None,
        }
    }
}

#[cfg(feature = "config")]
impl From<ConfigErrors> for BuildError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(errors)
    }
}

/// The reason why a request has no decision. A refusal is not an error: it is a decision.
///
/// | error | the caller |
/// |---|---|
/// | [`UnknownPolicy`](Self::UnknownPolicy), [`BadCost`](Self::BadCost), [`BadLimit`](Self::BadLimit), [`CannotReserve`](Self::CannotReserve) | has to send another request; see [`is_bad_request`](Self::is_bad_request) |
/// | [`Store`](Self::Store) | may retry later: a limit with `on_failure: error` applied, and the store did not answer |
/// | [`Closed`](Self::Closed) | stops: the limiter is shutting down |
///
/// `Debug` prints the same readable text as `Display`, with causes, because that is the output of a program
/// whose `main` returns the error.
///
/// ```
/// use tidegate::{CheckError, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
/// let error = limiter.check_now(&Request::new().policy("shop")).unwrap_err();
/// assert!(matches!(&error, CheckError::UnknownPolicy { known, .. } if known == &["default"]));
/// # Ok::<(), tidegate::BuildError>(())
/// ```
#[non_exhaustive]
pub enum CheckError {
    /// The request names a policy that does not exist.
    UnknownPolicy {
        /// The name in the request.
        name: String,
        /// The names of the existing policies.
        known: Vec<String>,
    },
    /// The request names a unit that no limit of its policy counts, or its [cost](tidegate_policy::Cost) is
    /// invalid in another way.
    BadCost {
        /// The policy of the request.
        policy: String,
        /// The mistake, with the units that exist.
        fault: CostFault,
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

    #[cold]
    pub(crate) fn bad_cost(policy: &Policy, fault: CostFault) -> Self {
        Self::BadCost {
            policy: policy.name.clone(),
            fault,
        }
    }

    pub(crate) fn cannot_reserve(policy: &Policy, reason: &'static str) -> Self {
        Self::CannotReserve {
            policy: policy.name.clone(),
            reason,
        }
    }

    /// Returns true if the request itself is invalid, so that retrying it is useless.
    pub fn is_bad_request(&self) -> bool {
        matches!(
            self,
            Self::UnknownPolicy { .. }
                | Self::BadCost { .. }
                | Self::BadLimit { .. }
                | Self::CannotReserve { .. }
        )
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPolicy { name, known } => {
                write!(f, "unknown policy `{name}`; expected ")?;
                for (i, known) in known.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}`{known}`")?;
                }
                Ok(())
            }
            Self::BadCost { policy, fault } => write!(f, "policy `{policy}`: {fault}"),
            Self::BadLimit { reason } => f.write_str(reason),
            Self::CannotReserve { policy, reason } => {
                write!(f, "policy `{policy}` cannot reserve this: {reason}")
            }
            Self::Store(_) => f.write_str("the store is unavailable"),
            Self::Closed => f.write_str("the limiter is closed"),
        }
    }
}

impl std::error::Error for CheckError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::UnknownPolicy { .. }
            | Self::BadCost { .. }
            | Self::BadLimit { .. }
            | Self::CannotReserve { .. }
            | Self::Closed => None,
        }
    }
}
