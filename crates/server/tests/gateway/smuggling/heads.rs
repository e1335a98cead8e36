//! The end of a head or of its lines, and its host.

use super::{Part, Stage, post, raw, refuse};
use crate::kit::Client;

#[tokio::test]
async fn heads_that_end_in_two_places() {
    refuse(
        Part::Head,
        &[
            ("bare LF throughout", raw("GET / HTTP/1.1\nhost: a\n\n")),
            (
                "bare LF after the first line",
                raw("GET / HTTP/1.1\nhost: a\r\n\r\n"),
            ),
            (
                "bare LF after a header",
                raw("GET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n"),
            ),
            ("bare LF at the end", raw("GET / HTTP/1.1\r\nhost: a\r\n\n")),
            (
                "bare LF before CRLF",
                raw("GET / HTTP/1.1\r\nhost: a\n\r\n"),
            ),
            ("bare CR throughout", raw("GET / HTTP/1.1\rhost: a\r\r")),
            (
                "bare CR in a value",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\rz\r\n\r\n"),
            ),
            (
                "bare CR in a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx\ry: z\r\n\r\n"),
            ),
            (
                "bare CR at the end",
                raw("GET / HTTP/1.1\r\nhost: a\r\n\rx\r\n\r\n"),
            ),
            ("two CR", raw("GET / HTTP/1.1\r\nhost: a\r\r\n\r\n")),
            (
                "a fold",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n z\r\n\r\n"),
            ),
            (
                "a fold by a tab",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n\tz\r\n\r\n"),
            ),
            (
                "a fold of nothing",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n \r\n\r\n"),
            ),
            (
                "a fold of the first line",
                raw("GET / HTTP/1.1\r\n host: a\r\nhost: a\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn lines_that_are_not_one_name_and_one_value() {
    refuse(
        Part::Head,
        &[
            (
                "a space before the colon",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx : y\r\n\r\n"),
            ),
            (
                "a space within a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n"),
            ),
            ("no colon", raw("GET / HTTP/1.1\r\nhost: a\r\nx\r\n\r\n")),
            ("no name", raw("GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n")),
            (
                "a name beyond ASCII",
                raw("GET / HTTP/1.1\r\nhost: a\r\n\u{fc}: x\r\n\r\n"),
            ),
            (
                "a NUL in a value",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx: y\0z\r\n\r\n"),
            ),
            (
                "a NUL in a name",
                raw("GET / HTTP/1.1\r\nhost: a\r\nx\0: y\r\n\r\n"),
            ),
            (
                "a NUL in the target",
                raw("GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn first_lines_that_are_not_one_method_one_target_one_version() {
    let corpus = [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET / a HTTP/1.1",
        "GET / HTTP/1.1 HTTP/1.1",
        "GET /",
        "GET",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / HTTP/1.10",
        "GET / HTTP/01.1",
        "GET / http/1.1",
        "GET / HTTP/1,1",
        "GET / HTTP",
        "G(ET / HTTP/1.1",
        "G\u{fc}T / HTTP/1.1",
        "\r\n\r\nGET / HTTP/1.1",
        "\nGET / HTTP/1.1",
    ]
    .map(|line| (line, raw(&format!("{line}\r\nhost: a\r\n\r\n"))));
    refuse(Part::Head, &corpus).await;
}

#[tokio::test]
async fn hosts_that_are_not_one() {
    refuse(
        Part::Head,
        &[
            ("two", raw("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")),
            (
                "the same twice",
                raw("GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n"),
            ),
            ("none", raw("GET / HTTP/1.1\r\n\r\n")),
            (
                "two, one of them before a colon",
                raw("GET / HTTP/1.1\r\nhost: a\r\nhost : b\r\n\r\n"),
            ),
            ("a list", raw("GET / HTTP/1.1\r\nhost: a, b\r\n\r\n")),
            ("a path", raw("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n")),
            ("a space", raw("GET / HTTP/1.1\r\nhost: a b\r\n\r\n")),
            ("a user", raw("GET / HTTP/1.1\r\nhost: a@b\r\n\r\n")),
            (
                "another in the target",
                raw("GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n"),
            ),
            (
                "a user in the target",
                raw("GET http://a@b/ HTTP/1.1\r\nhost: b\r\n\r\n"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn bytes_between_two_requests_are_rejected() {
    let stage = Stage::set().await;
    for between in ["X\r\n", "\n", "\r\n\r\n", "\0", " ", "{}", "0\r\n\r\n"] {
        let mut client = Client::connect(stage.gate.address).await;
        client.send(post("content-length: 5", "hello")).await;
        assert_eq!(client.reply("POST").await.text(), "POST /");
        client.send(raw(between)).await;
        assert_eq!(client.reply("GET").await.status(), 400, "{between:?}");
        assert!(client.is_closed().await, "{between:?}");
        assert_eq!(stage.upstream.seen().len(), 1, "{between:?}");
    }
}

/// Bytes that a client sends before an upgrade is confirmed are a request if it is not.
#[tokio::test]
async fn requests_after_a_declined_upgrade_are_checked_as_strictly() {
    let stage = Stage::set().await;
    let wanted = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let mut client = Client::connect(stage.gate.address).await;
    client
        .send(format!("{wanted}GET /hidden HTTP/1.1\nhost: a\n\n"))
        .await;
    assert_eq!(client.reply("GET").await.status(), 200);
    assert_eq!(client.reply("GET").await.status(), 400);
    assert!(client.is_closed().await);
    assert_eq!(stage.upstream.seen().len(), 1);
    let mut client = Client::connect(stage.gate.address).await;
    client.send(raw(wanted)).await;
    assert_eq!(client.reply("GET").await.status(), 200);
    assert_eq!(client.reply("GET").await.text(), "GET /hidden");
}
