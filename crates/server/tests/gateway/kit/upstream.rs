//! An upstream that records every byte it receives, and sends a configured response.

use super::message::{Content, Framing, Head, Messages};
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// An upstream.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<UpstreamState>,
    _tasks: Arc<Tasks>,
}

#[derive(Default)]
struct UpstreamState {
    answer: Mutex<Answer>,
    /// Complete requests.
    seen: Mutex<Vec<SeenRequest>>,
    /// Requests whose head was received.
    begun: Mutex<Vec<Head>>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) head: Head,
    pub(crate) content: Content,
}

/// The response of the upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// `None` repeats the method and the target of the request.
    bytes: Option<Vec<u8>>,
    when: ReplyMoment,
    then: AfterReply,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReplyMoment {
    /// After the whole request was received.
    #[default]
    Last,
    /// After its head was received; the body is never read.
    First,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AfterReply {
    #[default]
    GoOn,
    Close,
    /// Echoes all bytes until the end.
    Repeat,
}

impl Answer {
    /// Returns a response of these bytes.
    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            bytes: Some(bytes.as_ref().to_vec()),
            ..Self::default()
        }
    }

    /// Closes the connection after it.
    pub(crate) fn closing(mut self) -> Self {
        self.then = AfterReply::Close;
        self
    }

    /// Echoes all bytes after it.
    pub(crate) fn repeating(mut self) -> Self {
        self.then = AfterReply::Repeat;
        self
    }

    /// Sends it without waiting for the body, then closes.
    pub(crate) fn early(mut self) -> Self {
        self.when = ReplyMoment::First;
        self.closing()
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(UpstreamState::default());
        let tasks = Arc::new(Tasks::new());
        let (to_all, weak) = (Arc::clone(&shared), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else {
                    return;
                };
                let shared = Arc::clone(&to_all);
                tasks.spawn(async move {
                    // Errors of the connection concern the proxy.
                    shared.serve(stream).await.ok();
                });
            }
        });
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    /// Sets the response from now on.
    pub(crate) fn answers(&self, answer: Answer) {
        *self.shared.answer.lock() = answer;
    }

    /// Returns the complete requests since the last call.
    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        self.shared.begun.lock().clear();
        std::mem::take(&mut self.shared.seen.lock())
    }

    /// Returns the single complete request since the last call.
    pub(crate) fn saw(&self) -> SeenRequest {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen.remove(0)
    }

    /// Returns the requests that began since the last call of `seen`.
    pub(crate) fn begun(&self) -> Vec<Head> {
        self.shared.begun.lock().clone()
    }
}

impl UpstreamState {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut messages = Messages::new(stream);
        while let Some(head) = messages.head().await? {
            self.begun.lock().push(head.clone());
            let answer = self.answer.lock().clone();
            let framing = match answer.when {
                ReplyMoment::Last => head.framing_of_request(),
                ReplyMoment::First => Framing::Nothing,
            };
            let content = messages.content(framing).await?;
            let bytes = match answer.bytes {
                Some(bytes) => bytes,
                None => repeated(&head),
            };
            self.seen.lock().push(SeenRequest { head, content });
            messages.stream.write_all(&bytes).await?;
            match answer.then {
                AfterReply::GoOn => {}
                AfterReply::Close => return close(messages).await,
                AfterReply::Repeat => return repeat(messages).await,
            }
        }
        Ok(())
    }
}

/// Returns a response with the method and the target.
fn repeated(head: &Head) -> Vec<u8> {
    let body = head.line.trim_end_matches(" HTTP/1.1");
    let length = body.len();
    let body = if head.line.starts_with("HEAD ") {
        ""
    } else {
        body
    };
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Closes, and reads the remaining bytes, so that the response is not lost to a reset.
async fn close(mut messages: Messages<TcpStream>) -> io::Result<()> {
    messages.stream.shutdown().await?;
    while messages.more().await? {
        messages.ahead.clear();
    }
    Ok(())
}

async fn repeat(mut messages: Messages<TcpStream>) -> io::Result<()> {
    loop {
        let heard = std::mem::take(&mut messages.ahead);
        messages.stream.write_all(&heard).await?;
        if !messages.more().await? {
            return messages.stream.shutdown().await;
        }
    }
}
