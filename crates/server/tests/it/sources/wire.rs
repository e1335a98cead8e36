//! A wire to a member of etcd: it notes what is asked, and loses what it is told to.

use parking_lot::Mutex;
use serde_json::Value;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_server::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

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

/// What was asked once.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) body: Value,
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
    let asked = Asked {
        body: serde_json::from_slice(&body).unwrap_or_default(),
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
    }
    noted.send_modify(|all| all.push(asked));
    Ok(())
}
