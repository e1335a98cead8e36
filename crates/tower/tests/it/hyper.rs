use crate::world::{Hello, ONE_EACH, Running, Still, get, get_with, header, limiter, whole};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidegate_tower::RateLimitLayer;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tower::Layer as _;

async fn serve(layer: RateLimitLayer<Still>, app: Hello) -> Running {
    Running::start(|listener| async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let service = layer.layer(app.clone()).peer(peer);
            let service = TowerToHyperService::new(service);
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move { drop(connection.await) });
        }
    })
    .await
}

#[tokio::test]
async fn each_connection_tells_its_peer() {
    let app = Hello::default();
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), app.clone()).await;
    let behind = |client| get_with(&[("x-forwarded-for", client)]);
    assert_eq!(server.ask(behind("192.0.2.1")).await.status(), 200);
    assert_eq!(server.ask(behind("192.0.2.1")).await.status(), 429);
    assert_eq!(server.ask(behind("192.0.2.2")).await.status(), 200);
    assert_eq!(app.called(), 2);
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_as_it_was() {
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), Hello::default()).await;
    let stream = TcpStream::connect(server.address)
        .await
        .expect("a connection");
    let connecting = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.expect("a client");
    let exchange = async move {
        let mut statuses = Vec::new();
        for (method, client) in [
            (Method::POST, "192.0.2.1"),
            (Method::POST, "192.0.2.1"),
            (Method::HEAD, "192.0.2.1"),
            (Method::GET, "192.0.2.2"),
        ] {
            let request = Request::builder()
                .method(method.clone())
                .header("host", "a")
                .header("x-forwarded-for", client)
                .body(Full::<Bytes>::from("a body that nobody reads"));
            let answer = sender.send_request(request.expect("a request")).await;
            let answer = whole(answer.expect("an answer")).await;
            // A refused HEAD has the head of the refusal, and no body.
            assert_eq!(answer.body().is_empty(), method == Method::HEAD);
            statuses.push(answer.status().as_u16());
        }
        statuses
    };
    let (statuses, _) = tokio::join!(exchange, connection);
    assert_eq!(statuses, [200, 429, 429, 200]);
}

#[tokio::test]
async fn the_id_of_a_request_comes_back_with_a_refusal() {
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH)), Hello::default()).await;
    let with_id = || get_with(&[("x-correlation-id", "abc-123")]);
    assert_eq!(
        header(&server.ask(with_id()).await, "x-correlation-id"),
        None
    );
    let refused = server.ask(with_id()).await;
    assert_eq!(header(&refused, "x-correlation-id"), Some("abc-123"));
    let body: serde_json::Value = serde_json::from_slice(refused.body()).expect("JSON");
    assert_eq!(body["correlationId"], "abc-123");
    assert_eq!(server.ask(get()).await.status(), 429);
}
