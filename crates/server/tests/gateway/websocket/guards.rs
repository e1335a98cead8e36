//! Who is listed while the connection is open is heard no longer.

use super::{Echo, connect, hear, talk, try_connect};
use crate::kit::Gate;
use futures_util::SinkExt;
use std::fs;
use tokio_tungstenite::tungstenite::{Error, Message};

#[tokio::test]
async fn a_message_of_somebody_listed_since_closes_the_connection_and_is_not_heard() {
    let echo = Echo::start().await;
    let list = tempfile_path("messages");
    fs::write(&list, "192.0.2.1\n").unwrap();
    let gate = Gate::start(&format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
guards: [{{ name: blacklist, refuse: ip, file: {list}, refresh: 100ms }}]
routes: [{{ id: all, upstreams: ['{}'], policy: none, messages: api }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
",
        echo.url()
    ))
    .await;
    let mut socket = connect(&gate).await;
    talk(&mut socket, "hello").await;
    fs::write(&list, "127.0.0.1\n").unwrap();
    let closed = loop {
        // Until the list has been read again, it is heard and said back.
        socket.send(Message::text("still here")).await.unwrap();
        match hear(&mut socket).await {
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

/// A file of this test alone.
fn tempfile_path(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
    path.display().to_string()
}
