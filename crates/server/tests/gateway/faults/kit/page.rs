//! A page of metrics.

use crate::kit::get;
use std::net::SocketAddr;

/// A page of metrics.
#[derive(Debug)]
pub(crate) struct Page(String);

impl Page {
    /// Address of the admin listener that serves the page.
    pub(crate) async fn read(admin: SocketAddr) -> Self {
        let reply = get(admin, "/metrics", &[]).await;
        assert_eq!(reply.status(), 200);
        Self(reply.text().to_owned())
    }

    /// Returns the sum of all samples of this name with all of these labels, such as
    /// `outcome="broken"`.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let samples = self.0.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let rest = series.strip_prefix(name)?;
            let is_of_this_name = rest.is_empty() || rest.starts_with('{');
            let has_all = labels.iter().all(|label| rest.contains(label));
            (is_of_this_name && has_all).then(|| value.parse::<u64>().unwrap())
        });
        samples.sum()
    }

    /// Returns the number of upstream requests with this outcome.
    pub(crate) fn outcomes(&self, outcome: &str) -> u64 {
        let label = format!("outcome=\"{outcome}\"");
        self.sum("tidegate_gateway_upstream_requests_total", &[&label])
    }

    /// Returns the number of upstream requests in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.sum("tidegate_gateway_upstream_in_flight", &[])
    }

    /// Open connections of clients.
    pub(crate) fn connections(&self) -> u64 {
        self.sum("tidegate_connections", &["listener=\"gateway\""])
    }
}
