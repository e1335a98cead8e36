//! The end of a connection whose client is still sending.
//!
//! A socket that is closed with unread data resets the connection at once, and the last response may be lost:
//! a client that is still sending notices the reset first. To a proxy that is no response at all, and it may
//! let a request pass that was refused as too large. So further data is read and discarded, for a while.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The maximum time and the maximum bytes for which further data is read.
const TIME_MAX: Duration = Duration::from_secs(1);
const BYTES_MAX: usize = 256 << 10;

/// The progress of closing a connection.
#[derive(Debug, Default)]
pub(super) struct Linger {
    /// Set once the server's side is shut; runs until the wait ends.
    patience: Option<Pin<Box<Sleep>>>,
    thrown_away: usize,
}

impl Linger {
    /// Shuts the server's side of `stream`, and discards further data until the client has shut its side.
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
                // Broken or shut: either way nothing more comes.
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
