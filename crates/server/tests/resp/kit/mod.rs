//! Servers on ports that the system chooses, a client that sends what it is told, programs.

pub(crate) mod client;
pub(crate) mod programs;
#[path = "../../it/kit/running.rs"]
pub(crate) mod running;
pub(crate) mod server;

pub(crate) use client::Client;
pub(crate) use server::Server;

use std::time::Duration;
use tokio::time::timeout;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for something that is to happen.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let happened = timeout(PATIENCE, future).await;
    happened.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}

/// Doors on ports that the system chooses, and two policies.
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

/// A command as clients send it, of words between blanks.
pub(crate) fn line(words: &str) -> Vec<u8> {
    bulk(&words.split(' ').collect::<Vec<_>>())
}

/// The same, of words.
pub(crate) fn bulk(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}
