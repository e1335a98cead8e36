//! The gateway, upstreams that record requests, and clients that send given bytes.
//!
//! | module | contents |
//! |---|---|
//! | `message` | HTTP/1, read byte for byte |
//! | `client`, `upstream` | both ends of it |
//! | `modern` | both ends of HTTP/2 and of TLS |
//! | `gate` | Tidegate between them |
//! | `nginx`, `programs` | third-party programs |

pub(crate) mod client;
pub(crate) mod gate;
pub(crate) mod message;
pub(crate) mod modern;
pub(crate) mod nginx;
pub(crate) mod programs;
pub(crate) mod upstream;

#[path = "../../it/kit/certificates.rs"]
pub(crate) mod certificates;
#[path = "../../it/kit/running.rs"]
pub(crate) mod running;

pub(crate) use client::{Client, Reply, get, request};
pub(crate) use gate::Gate;
pub(crate) use upstream::{Answer, Upstream};

use std::time::Duration;
use tokio::time::timeout;

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for an expected event.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let happened = timeout(PATIENCE, future).await;
    happened.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}
