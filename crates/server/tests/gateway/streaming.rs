//! Bodies that are streamed, in each direction and in both at once.

use crate::kit::message::Messages;
use crate::kit::modern::{H2, body};
use crate::kit::{Answer, Client, Upstream, gate, get, in_time, request};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Returns a client and the upstream's end of its request, after the head was read.
async fn meet(head: &str) -> (Client, Messages<TcpStream>, gate::Gate) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let gate = gate::open(url, "").await;
    let mut client = Client::connect(gate.address).await;
    client.send(head).await;
    let (stream, _) = in_time("a connection", listener.accept()).await.unwrap();
    let mut upstream = Messages::new(stream);
    let head = in_time("a request", upstream.head()).await.unwrap();
    assert!(head.is_some());
    (client, upstream, gate)
}

#[tokio::test]
async fn a_request_is_forwarded_as_it_arrives() {
    let head = request("POST", "/", &["transfer-encoding: chunked"]);
    let (mut client, mut upstream, _gate) = meet(&head).await;
    for piece in ["one", "two", "three"] {
        client
            .send(format!("{:x}\r\n{piece}\r\n", piece.len()))
            .await;
        let chunk = in_time("a chunk", upstream.chunk()).await.unwrap();
        assert_eq!(chunk.unwrap(), piece.as_bytes());
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(in_time("the end", upstream.chunk()).await.unwrap(), None);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    upstream.stream.write_all(answer).await.unwrap();
    assert_eq!(client.reply("POST").await.text(), "ok");
}

#[tokio::test]
async fn a_request_with_a_length_is_forwarded_as_it_arrives() {
    let head = request("PUT", "/", &["content-length: 6"]);
    let (mut client, mut upstream, _gate) = meet(&head).await;
    for piece in ["one", "two"] {
        client.send(piece).await;
        let came = in_time("a piece", upstream.exactly(3)).await.unwrap();
        assert_eq!(came, piece.as_bytes());
    }
}

#[tokio::test]
async fn a_response_is_forwarded_as_it_arrives() {
    let (mut client, mut upstream, _gate) = meet(&request("GET", "/events", &[])).await;
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    upstream.stream.write_all(head).await.unwrap();
    // The head arrives before any body.
    let head = client.head().await;
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    for piece in ["data: 1\n\n", "data: 22\n\n", "data: 333\n\n"] {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        upstream.stream.write_all(chunk.as_bytes()).await.unwrap();
        let chunk = in_time("a chunk", client.messages.chunk()).await.unwrap();
        assert_eq!(chunk.unwrap(), piece.as_bytes());
    }
    upstream.stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(client.messages.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_request_continues_during_its_response() {
    let head = request("POST", "/", &["transfer-encoding: chunked"]);
    let (mut client, mut upstream, _gate) = meet(&head).await;
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    upstream.stream.write_all(head).await.unwrap();
    client.head().await;
    for piece in ["one", "two", "three"] {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        client.send(&chunk).await;
        let came = in_time("a chunk", upstream.chunk()).await.unwrap();
        assert_eq!(came.unwrap(), piece.as_bytes());
        upstream.stream.write_all(chunk.as_bytes()).await.unwrap();
        let back = in_time("a chunk", client.messages.chunk()).await.unwrap();
        assert_eq!(back.unwrap(), piece.as_bytes());
    }
}

#[tokio::test]
async fn an_unneeded_body_gets_no_100_continue() {
    let upstream = Upstream::start().await;
    let gate = gate::limited(format!("http://{}", upstream.address), "rate: 1/h burst 1").await;
    assert_eq!(get(gate.address, "/", &[]).await.status(), 200);
    let mut client = Client::connect(gate.address).await;
    let expecting = ["expect: 100-continue", "content-length: 5"];
    let reply = client.ask(request("POST", "/", &expecting)).await;
    assert_eq!(reply.status(), 429);
    assert_eq!(reply.interim, [0; 0], "requested a body, then refused it");
    assert_eq!(upstream.seen().len(), 1);
}

/// An interim response that arrives together with the final one.
#[tokio::test]
async fn interim_responses_are_forwarded_before_the_final_one() {
    let upstream = Upstream::start().await;
    let more = ", response_headers: { remove: Server }";
    let gate = gate::open(format!("http://{}", upstream.address), more).await;
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let mut client = Client::connect(gate.address).await;
    for (interim, passed) in [
        ("100 Continue", &[][..]),
        ("102 Processing", &[102]),
        ("103 Early Hints", &[103]),
        ("199 Whatever", &[199]),
    ] {
        let head = format!(
            "HTTP/1.1 {interim}\r\nlink: </a>\r\nserver: x\r\nconnection: x-hop\r\nx-hop: 1\r\n\
             content-length: 5\r\n\r\n"
        );
        upstream.answers(Answer::of(format!("{head}{head}{ok}")));
        client.send(request("GET", "/", &[])).await;
        for status in [passed, passed].concat() {
            let head = client.head().await;
            assert_eq!((head.status(), head.get("link")), (status, Some("</a>")));
            let names: Vec<_> = head.fields.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["link"]);
        }
        let reply = client.reply("GET").await;
        assert_eq!((reply.status(), reply.text()), (200, "ok"), "{interim}");
        assert_eq!(reply.interim, [0; 0], "{interim}");
        assert_eq!(reply.head.get("link"), None, "{interim}");
    }
}

#[tokio::test]
async fn an_interim_response_arrives_before_the_final_one() {
    let (mut client, mut upstream, _gate) = meet(&request("GET", "/", &[])).await;
    for _ in 0..3 {
        let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n";
        upstream.stream.write_all(hints).await.unwrap();
        let head = client.head().await;
        assert_eq!(head.line, "HTTP/1.1 103 Early Hints");
        assert_eq!(head.get("link"), Some("</a>; rel=preload"));
    }
    let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    upstream.stream.write_all(ok).await.unwrap();
    assert_eq!(client.reply("GET").await.text(), "ok");
}

#[tokio::test]
async fn clients_without_interim_responses_get_the_final_one() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    upstream.answers(Answer::of(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ));
    let mut client = Client::connect(gate.address).await;
    let reply = client.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!((reply.interim.len(), reply.text()), (0, "ok"));
    let mut client = H2::connect(gate.address).await;
    let request = http::Request::get("http://shop.example/").body(body("", &[]));
    let answered = client.ask(request.unwrap()).await;
    assert_eq!(
        (answered.head.status.as_u16(), &*answered.body),
        (200, &b"ok"[..])
    );
}

/// A client that does not read them neither delays the response nor fills memory.
#[tokio::test]
async fn a_flood_of_interim_answers_does_not_break_the_answer() {
    let (mut client, mut upstream, _gate) = meet(&request("GET", "/", &[])).await;
    let hint = format!(
        "HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n",
        "a".repeat(1_000)
    );
    let flood = hint.repeat(20_000) + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    in_time("a flood", upstream.stream.write_all(flood.as_bytes()))
        .await
        .unwrap();
    let reply = client.reply("GET").await;
    assert_eq!((reply.status(), reply.text()), (200, "ok"));
    assert!(reply.interim.iter().all(|status| *status == 103));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_never_ends_at_the_upstream() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), ", body_bytes: 1KiB").await;
    let mut client = Client::connect(gate.address).await;
    let reply = client
        .ask(request("POST", "/", &["content-length: 1025"]))
        .await;
    assert_eq!((reply.status(), upstream.begun().len()), (413, 0));
    assert!(client.is_closed().await);
    let mut client = Client::connect(gate.address).await;
    let head = request("POST", "/", &["transfer-encoding: chunked"]);
    client
        .send(format!("{head}400\r\n{}\r\n", "a".repeat(1024)))
        .await;
    client.send("1\r\na\r\n0\r\n\r\n").await;
    assert_eq!(client.reply("POST").await.status(), 413);
    assert!(client.is_closed().await);
    let mut client = Client::connect(gate.address).await;
    let fits = format!(
        "{}{}",
        request("POST", "/", &["content-length: 1024"]),
        "a".repeat(1024)
    );
    assert_eq!(client.ask(fits).await.status(), 200);
    assert_eq!(upstream.seen().len(), 1);
}
