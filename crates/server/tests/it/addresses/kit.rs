//! Configurations and helpers for counting.

use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_testkit::redis::Server;
use tokio::time::Instant;

/// The time after which an event counts as missing, as in the kit for Redis.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a config with listeners, periods of one second, and a limit that is never reached;
/// `more` adds fields of `addresses`.
pub(super) fn config(url: &str, more: &str) -> String {
    format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{url}', timeout: 5s, on_failure: allow }}
guards: [{{ name: blacklist, deny: ip, redis: {{ set: BlacklistIPsSet }}, refresh: 100ms }}]
addresses: {{ period: 1s, {more} }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
"
    )
}

/// Returns all counts of a map.
pub(super) fn map(server: &Server, name: &str) -> BTreeMap<String, u64> {
    let words = server.command(&["HGETALL", name]).texts();
    let pairs = words.chunks_exact(2);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].parse().unwrap()))
        .collect()
}

pub(super) fn sum(server: &Server, name: &str) -> u64 {
    map(server, name).values().sum()
}

/// Returns a check request of `address`.
pub(super) fn by(address: &str) -> String {
    format!("{{\"ip\": \"{address}\"}}")
}

/// Polls until there is a result.
pub(super) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never happened: {what}");
    }
}
