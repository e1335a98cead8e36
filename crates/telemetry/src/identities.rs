//! Counters of untrusted callers.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::net::IpAddr;
use tidegate::is_power_of_ten;
use tracing::warn;

/// Counters of callers and tokens that were not trusted.
#[derive(Debug, Default)]
pub struct Callers {
    untrusted: Counter,
    tokens_refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Callers {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "auth_untrusted_requests",
            "Requests to /v1/auth from an address that is not a trusted proxy",
            self.untrusted.clone(),
        );
        registry.register(
            "tokens_rejected",
            "Bearer tokens rejected, by reason; their claims are not used",
            self.tokens_refused.clone(),
        );
    }

    /// Counts a check request from `peer`, which is not a trusted proxy. The log records the first, the
    /// tenth, the hundredth and so on: enough to find a forgotten proxy, too little to fill a disk.
    pub fn count_untrusted(&self, peer: Option<IpAddr>) {
        let count = self.untrusted.inc().saturating_add(1);
        if is_power_of_ten(count) {
            warn!(
                event = "auth_peer_untrusted",
                peer = peer.map(tracing::field::display),
                count,
                "/v1/auth: request from an untrusted proxy refused; if it is yours, add it to client.trusted_proxies"
            );
        }
    }

    /// Counts a rejected token by reason, which is one of a few phrases.
    pub fn count_token(&self, why: &'static str) {
        self.tokens_refused.get_or_create(&[("reason", why)]).inc();
    }
}
