//! An upstream that writes down every byte that it is sent, and answers as it is told.

use super::message::{Content, Framing, Head, Messages};
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_server::tasks::Tasks;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// An upstream.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: Arc<Tasks>,
}

#[derive(Default)]
struct Shared {
    answer: Mutex<Answer>,
    /// Requests that came to their end.
    seen: Mutex<Vec<Seen>>,
    /// Those that began.
    begun: Mutex<Vec<Head>>,
}

/// A request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: Head,
    pub(crate) content: Content,
}

/// How requests are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// `None` for the method and the target of the request, repeated.
    bytes: Option<Vec<u8>>,
    when: When,
    then: Then,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum When {
    /// Once the whole request is there.
    #[default]
    Last,
    /// Once its head is there, and the body is never read.
    First,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Then {
    #[default]
    GoOn,
    Close,
    /// What comes is said back, until it ends.
    Repeat,
}

impl Answer {
    /// These bytes, as they are.
    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            bytes: Some(bytes.as_ref().to_vec()),
            ..Self::default()
        }
    }

    /// After which the connection is closed.
    pub(crate) fn closing(mut self) -> Self {
        self.then = Then::Close;
        self
    }

    /// After which the connection says back whatever comes.
    pub(crate) fn repeating(mut self) -> Self {
        self.then = Then::Repeat;
        self
    }

    /// Without waiting for the body; then it is closed.
    pub(crate) fn early(mut self) -> Self {
        self.when = When::First;
        self.closing()
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let tasks = Arc::new(Tasks::new());
        let (to_all, weak) = (Arc::clone(&shared), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else {
                    return;
                };
                let shared = Arc::clone(&to_all);
                tasks.spawn(async move {
                    // A connection that breaks is the proxy's affair.
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

    /// From now on it answers so.
    pub(crate) fn answers(&self, answer: Answer) {
        *self.shared.answer.lock() = answer;
    }

    /// The requests that it has seen whole since the last time.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.begun.lock().clear();
        std::mem::take(&mut self.shared.seen.lock())
    }

    /// The one request that it has seen since the last time.
    pub(crate) fn saw(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen.remove(0)
    }

    /// The requests that began since the last time that anybody asked for those seen.
    pub(crate) fn begun(&self) -> Vec<Head> {
        self.shared.begun.lock().clone()
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut messages = Messages::new(stream);
        while let Some(head) = messages.head().await? {
            self.begun.lock().push(head.clone());
            let answer = self.answer.lock().clone();
            let framing = match answer.when {
                When::Last => head.framing_of_request(),
                When::First => Framing::Nothing,
            };
            let content = messages.content(framing).await?;
            let bytes = match answer.bytes {
                Some(bytes) => bytes,
                None => repeated(&head),
            };
            self.seen.lock().push(Seen { head, content });
            messages.stream.write_all(&bytes).await?;
            match answer.then {
                Then::GoOn => {}
                Then::Close => return close(messages).await,
                Then::Repeat => return repeat(messages).await,
            }
        }
        Ok(())
    }
}

/// The method and the target.
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

/// Closes, and reads what still comes, so that what was said is not lost with it.
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
