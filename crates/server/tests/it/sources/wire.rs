//! A proxy in front of a member of etcd: it records calls, and drops some on request.

use parking_lot::Mutex;
use serde_json::Value;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_secs(30);

/// The handling of calls from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireMode {
    Passes,
    /// Calls arrive, and get no response.
    Hangs,
    /// The same for changes only.
    HangsOnChanges,
    /// Changes arrive, and the connection breaks.
    BreaksOnChanges,
}

/// A call, and the size of its response.
#[derive(Clone, Debug)]
pub(super) struct WireRequest {
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) answered: usize,
}

impl WireRequest {
    pub(super) fn is_change(&self) -> bool {
        self.body.to_string().contains("request_put")
    }
}

/// The proxy, which ends when this is dropped.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    manner: Arc<Mutex<WireMode>>,
    asked: watch::Receiver<Vec<WireRequest>>,
    _tasks: Tasks,
}

impl Wire {
    pub(super) async fn to(member: SocketAddr, manner: WireMode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let manner = Arc::new(Mutex::new(manner));
        let (noted, asked) = watch::channel(Vec::new());
        let (noted, now) = (Arc::new(noted), Arc::clone(&manner));
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let sessions = Tasks::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (noted, now) = (Arc::clone(&noted), Arc::clone(&now));
                sessions.spawn(async move {
                    // Either side may close at any time.
                    pass(stream, member, &now, &noted).await.ok();
                });
            }
        });
        Self {
            address,
            manner,
            asked,
            _tasks: tasks,
        }
    }

    pub(super) fn be(&self, manner: WireMode) {
        *self.manner.lock() = manner;
    }

    /// Returns the calls so far.
    pub(super) fn asked(&self) -> Vec<WireRequest> {
        self.asked.borrow().clone()
    }

    /// Waits for `count` further calls that match.
    pub(super) async fn hears(&self, count: usize, wanted: impl Fn(&WireRequest) -> bool) {
        let mut asked = self.asked.clone();
        let already = self.asked().len();
        let enough = |all: &Vec<WireRequest>| all[already..].iter().filter(|it| wanted(it)).count();
        let heard = timeout(PATIENCE, asked.wait_for(|all| enough(all) >= count)).await;
        assert!(heard.is_ok(), "no request: {:?}", self.asked());
    }
}

async fn pass(
    stream: TcpStream,
    member: SocketAddr,
    manner: &Mutex<WireMode>,
    noted: &watch::Sender<Vec<WireRequest>>,
) -> std::io::Result<()> {
    let mut client = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let from = head.len();
        client.read_line(&mut head).await?;
        let line = head[from..].trim_end().to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("content-length: ") {
            length = told.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).await?;
    let mut asked = WireRequest {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        answered: 0,
    };
    let manner = *manner.lock();
    match manner {
        WireMode::Hangs => pending().await,
        WireMode::HangsOnChanges if asked.is_change() => pending().await,
        WireMode::BreaksOnChanges if asked.is_change() => return Ok(()),
        _ => {}
    }
    let mut server = TcpStream::connect(member).await?;
    server.write_all(head.as_bytes()).await?;
    server.write_all(&body).await?;
    // A watch lasts as long as its client, so it is never recorded.
    let mut piece = vec![0; 64 << 10];
    loop {
        let length = server.read(&mut piece).await?;
        if length == 0 {
            break;
        }
        client.write_all(&piece[..length]).await?;
        asked.answered += length;
    }
    noted.send_modify(|all| all.push(asked));
    Ok(())
}
