//! A server behind the gateway that records its requests.

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An upstream that answers 200 to everything.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    /// Ends it when dropped.
    _tasks: Arc<Tasks>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let tasks = Arc::new(Tasks::new());
        let (seen, weak) = (Arc::clone(&heads), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else { return };
                tasks.spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            heads,
            _tasks: tasks,
        }
    }

    /// Returns the last request's value of a header, if it has one.
    pub(crate) fn last(&self, field: &str) -> Option<String> {
        let heads = self.heads.lock();
        let lines = heads.last()?.lines();
        let mut fields = lines.filter_map(|line| line.split_once(": "));
        let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(field));
        found.map(|(_, value)| value.to_owned())
    }
}

/// Serves requests without bodies.
async fn serve(mut stream: TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut ahead = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut ahead).await {
        while let Some(end) = ahead.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = ahead.drain(..end + 4).collect();
            heads.lock().push(String::from_utf8(head).unwrap());
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}
