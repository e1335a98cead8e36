//! A relay to a server that loses a write, or the response to it.

use mongodb::options::ClientOptions;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The next message to lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostMessage {
    /// A write, before the server has received it.
    Write,
    /// The response to a write that was made.
    Answer,
    /// That response, and everything after it.
    AnswerAndAllAfter,
    /// Everything.
    All,
}

/// The relay. It stops when it is dropped.
pub(super) struct Relay {
    address: SocketAddr,
    server: String,
    next: Arc<Mutex<Option<LostMessage>>>,
    _tasks: JoinSet<()>,
}

impl Relay {
    /// Starts a relay to the first server that a URL names.
    pub(super) async fn to(url: &str) -> Self {
        let options = ClientOptions::parse(url).await.expect("a URL");
        let server = options.hosts.first().expect("a server").to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let next = Arc::new(Mutex::new(None));
        let mut tasks = JoinSet::new();
        let (to, loses) = (server.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut wires = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if *loses.lock() == Some(LostMessage::All) {
                    continue;
                }
                let server = TcpStream::connect(&to).await.expect("a server");
                wires.spawn(relay(client, server, Arc::clone(&loses)));
            }
        });
        Self {
            address,
            server,
            next,
            _tasks: tasks,
        }
    }

    /// Returns the URL through this relay. The driver must not retry automatically: then nothing would be
    /// lost.
    pub(super) fn url(&self, url: &str) -> String {
        let url = url.replacen(&self.server, &self.address.to_string(), 1);
        let joint = match url {
            _ if url.contains('?') => "&",
            _ if url.trim_start_matches("mongodb://").contains('/') => "?",
            _ => "/?",
        };
        format!("{url}{joint}directConnection=true&retryWrites=false")
    }

    pub(super) fn lose(&self, what: LostMessage) {
        *self.next.lock() = Some(what);
    }

    /// Returns true if the message was lost.
    pub(super) fn has_lost(&self) -> bool {
        self.next.lock().is_none()
    }
}

async fn relay(client: TcpStream, server: TcpStream, next: Arc<Mutex<Option<LostMessage>>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let is_lost = AtomicBool::new(false);
    let asking = async {
        while let Ok(message) = message(&mut from_client).await {
            match due(&message, &mut next.lock()) {
                Some(LostMessage::Write | LostMessage::All) => return,
                Some(LostMessage::Answer | LostMessage::AnswerAndAllAfter) => {
                    is_lost.store(true, SeqCst);
                }
                None => {}
            }
            if to_server.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    let answering = async {
        while let Ok(message) = message(&mut from_server).await {
            if is_lost.load(SeqCst) || to_client.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    // If either direction ends, both are closed.
    tokio::select! {
        () = asking => {}
        () = answering => {}
    }
}

/// Returns what to lose of this message, and updates what to lose of the next.
fn due(message: &[u8], next: &mut Option<LostMessage>) -> Option<LostMessage> {
    if *next == Some(LostMessage::All) || !is_write(message) {
        return next.filter(|it| *it == LostMessage::All);
    }
    let due = next.take();
    *next = due
        .filter(|it| *it == LostMessage::AnswerAndAllAfter)
        .map(|_| LostMessage::All);
    due
}

/// Reads one message, with its length before it.
async fn message(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = from.read_i32_le().await?;
    let mut message = length.to_le_bytes().to_vec();
    message.resize(usize::try_from(length).expect("a length"), 0);
    from.read_exact(&mut message[4..]).await?;
    Ok(message)
}

/// Returns true if a message is a write. That is the first word of its first document, after its header,
/// its flags, the kind of section and a length.
fn is_write(message: &[u8]) -> bool {
    let command = message.get(16 + 4 + 1 + 4..).unwrap_or_default();
    command.starts_with(b"\x02insert\0") || command.starts_with(b"\x02update\0")
}
