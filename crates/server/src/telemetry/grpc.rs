//! What the gRPC door counts.

use super::durations::Durations;
use super::metrics::SharedMetric;
use crate::wire::fault::quote;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_http::unix_seconds;
use tracing::warn;

/// What the gRPC door counts, beside what all doors do.
#[derive(Debug, Default)]
pub(crate) struct GrpcMetrics {
    /// From a call's head to its answer.
    pub(crate) durations: Arc<Durations>,
    unknown_domains: Counter,
    /// The minute in which the log last heard of an unknown domain, since the epoch.
    told_in: AtomicU64,
}

impl GrpcMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "rls_duration",
            "From a call's head to its answer, at the gRPC door",
            Unit::Seconds,
            SharedMetric(Arc::clone(&self.durations)),
        );
        registry.register(
            "unknown_domain",
            "Calls of Envoy's rate limit service whose domain no policy has; they pass",
            self.unknown_domains.clone(),
        );
    }

    /// Counts a call whose domain no policy has. It passes, as with Envoy's own service; so the log has
    /// to hear of it, but once a minute is enough.
    pub(crate) fn count_unknown(&self, domain: &str) {
        self.unknown_domains.inc();
        let minute = unix_seconds() / 60;
        if self.told_in.swap(minute, Relaxed) != minute {
            warn!(
                domain = quote(domain),
                "no policy has this domain, so that its calls pass; give one `domain: …`, \
                 or the name"
            );
        }
    }
}
