//! The outcome of the reads of one item, and the time of its next read.

use super::backoff::{IN_ALL, delay};
use std::time::Duration;
use tokio::time::Instant;

/// The outcome of the reads of one item so far.
#[derive(Debug, Default)]
pub(crate) struct RefreshHealth {
    /// The time when it was last read, or found unchanged.
    pub(crate) read_at: Option<Instant>,
    /// Reads that succeeded.
    pub(crate) reads: u64,
    pub(crate) failing_since: Option<Instant>,
    /// Failures in a row.
    failed: u32,
    pub(crate) failures: u64,
    /// The reason of the last failure, until a read succeeds.
    pub(crate) error: Option<String>,
    retry_at: Option<Instant>,
}

/// The reason why an item could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefreshError {
    /// The item is unusable: a file is missing, a document is invalid, a key in Redis is not a set. It can be
    /// corrected at any moment.
    Invalid(String),
    /// The source cannot be reached, or does not answer.
    Outage(String),
}

/// The time at which a failed read is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retry {
    /// After this long.
    After(Duration),
    /// Soon at first, then after pauses that double up to `most`; after some minutes every `refresh`.
    Backoff { most: Duration, refresh: Duration },
}

impl RefreshHealth {
    /// Health that begins with a read of an earlier item.
    pub(crate) fn read_before(read_at: Option<Instant>, failures: u64) -> Self {
        Self {
            read_at,
            failures,
            ..Self::default()
        }
    }

    /// Notes a read that succeeded. Returns true if the one before it did not.
    pub(crate) fn succeeded(&mut self) -> bool {
        let has_failed = self.failed > 0;
        *self = Self {
            reads: self.reads.saturating_add(1),
            ..Self::read_before(Some(Instant::now()), self.failures)
        };
        has_failed
    }

    /// Notes a failure. Returns the reason if it is to be logged: the first in a row is, and an invalid item
    /// whenever its reason changes. The reason of an outage may change with every attempt.
    pub(crate) fn failed(&mut self, why: RefreshError, retry: Retry) -> Option<&str> {
        let now = Instant::now();
        let since = *self.failing_since.get_or_insert(now);
        let pause = match retry {
            Retry::After(pause) => pause,
            Retry::Backoff { refresh, .. } if now.duration_since(since) >= IN_ALL => refresh,
            Retry::Backoff { most, .. } => delay(self.failed).min(most),
        };
        let (error, is_invalid) = match why {
            RefreshError::Invalid(error) => (error, true),
            RefreshError::Outage(error) => (error, false),
        };
        let is_news = self.failed == 0 || (is_invalid && self.error.as_ref() != Some(&error));
        self.failures = self.failures.saturating_add(1);
        self.failed = self.failed.saturating_add(1);
        self.retry_at = Some(now + pause);
        let error = self.error.insert(error);
        is_news.then_some(error)
    }

    /// Returns the time of the next read, if it is read every `refresh` while reads succeed.
    pub(crate) fn due(&self, refresh: Duration) -> Instant {
        let due = self.read_at.map(|at| at + refresh);
        self.retry_at.or(due).unwrap_or_else(Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_logged_and_each_other_reason_of_an_invalid_item() {
        let retry = Retry::After(Duration::from_secs(3_600));
        let mut health = RefreshHealth::default();
        let mut is_logged = |why: fn(String) -> RefreshError, reason: &str| {
            health.failed(why(reason.to_owned()), retry).is_some()
        };
        assert!(is_logged(RefreshError::Outage, "a"));
        assert!(!is_logged(RefreshError::Outage, "b"));
        assert!(is_logged(RefreshError::Invalid, "c"));
        assert!(!is_logged(RefreshError::Invalid, "c"));
        assert!(is_logged(RefreshError::Invalid, "d"));
        assert!(health.succeeded() && !health.succeeded());
        assert_eq!((health.reads, health.failures), (2, 5));
        assert!(
            health
                .failed(RefreshError::Outage("b".to_owned()), retry)
                .is_some()
        );
    }
}
