//! The end of a connection whose client has not finished speaking.
//!
//! A socket that is closed while something is unread tells the client so at once, by a reset, and the
//! last answer may be lost: a client that is still sending notices the reset first. To a proxy that is
//! no answer at all, and it may let pass what was refused as too large. So what still comes is read
//! and thrown away, for a while.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may go on sending, and how much of it is read.
const TIME_MAX: Duration = Duration::from_secs(1);
const BYTES_MAX: usize = 256 << 10;

/// How far the closing of a connection has come.
#[derive(Debug, Default)]
pub(super) struct Linger {
    /// Set once our side is shut; runs until nobody waits any longer.
    patience: Option<Pin<Box<Sleep>>>,
    thrown_away: usize,
}

impl Linger {
    /// Shuts our side of `stream`, and throws away what comes until the client has shut its own.
    pub(super) fn poll_shutdown<I: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut I,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let patience = match &mut self.patience {
            Some(patience) => patience,
            None => {
                std::task::ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
                self.patience.insert(Box::pin(sleep(TIME_MAX)))
            }
        };
        let mut space = [0; 4 << 10];
        while self.thrown_away < BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Pending => return patience.as_mut().poll(context).map(Ok),
                // Broken or shut: either way nothing comes any more.
                Poll::Ready(Err(_)) => break,
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => break,
                Poll::Ready(Ok(())) => {
                    self.thrown_away = self.thrown_away.saturating_add(buffer.filled().len());
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}
