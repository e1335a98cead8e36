//! Forged headers at `/v1/auth`. A proxy forwards any header that a client sends, so each of these
//! is sent through a trusted proxy unless stated otherwise. Every test names the attack that
//! succeeds without the defence.

mod address;
mod answer;
mod identity;
mod target;

use crate::kit::Server;
use crate::kit::proxy::Ask;

/// One request per client and hour; costs, keys and users as clients and proxies send them.
const ONCE: &str = "
client:
  trusted_proxies: [127.0.0.1, 10.0.0.0/8]
  user: { header: X-User-Id }
  cost: { header: X-Cost, max: 10 }
policies:
  - { name: ip, limits: [{ name: x, key: ip, rate: 1/h }] }
  - { name: key, limits: [{ name: x, key: api-key, rate: 1/h }] }
  - { name: user, limits: [{ name: x, key: user, rate: 1/h }] }
  - { name: tenant, limits: [{ name: x, key: 'header:x-tenant', rate: 1/h }] }
  - { name: host, limits: [{ name: x, match: [{ host: shop.test }], rate: 1/h }] }
  - { name: method, limits: [{ name: x, match: [{ method: POST }], rate: 1/h }] }
  - { name: login, limits: [{ name: x, match: [{ path: /login$ }], rate: 1/h }] }
  - { name: root, limits: [{ name: x, match: [{ path: / }], rate: 1/h }] }
  - { name: verb, limits: [{ name: x, key: [ip, method], rate: 1/h }] }
  - { name: cost, limits: [{ name: x, key: ip, rate: 100/h }] }
";

/// Sends all of them in turn; returns the statuses.
async fn statuses(server: &Server, asked: impl IntoIterator<Item = Ask>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for asked in asked {
        statuses.push(asked.at(server.http).await.status);
    }
    statuses
}
