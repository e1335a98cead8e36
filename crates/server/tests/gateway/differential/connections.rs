//! Several requests on one connection, old clients, and upgraded connections.

use super::difference::DifferenceReason;
use super::stage::{case, play, steps};
use crate::kit::{Answer, request};

#[tokio::test]
async fn several_requests_on_one_connection() {
    let get = |target: &str| request("GET", target, &[]);
    let post = |target: &str, body: &str| {
        request(
            "POST",
            target,
            &[&format!("content-length: {}", body.len())],
        ) + body
    };
    play(vec![
        steps("one after the other")
            .sends(get("/1"))
            .reads("GET")
            .sends(post("/2", "two"))
            .reads("POST")
            .sends(get("/3"))
            .reads("GET"),
        steps("all at once")
            .sends([get("/1"), get("/2"), request("HEAD", "/3", &[]), get("/4")].concat())
            .reads("GET")
            .reads("GET")
            .reads("HEAD")
            .reads("GET"),
        steps("all at once, with bodies")
            .sends(
                [
                    post("/1", "one"),
                    get("/2"),
                    request("POST", "/3", &["transfer-encoding: chunked"])
                        + "5\r\nthree\r\n0\r\n\r\n",
                    get("/4"),
                ]
                .concat(),
            )
            .reads("POST")
            .reads("GET")
            .reads("POST")
            .reads("GET")
            .differs(
                DifferenceReason::Counted,
                &[
                    "- upstream 3: body by length, 5 bytes: three",
                    "+ upstream 3: body by chunks, 5 bytes: three",
                ],
            ),
        steps("an empty line between")
            .sends(get("/1"))
            .reads("GET")
            .sends("\r\n")
            .sends(get("/2"))
            .reads("GET"),
        steps("the last one closes")
            .sends([get("/1"), request("GET", "/2", &["connection: close"])].concat())
            .reads("GET")
            .reads("GET"),
        case(
            "the first one closes",
            request("GET", "/", &["connection: close"]),
        ),
        case("in capitals", request("GET", "/", &["Connection: Close"])),
        case(
            "closes after a body",
            request("POST", "/", &["connection: close", "content-length: 2"]) + "ab",
        ),
    ])
    .await;
}

#[tokio::test]
async fn old_clients() {
    let old = |lines: &str| format!("GET / HTTP/1.0\r\n{lines}\r\n");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let cases = [
        case("close", old("Host: shop.example\r\n")),
        case(
            "keep",
            old("Host: shop.example\r\nConnection: keep-alive\r\n"),
        ),
        case("know no chunks", old("Host: shop.example\r\n")).answered(Answer::of(chunked)),
        case(
            "send bodies",
            "POST / HTTP/1.0\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nab",
        ),
    ];
    let lines = ["- client 1: HTTP/1.1 200 OK", "+ client 1: HTTP/1.0 200 OK"];
    let cases = cases.map(|case| case.differs(DifferenceReason::Version, &lines));
    play(cases.into()).await;
}

#[tokio::test]
async fn upgraded_connections() {
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade\r\nX-Chat: 1\r\n\r\n";
    let wanted = ["connection: upgrade", "upgrade: chat"];
    play(vec![
        case("agreed", request("GET", "/", &wanted)).answered(Answer::of(agreed).repeating()),
        case(
            "agreed among other words",
            request(
                "GET",
                "/",
                &["connection: keep-alive, Upgrade", "upgrade: chat"],
            ),
        )
        .answered(Answer::of(agreed).repeating()),
        case("not agreed", request("GET", "/", &wanted)),
        case("refused", request("GET", "/", &wanted)).answered(Answer::of(
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: chat\r\nContent-Length: 0\r\n\r\n",
        )),
    ])
    .await;
}
