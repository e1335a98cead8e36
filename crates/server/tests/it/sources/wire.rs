//! A wire to a member of etcd: it notes what is asked, and loses what it is told to.

use parking_lot::Mutex;
use serde_json::Value;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_server::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long something may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(30);

/// What becomes of what is asked from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Passes,
    /// It is heard, and nothing is said.
    Hangs,
    /// The same of changes alone.
    HangsOnChanges,
    /// Changes are heard, and the connection breaks.
    BreaksOnChanges,
}

/// What was asked once, and how many bytes that was answered by.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) answered: usize,
}

impl Asked {
    pub(super) fn is_change(&self) -> bool {
        self.body.to_string().contains("request_put")
    }
}

/// The wire; it goes when it is dropped.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
    asked: watch::Receiver<Vec<Asked>>,
    _tasks: Tasks,
}

impl Wire {
    pub(super) async fn to(member: SocketAddr, manner: Manner) -> Self {
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
                    // Whoever hangs up has heard enough.
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

    pub(super) fn be(&self, manner: Manner) {
        *self.manner.lock() = manner;
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// Waits until `count` more have been asked that are as told.
    pub(super) async fn hears(&self, count: usize, wanted: impl Fn(&Asked) -> bool) {
        let mut asked = self.asked.clone();
        let already = self.asked().len();
        let enough = |all: &Vec<Asked>| all[already..].iter().filter(|it| wanted(it)).count();
        let heard = timeout(PATIENCE, asked.wait_for(|all| enough(all) >= count)).await;
        assert!(heard.is_ok(), "nobody asks: {:?}", self.asked());
    }
}

async fn pass(
    stream: TcpStream,
    member: SocketAddr,
    manner: &Mutex<Manner>,
    noted: &watch::Sender<Vec<Asked>>,
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
    let mut asked = Asked {
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        answered: 0,
    };
    let manner = *manner.lock();
    match manner {
        Manner::Hangs => pending().await,
        Manner::HangsOnChanges if asked.is_change() => pending().await,
        Manner::BreaksOnChanges if asked.is_change() => return Ok(()),
        _ => {}
    }
    let mut server = TcpStream::connect(member).await?;
    server.write_all(head.as_bytes()).await?;
    server.write_all(&body).await?;
    // A watch is answered for as long as somebody listens, so it is never noted.
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
