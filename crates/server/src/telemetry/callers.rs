//! Counters of untrusted callers.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::net::IpAddr;
use tracing::warn;

/// Counters of callers and tokens that were not trusted.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    untrusted: Counter,
    tokens_refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Callers {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "untrusted_callers",
            "Questions at /v1/auth from an address that is no trusted proxy",
            self.untrusted.clone(),
        );
        registry.register(
            "tokens_refused",
            "Bearer tokens that were not believed, so that their claims are missing",
            self.tokens_refused.clone(),
        );
    }

    /// Counts a check request from `peer`, which is not a trusted proxy. The log records the first, the
    /// tenth, the hundredth and so on: enough to find a forgotten proxy, too little to fill a disk.
    pub(crate) fn count_untrusted(&self, peer: Option<IpAddr>) {
        let count = self.untrusted.inc().saturating_add(1);
        if is_power_of_ten(count) {
            warn!(
                peer = peer.map(tracing::field::display),
                count,
                "refused a question at /v1/auth: its sender is no trusted proxy; \
                 if it is one of yours, add it to client.trusted_proxies"
            );
        }
    }

    /// Counts a rejected token by reason, which is one of a few phrases.
    pub(crate) fn count_token(&self, why: &'static str) {
        self.tokens_refused.get_or_create(&[("reason", why)]).inc();
    }
}

fn is_power_of_ten(count: u64) -> bool {
    count
        .checked_ilog10()
        .and_then(|digits| 10_u64.checked_pow(digits))
        == Some(count)
}

#[cfg(test)]
mod tests {
    use super::is_power_of_ten;

    #[test]
    fn the_log_hears_of_ever_fewer() {
        let heard: Vec<u64> = (0..=1_001)
            .filter(|count| is_power_of_ten(*count))
            .collect();
        assert_eq!(heard, [1, 10, 100, 1_000]);
        assert!(is_power_of_ten(10_000_000_000_000_000_000) && !is_power_of_ten(u64::MAX));
    }
}
