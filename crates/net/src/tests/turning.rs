//! Upgrades, accepted and declined.

use super::kit::{IDLE, SocketlessServer, piece, statuses};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

fn upgrade(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn data_in_a_tunnel_is_not_inspected() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    // Even before the upgrade is accepted.
    let request = upgrade("/tunnel");
    client.write_all(request.as_bytes()).await.unwrap();
    client.write_all(b"\0early ").await.unwrap();
    let mut replies = piece(&mut client).await;
    assert_eq!(statuses(&replies), ["101"]);
    client.write_all(b"late\n\n").await.unwrap();
    while !replies.ends_with("\r\n\r\n\0early late\n\n") {
        replies.push_str(&piece(&mut client).await);
    }
    // One direction may end before the other.
    client.write_all(b"end").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "end");
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_closing_listener_notifies_tunnels_and_waits_for_them() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client
        .write_all(upgrade("/tunnel").as_bytes())
        .await
        .unwrap();
    assert_eq!(statuses(&piece(&mut client).await), ["101"]);
    // Regardless of how long nothing happens in it.
    assert!(timeout(IDLE * 10, client.read_u8()).await.is_err());
    let finished = timeout(IDLE, house.tasks.finished());
    assert!(finished.await.is_err(), "nobody knows of it");
    house.drain();
    assert_eq!(piece(&mut client).await, "bye");
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_declined_upgrade_requests_are_parsed_as_usual() {
    for (next, status) in [
        ("GET /next HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
        ("GET /next HTTP/1.1\nHost: a\r\n\r\n", "400"),
        ("\0", "400"),
    ] {
        let house = SocketlessServer::new();
        let mut client = house.connect();
        // In one piece, and after a request without an upgrade.
        let requests = format!(
            "GET /first HTTP/1.1\r\nHost: a\r\n\r\n{}{next}",
            upgrade("/declined")
        );
        client.write_all(requests.as_bytes()).await.unwrap();
        let mut replies = String::new();
        while statuses(&replies).len() < 3 {
            replies.push_str(&piece(&mut client).await);
        }
        assert_eq!(statuses(&replies), ["200", "200", status], "{next}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_leaving_during_its_upgrade_is_detected() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client
        .write_all(upgrade("/never").as_bytes())
        .await
        .unwrap();
    tokio::task::yield_now().await;
    drop(client);
    let noticed = timeout(IDLE, house.tasks.finished());
    assert!(noticed.await.is_ok());
}
