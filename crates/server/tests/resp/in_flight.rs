//! Requests in flight: acquired, renewed, released.

use crate::kit::{Client, Server};
use crate::same::values;

const JOBS: &str = "
listen: { http: '127.0.0.1:0', resp: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies: [{ name: api, limits: [{ name: at-once, key: user, concurrent: 2, hold: 1h }] }]
";

/// Returns the id in the reply to `TG.ACQUIRE` in RESP2, whose last bulk string it is.
fn id(said: &str) -> &str {
    let (_, rest) = said
        .rsplit_once("\r\n$")
        .unwrap_or_else(|| panic!("{said}"));
    rest.split("\r\n").nth(1).unwrap()
}

#[tokio::test]
async fn permits_are_held_until_they_are_released() {
    let server = Server::start(JOBS).await;
    let mut client = Client::connect(server.resp).await;
    let acquire = "TG.ACQUIRE api user ann ttl_ms 60000";
    let first = client.ask(acquire).await;
    assert!(
        first.starts_with("*3\r\n*7\r\n:1\r\n$7\r\nat-once\r\n"),
        "{first}"
    );
    assert!(first.ends_with("\r\n:60000\r\n"), "{first}");
    // A check that does not release its permit holds it for the time of the limit.
    let checked = client.ask("TG.CHECK api user ann").await;
    assert_eq!(values(&checked)[..4], ["1", "at-once", "2 at once", "0"]);
    let refused = client.ask(acquire).await;
    assert!(refused.starts_with("*3\r\n*7\r\n:0\r\n"), "{refused}");
    assert!(refused.ends_with("$-1\r\n:-1\r\n"), "{refused}");

    let id = id(&first);
    assert_eq!(client.ask(&format!("TG.RENEW {id} 120000")).await, ":1\r\n");
    assert_eq!(client.ask(&format!("TG.RELEASE {id}")).await, ":1\r\n");
    assert_eq!(client.ask(&format!("TG.RELEASE {id}")).await, ":0\r\n");
    assert_eq!(client.ask(&format!("TG.RENEW {id}")).await, ":0\r\n");

    client.ask("HELLO 3").await;
    let third = client.ask(acquire).await;
    assert!(
        third.starts_with("%3\r\n$8\r\ndecision\r\n%7\r\n"),
        "{third}"
    );
    assert!(third.contains("\r\n$2\r\nid\r\n$"), "{third}");
    assert_eq!(client.ask("TG.RELEASE nothing").await, "#f\r\n");
}

#[tokio::test]
async fn mistakes_are_named() {
    let server = Server::start(JOBS).await;
    let mut client = Client::connect(server.resp).await;
    for (command, said) in [
        (
            "TG.CHECK api ttl_ms 5",
            "-ERR ttl_ms: only for TG.ACQUIRE\r\n",
        ),
        (
            "TG.ACQUIRE api user",
            "-ERR wrong number of arguments for 'tg.acquire' command\r\n",
        ),
        (
            "TG.ACQUIRE api ttl_ms 0",
            "-ERR ttl_ms: expected a whole number of milliseconds, at least 1, found `0`\r\n",
        ),
        (
            "TG.RENEW a soon",
            "-ERR ttl_ms: expected a whole number of milliseconds, at least 1, found `soon`\r\n",
        ),
        (
            "TG.RELEASE",
            "-ERR wrong number of arguments for 'tg.release' command\r\n",
        ),
    ] {
        assert_eq!(client.ask(command).await, said);
    }
}
