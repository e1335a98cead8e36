//! The failure of a store, with the answers that it still has.

use crate::{ChargedOutcome, Receipt, Timestamp};
use std::error::Error;
use std::fmt;

/// The failure of a store to decide. It is not a refusal: a refusal is a [`Reply`](crate::Reply).
///
/// The state of the buckets is unknown after an error: charges may or may not have been made. A
/// store that decides a request in several groups may know the answers of some; see
/// [`answers`](StoreError::answers).
///
/// # Example
///
/// ```
/// use tidegate_core::{StoreError, StoreErrorKind};
///
/// let error = StoreError::transient("no reply within 20 ms").with_kind(StoreErrorKind::Timeout);
/// assert!(error.is_transient());
/// assert_eq!(error.kind().as_str(), "timeout");
/// assert_eq!(error.to_string(), "no reply within 20 ms");
/// ```
#[derive(Debug)]
pub struct StoreError {
    /// Text for logs.
    message: String,
    /// True if a retry may succeed.
    transient: bool,
    /// Kind, as a metric label.
    kind: StoreErrorKind,
    /// Underlying error.
    source: Option<Box<dyn Error + Send + Sync>>,
    /// Answers of the asks that were decided nevertheless.
    answers: Box<[Option<PartialAnswer>]>,
}

/// The answer to one ask of a request that was not answered as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialAnswer {
    /// The store's instant at which the ask was decided.
    pub at: Timestamp,
    /// The bucket's answer, and the units it was charged, which stay charged until they are
    /// [refunded](crate::Store::refund).
    pub answer: ChargedOutcome,
}

impl PartialAnswer {
    /// Returns the receipt of the charge; `None` if nothing was charged.
    pub fn receipt(&self) -> Option<Receipt> {
        let ChargedOutcome { outcome, units } = self.answer;
        (units > 0).then(|| outcome.receipt(self.at, units))
    }
}

/// Kind of a store failure, as a metric label: few enough to count each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer in time.
    Timeout,
    /// No connection, or it was lost.
    Unreachable,
    /// Not called: the circuit breaker is open, or too many calls are in flight.
    Overloaded,
    /// It will not let us: a wrong password, a missing permission.
    Denied,
    /// It cannot at present: starting up, failing over, read-only, out of memory.
    Unable,
    /// The value under the bucket's name is damaged, or another program's.
    Corrupt,
    /// Anything else.
    #[default]
    Other,
}

impl StoreErrorKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Unreachable,
        Self::Overloaded,
        Self::Denied,
        Self::Unable,
        Self::Corrupt,
        Self::Other,
    ];

    /// Returns its name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Overloaded => "overloaded",
            Self::Denied => "denied",
            Self::Unable => "unable",
            Self::Corrupt => "corrupt",
            Self::Other => "other",
        }
    }
}

impl StoreError {
    /// Creates an error that a retry may resolve, such as a timeout.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: true,
            kind: StoreErrorKind::Other,
            source: None,
            answers: Box::default(),
        }
    }

    /// Creates the error of a store that [holds no permits](crate::Store::holds_permits), for a
    /// [concurrent](crate::Quota::concurrent) quota.
    pub fn no_permits() -> Self {
        Self::permanent(
            "this store cannot hold permits: limits with `concurrent` need buckets in memory",
        )
        .with_kind(StoreErrorKind::Unable)
    }

    /// Creates an error that an operator has to resolve, such as a rejected password.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            transient: false,
            ..Self::transient(message)
        }
    }

    /// Sets the kind. Default: [`StoreErrorKind::Other`].
    #[must_use]
    pub fn with_kind(self, kind: StoreErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the answers of the asks that were decided all the same: one for each ask, in order, `None`
    /// where the result is unknown. Their charges stay until the caller [refunds](crate::Store::refund) them.
    #[must_use]
    pub fn with_answers(self, answers: Box<[Option<PartialAnswer>]>) -> Self {
        Self { answers, ..self }
    }

    /// Returns true if the same call may succeed later without any intervention.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the answers of asks that were decided all the same, one for each ask; empty where none
    /// was.
    pub fn answers(&self) -> &[Option<PartialAnswer>] {
        &self.answers
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + Send + Sync) = self.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::{PartialAnswer, StoreError, StoreErrorKind};
    use crate::{ChargedOutcome, Outcome, Timestamp, Wait};
    use std::error::Error;

    #[test]
    fn an_error_carries_the_partial_results() {
        let answered = PartialAnswer {
            at: Timestamp::from_micros(7),
            answer: ChargedOutcome {
                outcome: Outcome {
                    remaining: 3,
                    wait: Wait::NONE,
                    overdrawn: 0,
                    reset_us: 1,
                    mark: 0,
                },
                units: 2,
            },
        };
        let error = StoreError::permanent("a group did not answer")
            .with_kind(StoreErrorKind::Timeout)
            .with_answers(Box::new([Some(answered), None]))
            .caused_by("the wire is cut");
        assert_eq!(error.answers(), [Some(answered), None]);
        assert_eq!(error.kind().as_str(), "timeout");
        assert!(!error.is_transient() && error.source().is_some());
        assert_eq!(error.to_string(), "a group did not answer");
        assert_eq!(StoreError::transient("gone").answers(), []);
    }

    #[test]
    fn error_kinds_have_distinct_names() {
        let mut words = StoreErrorKind::ALL.map(StoreErrorKind::as_str).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), StoreErrorKind::ALL.len());
    }
}
