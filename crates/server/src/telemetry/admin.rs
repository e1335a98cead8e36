//! What is asked of the admin API.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Calls of the admin API. Their labels are names of routes and statuses, and nothing that callers send.
#[derive(Debug, Default)]
pub(crate) struct AdminMetrics {
    requests: Family<[(&'static str, String); 2], Counter>,
    unwritten: Counter,
}

impl AdminMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "admin_requests",
            "Requests at the admin API, by route and status",
            self.requests.clone(),
        );
        registry.register(
            "admin_audit_failures",
            "Changes that could not be written to the file or the stream of the audit",
            self.unwritten.clone(),
        );
    }

    /// Counts a request that came to `route`, or to none.
    pub(crate) fn count(&self, route: Option<&'static str>, code: u16) {
        let route = route.unwrap_or("none").to_owned();
        let labels = [("route", route), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a change that only the log has heard of.
    pub(crate) fn count_unwritten(&self) {
        self.unwritten.inc();
    }
}
