//! An upstream that a test controls byte for byte.

use super::Place;
use crate::kit::in_time;
use crate::kit::message::{Content, Head, Messages};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tidegate_net::tasks::Tasks;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// An upstream. When it is dropped, its listener and all its connections close.
pub(crate) struct RawUpstream {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: watch::Receiver<usize>,
    _tasks: Arc<Tasks>,
}

/// One connection to it.
pub(crate) struct Link {
    pub(crate) messages: Messages<TcpStream>,
    /// Its index, from 0.
    pub(crate) nth: usize,
}

/// A connection that is counted until it is dropped.
struct Open(watch::Sender<usize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl RawUpstream {
    /// Starts an upstream that runs `serve` for each connection. Its errors are ignored: they
    /// concern the gateway.
    pub(crate) async fn start<F, S>(serve: F) -> Self
    where
        F: Fn(Link) -> S + Send + 'static,
        S: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), serve)
    }

    /// Starts it at a reserved port.
    pub(crate) fn at<F, S>(place: &Place, serve: F) -> Self
    where
        F: Fn(Link) -> S + Send + 'static,
        S: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::on(place.listen(), serve)
    }

    fn on<F, S>(listener: TcpListener, serve: F) -> Self
    where
        F: Fn(Link) -> S + Send + 'static,
        S: Future<Output = io::Result<()>> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (sender, open) = watch::channel(0);
        let tasks = Arc::new(Tasks::new());
        let (count, weak) = (Arc::clone(&accepted), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else {
                    return;
                };
                stream.set_nodelay(true).ok();
                sender.send_modify(|open| *open += 1);
                let open = Open(sender.clone());
                let served = serve(Link {
                    messages: Messages::new(stream),
                    nth: count.fetch_add(1, SeqCst),
                });
                tasks.spawn(async move {
                    served.await.ok();
                    drop(open);
                });
            }
        });
        Self {
            address,
            accepted,
            open,
            _tasks: tasks,
        }
    }

    /// Returns the number of connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(SeqCst)
    }

    /// Waits until it has this many connections.
    pub(crate) async fn has_open(&self, count: usize) {
        let mut open = self.open.clone();
        let what = format!("{count} connections to an upstream");
        in_time(&what, open.wait_for(|open| *open == count))
            .await
            .unwrap();
    }
}

impl Link {
    /// Returns the next request with its body; `None` if the connection ends before it.
    pub(crate) async fn request(&mut self) -> io::Result<Option<(Head, Content)>> {
        let Some(head) = self.messages.head().await? else {
            return Ok(None);
        };
        let framing = head.framing_of_request();
        let content = self.messages.content(framing).await?;
        Ok(Some((head, content)))
    }

    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.messages.stream.write_all(bytes.as_ref()).await
    }

    /// Waits until the other side closes, and drops what it sends.
    pub(crate) async fn until_closed(mut self) -> io::Result<()> {
        while self.messages.more().await? {
            self.messages.ahead.clear();
        }
        Ok(())
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) -> io::Result<()> {
        self.messages.stream.set_zero_linger()
    }
}
