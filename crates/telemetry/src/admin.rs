//! Metrics of the admin API.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counters of admin API calls. Labels hold route names and statuses, never anything that callers send.
#[derive(Debug, Default)]
pub struct AdminMetrics {
    requests: Family<[(&'static str, String); 2], Counter>,
    unwritten: Counter,
}

impl AdminMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "admin_requests",
            "Admin API requests by route and status",
            self.requests.clone(),
        );
        registry.register(
            "admin_audit_failures",
            "Changes not recorded in the file or stream of the audit log",
            self.unwritten.clone(),
        );
    }

    /// Counts a request to `route`, or to no route.
    pub fn count(&self, route: Option<&'static str>, code: u16) {
        let route = route.unwrap_or("none").to_owned();
        let labels = [("route", route), ("code", code.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a change that could not be written to the audit file or stream.
    pub fn count_unwritten(&self) {
        self.unwritten.inc();
    }
}
