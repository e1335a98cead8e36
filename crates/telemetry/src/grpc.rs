//! Metrics of the gRPC frontend.

use super::durations::{Durations, SharedMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_http::unix_seconds;
use tracing::warn;

/// The gRPC frontend's own metrics, in addition to those of all frontends.
#[derive(Debug, Default)]
pub struct GrpcMetrics {
    /// Time from a call's headers to its response.
    pub durations: Arc<Durations>,
    unknown_domains: Counter,
    /// The minute, since the epoch, in which an unknown domain was last logged.
    told_in: AtomicU64,
}

impl GrpcMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "rls_duration",
            "Time from the request headers to the response, for gRPC calls",
            Unit::Seconds,
            SharedMetric(Arc::clone(&self.durations)),
        );
        registry.register(
            "rls_unknown_domain",
            "Rate limit service calls with a domain that no policy has; they pass",
            self.unknown_domains.clone(),
        );
    }

    /// Counts a call whose domain no policy has. The call passes, as with Envoy's own service; so it is
    /// logged, at most once a minute, as `quoted` returns it.
    pub fn count_unknown(&self, quoted: impl FnOnce() -> String) {
        self.unknown_domains.inc();
        let minute = unix_seconds() / 60;
        if self.told_in.swap(minute, Relaxed) != minute {
            warn!(
                event = "rls_domain_unknown",
                domain = quoted(),
                "no policy has this domain; its calls pass. Set `domain` in a policy"
            );
        }
    }
}
