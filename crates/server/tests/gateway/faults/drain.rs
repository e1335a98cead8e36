//! A gateway that shuts down under load.

use super::kit::{Link, OK, Program, RawUpstream};
use crate::kit::{Client, in_time, request};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tidegate_net::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{accept_async, client_async};

/// Clients of each kind.
const CLIENTS: usize = 8;
/// Responses before the shutdown.
const BEFORE: usize = 1_500;

/// Requests that upstreams executed and responses that clients got, by path.
#[derive(Default)]
struct RequestLedger {
    ran: Mutex<BTreeSet<String>>,
    answered: Mutex<BTreeSet<String>>,
    is_warm: Notify,
    count: AtomicUsize,
}

impl RequestLedger {
    fn answered(&self, path: &str) {
        self.answered.lock().insert(path.to_owned());
        if self.count.fetch_add(1, SeqCst) == BEFORE {
            self.is_warm.notify_one();
        }
    }
}

async fn upstream(books: &Arc<RequestLedger>) -> RawUpstream {
    let books = Arc::clone(books);
    RawUpstream::start(move |mut link: Link| {
        let books = Arc::clone(&books);
        async move {
            while let Some((head, _)) = link.request().await? {
                let path = head.line.split(' ').nth(1).unwrap().to_owned();
                books.ran.lock().insert(path);
                tokio::task::yield_now().await;
                link.say(OK).await?;
            }
            Ok(())
        }
    })
    .await
}

/// Keeps its connection until a response announces the close.
async fn keeps(books: Arc<RequestLedger>, address: SocketAddr, who: usize) {
    let mut client = Client::connect(address).await;
    for nth in 0.. {
        let path = format!("/keeps/{who}/{nth}");
        let reply = client.get(&path, &[]).await;
        assert_eq!(reply.status(), 200);
        books.answered(&path);
        if reply.closes() {
            assert!(client.is_closed().await);
            return;
        }
    }
}

/// Opens a connection per request until that fails.
async fn connects(books: Arc<RequestLedger>, address: SocketAddr, who: usize) {
    for nth in 0.. {
        let path = format!("/connects/{who}/{nth}");
        let Ok(stream) = TcpStream::connect(address).await else {
            return;
        };
        let mut client = Client::over(stream);
        if client.try_send(request("GET", &path, &[])).await.is_err() {
            return;
        }
        // A request on a connection that the kernel accepted but the gateway did not may be lost.
        // The books then show that it was not executed.
        match client.try_reply("GET").await {
            Ok(Some(reply)) => {
                assert_eq!(reply.status(), 200);
                books.answered(&path);
            }
            Ok(None) | Err(_) => return,
        }
    }
}

/// Keeps its connection with concurrent requests until GOAWAY.
async fn multiplexes(books: Arc<RequestLedger>, address: SocketAddr, who: usize) {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        connection.await.ok();
    });
    let streams = (0..4).map(|stream| {
        let (mut sender, books) = (sender.clone(), Arc::clone(&books));
        async move {
            for nth in 0.. {
                let path = format!("/multiplexes/{who}-{stream}/{nth}");
                let get = Request::get(format!("http://shop.example{path}"));
                let get = get.body(Empty::<Bytes>::new()).unwrap();
                if sender.ready().await.is_err() {
                    return;
                }
                match sender.try_send_request(get).await {
                    Ok(answer) => {
                        assert_eq!(answer.status(), 200);
                        answer.into_body().collect().await.unwrap();
                        books.answered(&path);
                    }
                    // Too late. The books show that it was not executed.
                    Err(_) => return,
                }
            }
        }
    });
    futures_util::future::join_all(streams).await;
}

/// Starts a `WebSocket` upstream that echoes everything and records how each connection closed.
async fn echo() -> (SocketAddr, Arc<Mutex<Vec<Option<CloseCode>>>>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closed = Arc::new(Mutex::new(Vec::new()));
    let (tasks, codes) = (Tasks::new(), Arc::clone(&closed));
    tasks.spawn(async move {
        let connections = Tasks::new();
        while let Ok((stream, _)) = listener.accept().await {
            let codes = Arc::clone(&codes);
            connections.spawn(async move {
                let mut socket = accept_async(stream).await.unwrap();
                while let Some(Ok(message)) = socket.next().await {
                    match message {
                        Message::Close(frame) => codes.lock().push(frame.map(|it| it.code)),
                        message if message.is_text() => socket.send(message).await.unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
    (address, closed, tasks)
}

/// Sends one message, reports it, and waits for the close frame.
async fn listens(address: SocketAddr, is_there: oneshot::Sender<()>) -> Option<CloseCode> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut socket, _) = client_async("ws://shop.example/ws", stream).await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    let heard = socket.next().await.unwrap().unwrap();
    assert_eq!(heard, Message::text("hello"));
    is_there.send(()).unwrap();
    let mut code = None;
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Close(frame) = message {
            code = frame.map(|it| it.code);
        }
    }
    code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_gateway_finishes_started_requests() {
    let books = Arc::new(RequestLedger::default());
    let upstream = upstream(&books).await;
    let (sockets, upstreams_codes, _echo) = echo().await;
    let gate = Program::start(&format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - {{ name: sockets, match: {{ path: /ws }}, upstreams: ['http://{sockets}'], policy: none }}
  - {{ name: all, upstreams: ['http://{}'], policy: none }}
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
",
        upstream.address
    ))
    .await;
    let codes = Arc::new(Mutex::new(Vec::new()));
    let clients = Tasks::new();
    for who in 0..CLIENTS {
        let (is_there, there) = oneshot::channel();
        let (address, codes) = (gate.address, Arc::clone(&codes));
        clients.spawn(async move {
            let code = listens(address, is_there).await;
            codes.lock().push(code);
        });
        in_time("a WebSocket", there).await.unwrap();
        clients.spawn(keeps(Arc::clone(&books), gate.address, who));
        clients.spawn(connects(Arc::clone(&books), gate.address, who));
        clients.spawn(multiplexes(Arc::clone(&books), gate.address, who));
    }
    in_time("load", books.is_warm.notified()).await;
    gate.terminate().await;
    in_time("the end of all clients", clients.finished()).await;
    let (status, said) = gate.ended().await;
    assert_eq!(status.code(), Some(0), "{said:#?}");
    assert!(
        said.iter().any(|line| line.contains("\"drained\"")),
        "{said:#?}"
    );

    let away = vec![Some(CloseCode::Away); CLIENTS];
    assert_eq!(*codes.lock(), away);
    assert_eq!(*upstreams_codes.lock(), away);
    let (ran, answered) = (books.ran.lock(), books.answered.lock());
    let lost: Vec<_> = ran.difference(&answered).collect();
    assert!(
        lost.is_empty(),
        "run, but no client got a response: {lost:?}"
    );
    assert_eq!(*ran, *answered);
}
