//! The application behind the proxies.

use http::header::HeaderName;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};

/// The header with which a client selects the application's response: a status, or `nothing` for an
/// application that dies during the request.
pub(crate) const ANSWER_WITH: &str = "x-answer-with";

/// The header with which a client adds a header to the response, as `name: value`.
pub(crate) const ANSWER_HEADER: &str = "x-answer-header";

/// An application that records its requests.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    asked: RequestLog,
    _tasks: Arc<Tasks>,
}

/// Requests, as `GET /path`.
type RequestLog = Arc<Mutex<Vec<String>>>;

impl Application {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = RequestLog::default();
        let tasks = Arc::new(Tasks::new());
        let (seen, connections) = (Arc::clone(&asked), Arc::downgrade(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(connections) = connections.upgrade() else {
                    return;
                };
                connections.spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            asked,
            _tasks: tasks,
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

async fn serve(stream: TcpStream, asked: RequestLog) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &asked);
        async move { answer }
    });
    // Errors of the connection concern the proxy.
    http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}

fn answer(request: &Request<Incoming>, asked: &RequestLog) -> io::Result<Response<Full<Bytes>>> {
    let question = format!("{} {}", request.method(), request.uri());
    asked.lock().push(question.clone());
    let mut response = Response::new(Full::from(format!("application: {question}")));
    if let Some(with) = request.headers().get(ANSWER_WITH) {
        if with == "nothing" {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        *response.status_mut() = StatusCode::from_bytes(with.as_bytes()).unwrap();
    }
    for line in request.headers().get_all(ANSWER_HEADER) {
        let (name, value) = line.to_str().unwrap().split_once(": ").unwrap();
        let name: HeaderName = name.parse().unwrap();
        response.headers_mut().append(name, value.parse().unwrap());
    }
    Ok(response)
}
