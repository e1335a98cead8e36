//! Metrics of the gRPC frontend.

use super::durations::Durations;
use super::metrics::SharedMetric;
use crate::wire::fault::quote;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_http::unix_seconds;
use tracing::warn;

/// The gRPC frontend's own metrics, in addition to those of all frontends.
#[derive(Debug, Default)]
pub(crate) struct GrpcMetrics {
    /// Time from a call's headers to its response.
    pub(crate) durations: Arc<Durations>,
    unknown_domains: Counter,
    /// The minute, since the epoch, in which an unknown domain was last logged.
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

    /// Counts a call whose domain no policy has. The call passes, as with Envoy's own service; so it is
    /// logged, at most once a minute.
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
