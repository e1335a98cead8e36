//! The page of metrics.

use super::client::get;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Series and their values.
pub(crate) type Samples = BTreeMap<String, f64>;

/// Returns the samples of a page. Other tests check that it is well formed.
pub(crate) async fn page(admin: SocketAddr) -> Samples {
    let reply = get(admin, "/metrics").await;
    assert_eq!(reply.status, 200);
    let lines = reply.body.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    });
    samples.collect()
}
