//! A client that is banned while its connection is open.

use super::{Echo, connect, receive, talk, try_connect};
use crate::kit::Gate;
use futures_util::SinkExt;
use std::fs;
use tokio_tungstenite::tungstenite::{Error, Message};

#[tokio::test]
async fn a_message_of_a_newly_listed_client_closes_the_connection() {
    let echo = Echo::start().await;
    let list = tempfile_path("messages");
    fs::write(&list, "192.0.2.1\n").unwrap();
    let gate = Gate::start(&format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
guards: [{{ name: blacklist, deny: ip, file: {list}, refresh: 100ms }}]
routes: [{{ name: all, upstreams: ['{}'], policy: none, messages: api }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
",
        echo.url()
    ))
    .await;
    let mut socket = connect(&gate).await;
    talk(&mut socket, "hello").await;
    fs::write(&list, "127.0.0.1\n").unwrap();
    let closed = loop {
        // Until the list is refreshed, messages pass.
        socket.send(Message::text("still here")).await.unwrap();
        match receive(&mut socket).await {
            Some(Message::Text(_)) => {}
            other => break other,
        }
    };
    assert!(
        matches!(closed, Some(Message::Close(Some(_)))),
        "{closed:?}"
    );
    let Err(Error::Http(refused)) = try_connect(&gate).await else {
        panic!("not refused");
    };
    assert_eq!(refused.status(), 429);
    fs::remove_file(&list).unwrap();
}

/// Returns the path of a file for this test alone.
fn tempfile_path(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
    path.display().to_string()
}
