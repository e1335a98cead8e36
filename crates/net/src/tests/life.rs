//! The lifetime of a connection, in virtual time.

use super::kit::{IDLE, SocketlessServer, exchange, piece, statuses};
use crate::idle_clock::Pulse;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    sleep(IDLE / 2).await;
    assert_eq!(house.tasks.count(), 1);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_head_times_out() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    for byte in get(&"x".repeat(500)) {
        if client.write_all(&[byte]).await.is_err() {
            return;
        }
        sleep(IDLE / 10).await;
    }
    panic!("it was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_slow_response_is_awaited() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&get("/never")).await.unwrap();
    let answer = client.read_u8();
    assert!(timeout(IDLE * 10, answer).await.is_err(), "it was closed");
}

#[tokio::test(start_paused = true)]
async fn a_pausing_response_is_awaited() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&get("/quiet")).await.unwrap();
    assert_eq!(statuses(&piece(&mut client).await), ["200"]);
    assert!(
        timeout(IDLE * 10, client.read_u8()).await.is_err(),
        "it was closed"
    );
    // Its end is noticed after a disconnect.
    drop(client);
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_response_is_cut() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&get("/endless")).await.unwrap();
    let cut = timeout(IDLE * 2, house.tasks.finished());
    assert!(cut.await.is_ok(), "it was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_client_reading_slowly_is_not_disconnected() {
    let house = SocketlessServer::new();
    let mut client = house.connect();
    client.write_all(&get("/endless")).await.unwrap();
    // So little that it takes several checks until a new piece is requested.
    for _ in 0..200 {
        client.read_exact(&mut [0; 4 << 10]).await.unwrap();
        sleep(IDLE / 20).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_makes_room_at_once() {
    let house = SocketlessServer::new();
    for asked in [false, true] {
        let pulse = Arc::<Pulse>::default();
        let mut client = house.connect_with(Arc::clone(&pulse));
        if asked {
            client.write_all(&get("/nth")).await.unwrap();
            assert_eq!(statuses(&piece(&mut client).await), ["200"]);
        }
        pulse.evict();
        let closed = timeout(IDLE / 10, client.read_u8()).await;
        assert!(closed.unwrap().is_err(), "there is more");
    }
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_busy_again_answers_before_it_makes_room() {
    let house = SocketlessServer::new();
    let pulse = Arc::<Pulse>::default();
    let mut client = house.connect_with(Arc::clone(&pulse));
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    while pulse.idle_since().is_some() {
        yield_now().await;
    }
    pulse.evict();
    sleep(IDLE / 10).await;
    let replies = exchange(client, b"hi").await;
    assert_eq!(statuses(&replies), ["200"]);
    assert!(replies.ends_with("hi"), "{replies}");
    assert!(replies.contains("connection: close"), "{replies}");
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_does_not_outlive_its_eviction() {
    let house = SocketlessServer::new();
    let pulse = Arc::<Pulse>::default();
    let mut client = house.connect_with(Arc::clone(&pulse));
    client.write_all(&get("/endless")).await.unwrap();
    while pulse.idle_since().is_some() {
        yield_now().await;
    }
    pulse.evict();
    let closed = timeout(IDLE * 3, house.tasks.finished());
    assert!(closed.await.is_ok(), "it keeps its place");
}

#[tokio::test(start_paused = true)]
async fn a_response_still_being_read_is_not_cut_by_eviction() {
    let house = SocketlessServer::new();
    let pulse = Arc::<Pulse>::default();
    let mut client = house.connect_with(Arc::clone(&pulse));
    let body = "x".repeat(40_000);
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    let first = piece(&mut client).await;
    // hyper has all of the response, and the client a part.
    while pulse.is_busy() {
        yield_now().await;
    }
    assert_eq!(pulse.idle_since(), None);
    pulse.evict();
    let replies = first + &exchange(client, b"").await;
    assert_eq!(statuses(&replies), ["200"]);
    let received = replies.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(received.len(), body.len());
    house.finished().await;
}

#[tokio::test(start_paused = true)]
async fn each_connection_has_its_own_state() {
    let house = SocketlessServer::new();
    let requests = [get("/nth"), get("/nth"), get("/nth")].concat();
    for _ in 0..2 {
        let replies = exchange(house.connect(), &requests).await;
        for nth in ["0", "1", "2"] {
            assert!(replies.contains(&format!("\r\n\r\n{nth}")), "{replies}");
        }
    }
}
