//! Requests that are too large, too slow or too many.

use crate::kit::client::question;
use crate::kit::{Client, PLENTY, Server, TWO_A_MINUTE, get, in_time};
use std::time::Duration;
use tidegate_net::bounds::Bounds;

const SOON: Duration = Duration::from_millis(50);
const HEAD: &str = "POST /v1/check HTTP/1.1\r\nhost: test\r\n";

#[tokio::test]
async fn a_body_is_bounded_by_the_configured_size() {
    let server = Server::start(TWO_A_MINUTE).await;
    let most = Bounds::default().body_bytes;
    let mut client = Client::connect(server.http).await;
    let spaces = " ".repeat(most - 2);
    assert!(client.post(&format!("{{{spaces}}}")).await.is_allowed());
    let reply = client.post(&format!("{{{spaces} }}")).await;
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (
            413,
            r#"{"type":"about:blank","title":"Content Too Large","status":413,"detail":"the body may have at most 65536 bytes"}"#
        )
    );
}

#[tokio::test]
async fn a_body_of_unknown_length_has_the_same_bound() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    client
        .send(&format!("{HEAD}transfer-encoding: chunked\r\n\r\n"))
        .await;
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    for _ in 0..5 {
        // The server may close while the test still sends.
        if client.try_send(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(client.reply().await.status, 413);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let large = "x".repeat(Bounds::default().head_bytes);
    let reply = client.ask(&format!("{HEAD}x-large: {large}\r\n\r\n")).await;
    assert_eq!(reply.status, 431);
    assert!(client.is_closed().await);
}

/// A proxy that gets a reset while it sends sees no response, and may let a refused request pass.
#[tokio::test]
async fn a_client_that_keeps_sending_can_read_the_response() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let large = "x".repeat(Bounds::default().head_bytes);
    client.send(&format!("{HEAD}x-large: {large}")).await;
    let answer = in_time("an answer", client.stream.readable()).await;
    answer.expect("the connection is open");
    for _ in 0..16 {
        let sent = client.try_send(&large[..8 << 10]).await;
        sent.expect("the server listens to the end");
    }
    assert_eq!(client.reply().await.status, 431);
    assert!(client.is_closed().await);
}

