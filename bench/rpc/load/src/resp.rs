//! One call of the Redis protocol.

use crate::call::Message;
use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, oneshot};

/// Callers waiting for a reply, in the order of their commands.
type WaitingReplies = Rc<RefCell<VecDeque<oneshot::Sender<Bytes>>>>;

/// Calls on one connection.
pub(crate) struct Caller {
    /// Held while a command is written, so that no two are mixed and replies find their callers.
    writer: Mutex<OwnedWriteHalf>,
    waiting: WaitingReplies,
    message: Message,
}

impl Caller {
    pub(crate) async fn connect(port: u16, message: &[u8]) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let waiting = WaitingReplies::default();
        let answered = Rc::clone(&waiting);
        tokio::task::spawn_local(async move {
            read(reader, &answered).await.ok();
            // Callers that still wait, or come later, see their channel closed.
            answered.borrow_mut().clear();
        });
        Ok(Self {
            writer: Mutex::new(writer),
            waiting,
            message: Message::new(message.into()),
        })
    }

    /// Returns the reply unchanged; a server's error is an error.
    pub(crate) async fn call(&self, key: u64) -> Result<Bytes> {
        let (sender, answer) = oneshot::channel();
        {
            let mut writer = self.writer.lock().await;
            self.waiting.borrow_mut().push_back(sender);
            writer.write_all(&self.message.with(key)).await?;
        }
        let answer = answer.await.context("the connection ended")?;
        ensure!(
            answer.first() != Some(&b'-'),
            "{}",
            String::from_utf8_lossy(&answer).trim_end()
        );
        Ok(answer)
    }
}

async fn read(mut reader: OwnedReadHalf, waiting: &WaitingReplies) -> Result<()> {
    let mut came = BytesMut::with_capacity(16 << 10);
    while reader.read_buf(&mut came).await? > 0 {
        while let Some(length) = whole(&came)? {
            let answer = came.copy_to_bytes(length);
            let asked = waiting.borrow_mut().pop_front();
            asked.context("an answer to nobody")?.send(answer).ok();
        }
    }
    Ok(())
}

/// Returns the length of the first reply, if it is complete: one line, or an array of lines.
fn whole(came: &[u8]) -> Result<Option<usize>> {
    let mut ends = came.windows(2).enumerate().filter(|(_, it)| it == b"\r\n");
    let Some((first, _)) = ends.next() else {
        return Ok(None);
    };
    let more = match came[0] {
        b'*' => std::str::from_utf8(&came[1..first])?.parse()?,
        b':' | b'+' | b'-' => 0,
        other => bail!("an answer that begins with {:?}", char::from(other)),
    };
    let last = match more {
        0 => Some(first),
        more => ends.nth(more - 1).map(|(at, _)| at),
    };
    Ok(last.map(|at| at + 2))
}
