//! A bound on wrong tokens per address, by Tidegate's own limiter.

use std::net::IpAddr;
use tidegate::{KeyPart, LimitSpec, Limiter, MemoryStore, Request};
use tidegate_http::answer::retry_after_seconds;

/// Ten wrong tokens at once from one address, and one more each second.
const WRONG: &str = "1/s burst 10";

/// The number of addresses counted separately; further ones share a bucket.
const ADDRESSES_MAX: u64 = 4_096;

/// Counts wrong tokens.
///
/// A right token is never refused because of earlier wrong ones: otherwise a client at the same address,
/// or behind the same proxy, could lock out every administrator. Nor is that needed: 256 bits cannot be
/// guessed. The bound only limits what untrusted clients cost.
#[derive(Debug)]
pub(super) struct Failures(Option<Limiter<MemoryStore>>);

impl Failures {
    pub(super) fn new() -> Self {
        let limit = LimitSpec::new("wrong-tokens").key(KeyPart::Ip).band(WRONG);
        let limiter = Limiter::builder().limit(limit).max_keys(ADDRESSES_MAX);
        Self(limiter.build().ok())
    }

    /// Counts a wrong token from `peer`. Returns the seconds to wait, rounded up, if there were too many.
    pub(super) fn note(&self, peer: IpAddr) -> Option<u64> {
        let mut request = Request::new();
        request.ip = Some(peer);
        let decision = self.0.as_ref()?.check_now(&request).ok()?;
        if decision.is_allowed() {
            return None;
        }
        Some(retry_after_seconds(&decision).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::Failures;

    #[test]
    fn only_a_caller_with_too_many_wrong_tokens_has_to_wait() {
        let failures = Failures::new();
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let waits: Vec<_> = (0..20).filter_map(|_| failures.note(one)).collect();
        assert!((1..=10).contains(&waits.len()), "{waits:?}");
        // The next token is allowed within a second: an exact wait of one second was once reported as
        // two.
        assert!(waits.iter().all(|wait_s| *wait_s == 1), "{waits:?}");
        assert!(failures.note(other).is_none());
    }
}