/// The same if the response needs no body, and the body comes later.
#[tokio::test]
async fn an_unneeded_body_does_not_lose_the_response() {
    let server = Server::start(TWO_A_MINUTE).await;
    let piece = "x".repeat(8 << 10);
    for (head, status) in [
        (HEAD, 413),
        ("POST /nothing HTTP/1.1\r\nhost: tidegate\r\n", 404),
    ] {
        let mut client = Client::connect(server.http).await;
        let length = 16 * piece.len();
        let head = format!("{head}content-length: {length}\r\n\r\n");
        client.send(&head).await;
        let answer = in_time("an answer", client.stream.readable()).await;
        answer.expect("the connection is open");
        for _ in 0..16 {
            let sent = client.try_send(&piece).await;
            sent.expect("the server listens to the end");
        }
        assert_eq!(client.reply().await.status, status);
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn an_endless_request_is_cut() {
    let server = Server::start(TWO_A_MINUTE).await;
    let mut client = Client::connect(server.http).await;
    let large = "x".repeat(Bounds::default().head_bytes);
    client.send(&format!("{HEAD}x-large: {large}")).await;
    // Far more than any buffer holds: this ends only if the server closes.
    while client.try_send(&large).await.is_ok() {}
}

#[tokio::test]
async fn a_late_body_times_out() {
    let bounds = Bounds {
        body_time: SOON,
        ..Bounds::default()
    };
    let server = Server::with(TWO_A_MINUTE, bounds).await;
    for begun in ["", "{"] {
        let mut client = Client::connect(server.http).await;
        let reply = client
            .ask(&format!("{HEAD}content-length: 2\r\n\r\n{begun}"))
            .await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (
                408,
                r#"{"type":"about:blank","title":"Request Timeout","status":408,"detail":"the body did not arrive within 0.05 seconds"}"#
            )
        );
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let bounds = Bounds {
        idle_time: SOON,
        ..Bounds::default()
    };
    let server = Server::with(TWO_A_MINUTE, bounds).await;
    let mut silent = Client::connect(server.http).await;
    assert!(silent.is_closed().await);
    let mut trickling = Client::connect(server.http).await;
    trickling.send("POST /v1/check HT").await;
    assert!(trickling.is_closed().await);
    let mut idle = Client::connect(server.http).await;
    assert!(idle.post("{}").await.is_allowed());
    assert!(idle.is_closed().await);
}

/// A check request without its last byte, so that its connection is not idle.
const UNFINISHED: &str = "POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\n\r\n{";

async fn metric(server: &Server, line: &str) -> bool {
    get(server.admin, "/metrics").await.body.contains(line)
}

#[tokio::test]
async fn while_none_is_idle_connections_beyond_the_bound_wait() {
    let bounds = Bounds {
        connections: 2,
        ..Bounds::default()
    };
    let server = Server::with(PLENTY, bounds).await;
    let mut first = Client::connect(server.http).await;
    let mut second = Client::connect(server.http).await;
    first.send(UNFINISHED).await;
    second.send(UNFINISHED).await;
    let began = "tidegate_connections{listener=\"http\"} 2\n";
    while !metric(&server, began).await {}
    let mut third = Client::connect(server.http).await;
    third.send(&question("{}")).await;
    let accepted = "tidegate_connections_accepted_total{listener=\"http\"} 2\n";
    assert!(metric(&server, accepted).await, "the third is not served");
    first.send("}").await;
    assert!(first.reply().await.is_allowed());
    // Now the first is idle, and is closed to make room.
    assert!(third.reply().await.is_allowed());
    assert!(first.is_closed().await);
    second.send("}").await;
    assert!(second.reply().await.is_allowed());
}

#[tokio::test]
async fn when_the_listener_is_full_the_longest_idle_connection_closes() {
    let bounds = Bounds {
        connections: 2,
        ..Bounds::default()
    };
    let server = Server::with(PLENTY, bounds).await;
    let mut first = Client::connect(server.http).await;
    assert!(first.post("{}").await.is_allowed());
    let mut second = Client::connect(server.http).await;
    assert!(second.post("{}").await.is_allowed());
    let mut third = Client::connect(server.http).await;
    assert!(third.post("{}").await.is_allowed());
    assert!(first.is_closed().await);
    assert!(second.post("{}").await.is_allowed());
    let closed = "tidegate_connections_closed_total{listener=\"http\",reason=\"full\"} 1\n";
    assert!(metric(&server, closed).await);
    assert!(metric(&server, "tidegate_connections_max{listener=\"http\"} 2\n").await);
}

/// Returns a connection from another address of this machine.
#[cfg(target_os = "linux")]
async fn from(address: &str, to: std::net::SocketAddr) -> Client {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket
        .bind(format!("{address}:0").parse().unwrap())
        .unwrap();
    Client::over(socket.connect(to).await.unwrap())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_address_cannot_fill_the_listener() {
    let listener = "{ address: '127.0.0.1:0', connections_per_address: 3 }";
    let config = PLENTY.replacen("'127.0.0.1:0'", listener, 1);
    let config = format!("client: {{ trusted_proxies: [127.0.0.9] }}\n{config}");
    let server = Server::start(&config).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        let mut client = from("127.0.0.1", server.http).await;
        client.send(UNFINISHED).await;
        busy.push(client);
    }
    let began = "tidegate_connections{listener=\"http\"} 3\n";
    while !metric(&server, began).await {}
    let mut refused = from("127.0.0.1", server.http).await;
    assert!(refused.is_closed().await);
    let counted = "tidegate_connections_refused_total{listener=\"http\"} 1\n";
    assert!(metric(&server, counted).await);
    // The limit is per address, and a trusted proxy has many clients.
    for address in ["127.0.0.2", "127.0.0.9", "127.0.0.9", "127.0.0.9"] {
        let mut client = from(address, server.http).await;
        assert!(client.post("{}").await.is_allowed(), "{address}");
        busy.push(client);
    }
    let mut fourth = from("127.0.0.9", server.http).await;
    assert!(fourth.post("{}").await.is_allowed());
    assert!(busy[4].post("{}").await.is_allowed());
    // An idle one is closed to make room for the next of its address.
    busy[0].send("}").await;
    assert!(busy[0].reply().await.is_allowed());
    let mut next = from("127.0.0.1", server.http).await;
    assert!(next.post("{}").await.is_allowed());
    assert!(busy[0].is_closed().await);
}

/// Idle connections take a moment to close; new ones are not refused for that.
#[tokio::test]
async fn a_burst_of_new_connections_replaces_the_idle_ones_of_its_address() {
    let listener = "{ address: '127.0.0.1:0', connections_per_address: 3 }";
    let config = PLENTY.replacen("'127.0.0.1:0'", listener, 1);
    let config = format!("client: {{ trusted_proxies: [127.0.0.9] }}\n{config}");
    let server = Server::start(&config).await;
    let mut old = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(server.http).await;
        assert!(client.post("{}").await.is_allowed());
        old.push(client);
    }
    let connect = || async {
        let mut client = Client::connect(server.http).await;
        client.send(UNFINISHED).await;
        client
    };
    let (mut first, mut second, mut third) = tokio::join!(connect(), connect(), connect());
    for client in [&mut first, &mut second, &mut third] {
        client.send("}").await;
        assert!(client.reply().await.is_allowed());
    }
    for mut client in old {
        assert!(client.is_closed().await);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_silent_connections_stop_nothing() {
    use crate::kit::process::{Process, limited};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // For the client's ends of the connections.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, most).unwrap();
    let mut process = Process::start(limited(
        "256:1024",
        &["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
    ));
    let line = process
        .logs(
            "the open file limit allows few connections; raise it with `ulimit -n` or `LimitNOFILE=`",
            ("level", "WARN"),
        )
        .await;
    assert_eq!(
        (&line["descriptors"], &line["http"]),
        (&1_024.into(), &832.into())
    );
    let http = process.address("http").await;
    let admin = process.address("admin").await;
    let mut silent = Vec::new();
    for _ in 0..1_200 {
        silent.push(Client::connect(http).await);
    }
    assert_eq!(get(admin, "/livez").await.status, 200);
    let mut client = Client::connect(http).await;
    assert!(client.post("{}").await.is_allowed());
    let metrics = get(admin, "/metrics").await.body;
    let closed = metrics
        .lines()
        .filter(|line| line.starts_with("tidegate_connections_closed_total{listener=\"http\""))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
    assert!(closed.sum::<u32>() >= 1_200 - 832, "{metrics}");
    let logged = process
        .logged
        .iter()
        .any(|line| line.contains("cannot accept"));
    assert!(!logged, "{:#?}", process.logged);
}

#[tokio::test]
async fn a_client_that_never_reads_is_paused() {
    let server = Server::start(PLENTY).await;
    let mut client = Client::connect(server.http).await;
    let many = question("{}").repeat(1_000);
    let mut answered = 0;
    loop {
        let flood = async { while client.try_send(&many).await.is_ok() {} };
        let flood = tokio::time::timeout(Duration::from_millis(200), flood);
        assert!(flood.await.is_err(), "the server closed");
        let before = answered;
        answered = allowed(&get(server.admin, "/metrics").await.body);
        // The kernel buffers a few megabytes on both sides; a response has over 200 bytes.
        assert!(
            answered < 200_000,
            "answered {answered} requests to a client that reads no answer"
        );
        if answered == before {
            break;
        }
    }
}

/// Returns the number of allowed requests.
fn allowed(metrics: &str) -> u64 {
    let line = metrics
        .lines()
        .find(|line| line.contains("outcome=\"allowed\""));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}
