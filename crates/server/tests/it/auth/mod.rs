//! `/v1/auth`: forward-auth for proxies.

mod answers;
mod deny;
mod questions;
mod trust;

use crate::admin::samples;
use crate::kit::{Server, get};
use std::collections::BTreeMap;

/// Two policies, of which the second matches paths, methods, hosts and headers.
const TWO: &str = "
client: { trusted_proxies: [127.0.0.1] }
policies:
  - name: api
    limits: [{ name: per-client, key: ip, rate: 1/min burst 2 }]
  - name: routes
    limits:
      - name: writes
        match: [{ path: /orders, method: POST, host: shop.test, headers: { X-Tier: free } }]
        rate: 1/min
";

async fn metrics(server: &Server) -> BTreeMap<String, f64> {
    samples(&get(server.admin, "/metrics").await.body)
}
