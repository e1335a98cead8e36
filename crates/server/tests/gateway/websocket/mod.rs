//! WebSockets between a third-party client and server.
//!
//! | module | contents |
//! |---|---|
//! | `passing` | messages in both directions, until one side closes |
//! | `limits` | limits on connections and messages |
//! | `guards` | clients that are banned meanwhile |
//! | `beginning` | the handshake |
//! | `http2` | clients that speak HTTP/2 |

mod beginning;
mod guards;
mod http2;
mod limits;
mod passing;

use crate::kit::{Gate, gate, in_time};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// A server that echoes messages. The message `go away` makes it close with `4002 as you wish`.
pub(crate) struct Echo {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Message>>>,
    _tasks: Arc<Tasks>,
}

impl Echo {
    pub(crate) async fn start() -> Self {
        Self::behind(None).await
    }

    async fn behind(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let tasks = Arc::new(Tasks::new());
        let (to_all, weak) = (Arc::clone(&heard), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(tasks) = weak.upgrade() else {
                    return;
                };
                let (heard, tls) = (Arc::clone(&to_all), tls.clone());
                tasks.spawn(async move {
                    match tls {
                        None => echo(stream, &heard).await,
                        Some(tls) => echo(tls.accept(stream).await.unwrap(), &heard).await,
                    }
                });
            }
        });
        Self {
            address,
            heard,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the messages since the last call.
    fn received(&self) -> Vec<Message> {
        std::mem::take(&mut *self.heard.lock())
    }
}

async fn echo<I: AsyncRead + AsyncWrite + Unpin>(stream: I, heard: &Mutex<Vec<Message>>) {
    let Ok(mut socket) = accept_async(stream).await else {
        return;
    };
    while let Some(Ok(message)) = socket.next().await {
        heard.lock().push(message.clone());
        let said = match message {
            Message::Text(text) if text.as_str() == "go away" => {
                let close = closing(CloseCode::Library(4002), "as you wish");
                socket.close(Some(close)).await
            }
            message @ (Message::Text(_) | Message::Binary(_)) => socket.send(message).await,
            _ => Ok(()),
        };
        // A message after the close frame cannot be sent.
        said.ok();
    }
}

fn closing(code: CloseCode, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: reason.into(),
    }
}

/// Opens a WebSocket through the gateway, or returns its error.
pub(crate) async fn try_connect(gate: &Gate) -> Result<Socket, Error> {
    let stream = TcpStream::connect(gate.address).await.unwrap();
    let connected = client_async("ws://shop.example/talk", stream);
    Ok(in_time("a WebSocket", connected).await?.0)
}

async fn connect(gate: &Gate) -> Socket {
    try_connect(gate).await.unwrap()
}

/// Returns the next message.
pub(crate) async fn receive(socket: &mut Socket) -> Option<Message> {
    receive_from(socket).await
}

/// Returns the same over any connection.
async fn receive_from<I>(socket: &mut WebSocketStream<I>) -> Option<Message>
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let heard = in_time("a message", socket.next()).await;
    heard.map(Result::unwrap)
}

/// Sends a message, and expects its echo.
pub(crate) async fn talk(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
    assert_eq!(receive(socket).await, Some(Message::text(text)));
}

/// Starts a gateway with this limit on messages.
async fn limiting(upstream: impl Display, limit: &str) -> Gate {
    let route = format!("{{ name: all, upstreams: ['{upstream}'], policy: none, messages: api }}");
    Gate::start(&gate::config(&route, limit)).await
}
