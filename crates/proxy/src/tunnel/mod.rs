//! A tunnel of bytes between a client and an upstream, both ways, regardless of their meaning.
//!
//! | module | what it is |
//! |---|---|
//! | `pipe` | one direction, with a bounded buffer |
//! | `ending` | the detection of the end |

mod ending;
mod pipe;
#[cfg(test)]
mod tests;

pub(crate) use ending::Ending;
pub(crate) use pipe::{Pipe, STEPS};

use std::future::poll_fn;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A side of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The upstream.
    Upstream,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Upstream,
            Self::Upstream => Self::Client,
        }
    }
}

/// The result of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelReport {
    /// The bytes that the upstream took.
    pub(crate) to_upstream: u64,
    /// The bytes that the client took.
    pub(crate) to_client: u64,
    pub(crate) why: TunnelEnd,
}

/// The reason why a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// Both sides had finished.
    Closed,
    /// Nothing moved either way for too long.
    Idle,
    /// The connection to one side broke.
    Broke { side: Side, kind: ErrorKind },
}

/// Carries bytes between `client` and `upstream` until both have finished, one of them is gone, or nothing
/// has moved for `idle`, or up to a fifth longer.
///
/// When one side has finished, its peer's write half is shut down, and the peer may continue to send.
/// Dropping the future closes both connections immediately.
pub async fn tunnel<C, U>(mut client: C, mut upstream: U, idle: Duration) -> TunnelReport
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let (mut up, mut down) = (Pipe::default(), Pipe::default());
    let mut ending = Ending::new(idle);
    let why = poll_fn(|context| {
        up.poll_copy(context, &mut client, &mut upstream);
        down.poll_copy(context, &mut upstream, &mut client);
        ending.poll(context, &up, &down)
    })
    .await;
    TunnelReport {
        to_upstream: up.written(),
        to_client: down.written(),
        why,
    }
}
