//! Headers of a single connection, which stay there, and headers that routes change.

use crate::kit::{Answer, Client, Gate, Reply, Upstream, gate, get, request};

async fn before(upstream: &Upstream, more: &str) -> Gate {
    gate::open(format!("http://{}", upstream.address), more).await
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded() {
    let upstream = Upstream::start().await;
    let gate = before(&upstream, "").await;
    let lines = [
        "connection: keep-alive, X-Mine, x-other",
        "x-mine: 1",
        "X-Other: 2",
        "x-theirs: 3",
        "keep-alive: timeout=5",
        "proxy-connection: keep-alive",
        "te: gzip, trailers;q=0.5",
        "upgrade: h2c",
        "http2-settings: AAMAAABk",
    ];
    upstream.answers(Answer::of(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nX-Theirs: 2\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\n\
         Content-Length: 2\r\n\r\nok",
    ));
    let reply = get(gate.address, "/", &lines).await;
    let head = upstream.saw().head;
    for name in [
        "connection",
        "x-mine",
        "x-other",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "http2-settings",
    ] {
        assert_eq!(head.get(name), None, "{name}");
        assert_eq!(reply.head.get(name), None, "{name}");
    }
    assert_eq!(head.get("x-theirs"), Some("3"));
    assert_eq!(head.get("te"), Some("trailers"));
    assert_eq!(reply.head.get("x-theirs"), Some("2"));
    assert_eq!(reply.text(), "ok");
}

#[tokio::test]
async fn a_client_cannot_remove_essential_headers_by_connection() {
    let upstream = Upstream::start().await;
    let gate = before(&upstream, "").await;
    let mut client = Client::connect(gate.address).await;
    let names = "host, content-length, x-forwarded-for, x-forwarded-proto, x-forwarded-host, \
                 x-real-ip, forwarded, via, transfer-encoding";
    let lines = [&format!("connection: {names}"), "content-length: 5"];
    let whole = request("POST", "/", &lines) + "hello";
    assert_eq!(client.ask(whole).await.status(), 200);
    let seen = upstream.saw();
    for name in names
        .split(", ")
        .filter(|name| *name != "transfer-encoding")
    {
        assert!(seen.head.get(name).is_some(), "{name}: {seen:#?}");
    }
    assert_eq!(seen.content.bytes, b"hello");
}

#[tokio::test]
async fn headers_are_removed_set_and_added_in_both_directions() {
    let upstream = Upstream::start().await;
    let more = ", request_headers: { set: { X-Env: prod, User-Agent: gate }, add: { X-Tag: b }, \
                remove: [X-Debug, Cookie] }, \
                response_headers: { set: { X-Served-By: gate }, add: { Vary: Origin }, \
                remove: [Server, X-Powered-By] }";
    let gate = before(&upstream, more).await;
    upstream.answers(Answer::of(
        "HTTP/1.1 200 OK\r\nServer: a\r\nX-Powered-By: b\r\nX-Powered-By: c\r\nVary: Accept\r\n\
         X-Served-By: d\r\nX-Served-By: e\r\nX-Other: f\r\nContent-Length: 0\r\n\r\n",
    ));
    let lines = [
        "x-env: mine",
        "x-env: yours",
        "x-tag: a",
        "x-debug: 1",
        "x-debug: 2",
        "cookie: a=1",
        "x-other: 3",
    ];
    let reply = get(gate.address, "/", &lines).await;
    let head = upstream.saw().head;
    let all = |name| head.all(name).collect::<Vec<_>>();
    assert_eq!(all("x-env"), ["prod"]);
    assert_eq!(all("user-agent"), ["gate"]);
    assert_eq!(all("x-tag"), ["a", "b"]);
    assert_eq!(all("x-debug"), [""; 0]);
    assert_eq!(all("cookie"), [""; 0]);
    assert_eq!(all("x-other"), ["3"]);
    let all = |name| reply.head.all(name).collect::<Vec<_>>();
    assert_eq!(all("server"), [""; 0]);
    assert_eq!(all("x-powered-by"), [""; 0]);
    assert_eq!(all("vary"), ["Accept", "Origin"]);
    assert_eq!(all("x-served-by"), ["gate"]);
    assert_eq!(all("x-other"), ["f"]);
}

/// Returns the target that the upstream receives for a client's `target`.
async fn forwarded_target(gate: &Gate, upstream: &Upstream, target: &str) -> String {
    assert_eq!(
        get(gate.address, target, &[]).await.status(),
        200,
        "{target}"
    );
    let line = upstream.saw().head.line;
    let line = line.strip_prefix("GET ").unwrap();
    line.strip_suffix(" HTTP/1.1").unwrap().to_owned()
}

#[tokio::test]
async fn a_prefix_is_stripped_by_whole_segments_in_any_notation() {
    let upstream = Upstream::start().await;
    let url = format!("http://{}", upstream.address);
    let gate = gate::lenient(url, ", strip_prefix: /api").await;
    for (target, expected) in [
        ("/api/a", "/a"),
        ("/api/a?b=c", "/a?b=c"),
        ("/api", "/"),
        ("/api/", "/"),
        ("/api?b", "/?b"),
        ("/%61pi/a", "/a"),
        ("/x/../api/a", "/a"),
        ("//api//a", "/a"),
        ("/api/a%2fb", "/a%2Fb"),
        ("/api/a%20b", "/a%20b"),
        ("/apis/a", "/apis/a"),
        ("/a/api", "/a/api"),
        ("/api/../a", "/a"),
        ("/API/a", "/API/a"),
    ] {
        assert_eq!(
            forwarded_target(&gate, &upstream, target).await,
            expected,
            "{target}"
        );
    }
}

#[tokio::test]
async fn an_upstream_may_have_a_base_path_that_no_request_leaves() {
    let upstream = Upstream::start().await;
    let url = format!("http://{}/v1/", upstream.address);
    let gate = gate::open(&url, "").await;
    for (target, expected) in [
        ("/", "/v1/"),
        ("/a?b=c", "/v1/a?b=c"),
        ("/a/../b", "/v1/b"),
        ("http://shop.example/a", "/v1/a"),
        ("http://shop.example", "/v1/"),
    ] {
        assert_eq!(
            forwarded_target(&gate, &upstream, target).await,
            expected,
            "{target}"
        );
    }
    for target in ["/..", "/../v2", "/%2e%2e/v2", "/a/../../v2", "//../v2"] {
        let reply = get(gate.address, target, &[]).await;
        assert_eq!((reply.status(), reply.closes()), (400, true), "{target}");
        assert!(
            reply.text().contains("leads above the root"),
            "{}",
            reply.text()
        );
    }
    assert_eq!(upstream.begun().len(), 0);
    let mut client = Client::connect(gate.address).await;
    client.ask(request("OPTIONS", "*", &[])).await;
    assert_eq!(upstream.saw().head.line, "OPTIONS * HTTP/1.1");
    let gate = gate::open(&url, ", strip_prefix: /api").await;
    assert_eq!(forwarded_target(&gate, &upstream, "/api/a").await, "/v1/a");
    assert_eq!(forwarded_target(&gate, &upstream, "/api").await, "/v1/");
}

#[tokio::test]
async fn the_host_is_the_clients_or_the_upstreams_as_configured() {
    let upstream = Upstream::start().await;
    let own = upstream.address.to_string();
    for (more, host) in [
        ("", "shop.example"),
        (", host: keep", "shop.example"),
        (", host: upstream", &own),
    ] {
        let gate = before(&upstream, more).await;
        get(gate.address, "/", &[]).await;
        let head = upstream.saw().head;
        assert_eq!(head.get("host"), Some(host), "{more}");
        assert_eq!(head.get("x-forwarded-host"), Some("shop.example"), "{more}");
    }
}

#[tokio::test]
async fn an_http_1_0_client_needs_no_host() {
    let upstream = Upstream::start().await;
    let gate = before(&upstream, "").await;
    let mut client = Client::connect(gate.address).await;
    assert_eq!(client.ask("GET / HTTP/1.0\r\n\r\n").await.status(), 200);
    let head = upstream.saw().head;
    // An HTTP/1.1 request has a `Host`: the upstream's own.
    assert_eq!(head.get("host"), Some(&*upstream.address.to_string()));
    assert_eq!(head.get("x-forwarded-host"), None);
    assert_eq!(head.get("via"), Some("1.0 tidegate"));
}

fn limits(reply: &Reply) -> [Option<&str>; 2] {
    ["x-ratelimit-limit", "x-ratelimit-remaining"].map(|name| reply.head.get(name))
}

#[tokio::test]
async fn responses_have_limit_headers_and_refused_requests_stay_here() {
    let upstream = Upstream::start().await;
    let gate = gate::limited(format!("http://{}", upstream.address), "rate: 1/h burst 2").await;
    let mut client = Client::connect(gate.address).await;
    // The upstream's own rate limit headers do not apply to these clients.
    upstream.answers(Answer::of(
        "HTTP/1.1 200 OK\r\nX-RateLimit-Remaining: 999\r\nContent-Length: 2\r\n\r\nok",
    ));
    assert_eq!(limits(&client.get("/", &[]).await)[1], Some("1"));
    assert_eq!(limits(&client.get("/", &[]).await)[1], Some("0"));
    let body = request("POST", "/", &["content-length: 5"]) + "hello";
    let refused = client.ask(body).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(limits(&refused)[1], Some("0"));
    assert!(refused.head.get("retry-after").is_some());
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_426_names_the_required_protocol() {
    let upstream = Upstream::start().await;
    let gate = before(&upstream, "").await;
    upstream.answers(Answer::of(
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
         Content-Length: 0\r\n\r\n",
    ));
    let reply = get(gate.address, "/", &[]).await;
    assert_eq!(reply.head.get("upgrade"), Some("websocket"));
    assert_eq!(reply.head.get("connection"), Some("upgrade"));
}
