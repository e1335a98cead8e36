//! Servers on free ports, a client that sends given bytes, programs.

pub(crate) mod client;
pub(crate) mod programs;
#[path = "../../it/kit/running.rs"]
pub(crate) mod running;
pub(crate) mod server;

pub(crate) use client::Client;
pub(crate) use server::Server;

use std::time::Duration;
use tokio::time::timeout;

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for an expected event.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let happened = timeout(PATIENCE, future).await;
    happened.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}

/// Listeners on free ports, and two policies.
pub(crate) const CONFIG: &str = "
listen: { http: '127.0.0.1:0', resp: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, missing: skip, rate: 1/min burst 2 }
      - { name: per-user, key: user, missing: skip, rate: 5/min }
      - { name: per-team, match: [{ path: '/teams/*' }], key: 'attr:team', missing: refuse, rate: 2/min }
  - name: other
    limits:
      - { name: all, rate: 3/min }
";

/// Returns an inline command, of words separated by blanks.
pub(crate) fn line(words: &str) -> Vec<u8> {
    bulk(&words.split(' ').collect::<Vec<_>>())
}

/// Returns the same as an array of bulk strings.
pub(crate) fn bulk(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}
