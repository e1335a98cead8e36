//! The gateway, upstreams that write down what they see, clients that send what they are told to.
//!
//! | module | what it is |
//! |---|---|
//! | `message` | HTTP/1, read byte for byte |
//! | `client`, `upstream` | both ends of it |
//! | `modern` | both ends of HTTP/2 and of TLS |
//! | `gate` | Tidegate between them |
//! | `nginx`, `programs` | what others wrote |

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

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that is to happen.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let happened = timeout(PATIENCE, future).await;
    happened.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}
