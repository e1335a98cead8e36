//! Converts failures of the client into errors of a store.

use tidegate_core::{StoreError, StoreErrorKind};
use tidegate_redis_client::{ClientFailure, FailureReason};

/// Returns the error of a store for a failure of the client.
pub fn store_error(failure: impl Into<ClientFailure>) -> StoreError {
    let failure = failure.into();
    let error = if failure.is_transient {
        StoreError::transient(failure.message)
    } else {
        StoreError::permanent(failure.message)
    };
    error.with_kind(match failure.reason {
        FailureReason::Timeout => StoreErrorKind::Timeout,
        FailureReason::Unreachable => StoreErrorKind::Unreachable,
        FailureReason::Overloaded => StoreErrorKind::Overloaded,
        FailureReason::Denied => StoreErrorKind::Denied,
        FailureReason::Unable => StoreErrorKind::Unable,
        FailureReason::Other => StoreErrorKind::Other,
    })
}
