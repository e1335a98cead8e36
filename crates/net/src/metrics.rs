//! The metrics of one listener.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The label of a listener.
pub type ListenerLabel = [(&'static str, &'static str); 1];

/// The labels of a request that was answered with a problem: the listener, and the status.
pub type BadLabels = [(&'static str, String); 2];

/// Counters of one listener's connections. Looked up once, then only added to.
#[derive(Clone, Debug, Default)]
pub struct ListenerMetrics {
    /// Open connections.
    pub connections: Gauge,
    /// Connections accepted so far.
    pub accepted: Counter,
    /// The maximum number of connections.
    pub connections_max: Gauge,
    /// Connections refused because their address had too many, none of them idle.
    pub refused: Counter,
    /// Connections closed because the listener was full.
    pub full: Counter,
    /// The same for an address that had too many.
    pub of_address: Counter,
    /// The same for too many control frames.
    pub flood: Counter,
    /// Connections that ended before any request: a failed TLS handshake.
    pub broken: Counter,
    /// Requests that were rejected unread, by reason.
    pub rejected: Family<[(&'static str, &'static str); 1], Counter>,
    /// The name of the listener.
    pub listener: &'static str,
    /// Requests that were answered with a problem.
    pub bad_requests: Family<BadLabels, Counter>,
    /// The expiry of the certificate.
    pub expiry: Family<ListenerLabel, Gauge>,
}

impl ListenerMetrics {
    /// Sets the time at which the listener's certificate expires, in seconds since 1970. If it is unknown,
    /// removes the series, so that the date of the previous certificate is not shown.
    pub fn certificate_expires(&self, at: Option<i64>) {
        let label = [("listener", self.listener)];
        match at {
            Some(at) => {
                self.expiry.get_or_create(&label).set(at);
            }
            None => {
                self.expiry.remove(&label);
            }
        }
    }

    /// Counts idle connections that were closed because the listener was full.
    pub(crate) fn closed_when_full(&self, count: usize) {
        add(&self.full, count);
    }

    /// Counts idle connections that were closed because their address had too many.
    pub(crate) fn closed_of_address(&self, count: usize) {
        add(&self.of_address, count);
    }

    /// Counts a request that was answered with a problem. There are few statuses, and this is not a hot path.
    pub fn count_bad(&self, status: u16) {
        let labels = [
            ("listener", self.listener.to_owned()),
            ("status", status.to_string()),
        ];
        self.bad_requests.get_or_create(&labels).inc();
    }
}

fn add(counter: &Counter, count: usize) {
    counter.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
}
