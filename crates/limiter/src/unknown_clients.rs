//! Requests without a client address, if a limit needs one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_policy::{MetLimits, Policy, Request};
use tracing::warn;

/// Counts requests without the address that a limit needs. All of them share one bucket, which is rarely meant:
/// nothing else would show it.
#[derive(Debug, Default)]
pub(crate) struct UnknownClients(AtomicU64);

impl UnknownClients {
    /// Counts `request` if it has no address and one of its limits needs it.
    #[inline]
    pub(crate) fn note(&self, request: &Request<'_>, policy: &Policy, meeting: &MetLimits<'_>) {
        if request.ip.is_none() && policy.reads_address() {
            self.note_missing(policy, meeting);
        }
    }

    /// Counts a request without an address, if one of its limits needs it. Logs the first, the tenth, the
    /// hundredth and so on, so that clients cannot fill a log.
    #[cold]
    fn note_missing(&self, policy: &Policy, meeting: &MetLimits<'_>) {
        let Some(limit) = policy.without_address(meeting) else {
            return;
        };
        let count = self.0.fetch_add(1, Relaxed).saturating_add(1);
        if is_power_of_ten(count) {
            warn!(
                event = "client_address_missing",
                policy = policy.name,
                limit = limit.name,
                count,
                "requests have no client address; limits by address count all such clients as one"
            );
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Returns true for 1, 10, 100 and so on: the counts at which an event is logged that clients can cause.
pub fn is_power_of_ten(count: u64) -> bool {
    count
        .checked_ilog10()
        .is_some_and(|digits| 10_u64.checked_pow(digits) == Some(count))
}

#[cfg(test)]
mod tests {
    use super::is_power_of_ten;

    #[test]
    fn one_line_for_each_digit() {
        let logged: Vec<u64> = (0..=1_000_000).filter(|it| is_power_of_ten(*it)).collect();
        assert_eq!(logged, [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]);
        assert!(!is_power_of_ten(u64::MAX));
    }
}
