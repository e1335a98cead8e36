//! Clients that are too slow, too silent, or send too much.

use crate::kit::{CONFIG, Client, Server, line};
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const SOON: Duration = Duration::from_millis(50);
const NEVER: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let bounds = Bounds {
        resp_idle_time: SOON,
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    let mut client = Client::connect(server.resp).await;
    assert_eq!(client.ask("ping").await, "+PONG\r\n");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_partial_command_times_out() {
    let bounds = Bounds {
        body_time: SOON,
        resp_idle_time: NEVER,
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    for half in [&b"*2\r\n$4\r\nECHO\r\n"[..], b"PIN", b"*"] {
        let mut client = Client::connect(server.resp).await;
        assert_eq!(client.ask("ping").await, "+PONG\r\n");
        client.send(half).await;
        assert_eq!(client.rest().await, "");
    }
}

/// Otherwise a client could hold a connection forever with a byte now and then.
#[tokio::test]
async fn a_trickling_partial_command_gains_no_time() {
    let bounds = Bounds {
        body_time: SOON,
        resp_idle_time: NEVER,
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    let mut client = Client::connect(server.resp).await;
    client.send(b"*2\r\n$4\r\nECHO\r\n$60000\r\n").await;
    let mut sent = 0;
    let mut byte = [0];
    // Sends a byte at a time until the server has closed.
    while client.stream.write_all(b"x").await.is_ok() {
        sent += 1;
        assert!(sent < 60_000, "still connected");
        let reading = client.stream.read(&mut byte);
        if let Ok(read) = timeout(Duration::from_millis(1), reading).await {
            assert_eq!(read.unwrap_or(0), 0);
            break;
        }
    }
}

/// A read may end in the middle of a command every time, as long as commands are completed.
#[tokio::test]
async fn commands_split_across_reads_are_always_answered() {
    let bounds = Bounds {
        body_time: Duration::from_millis(400),
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    let mut client = Client::connect(server.resp).await;
    let began = tokio::time::Instant::now();
    client.send(b"*1\r\n$4\r\nPI").await;
    while began.elapsed() < bounds.body_time * 3 {
        client.send(b"NG\r\n*1\r\n$4\r\nPI").await;
        assert_eq!(client.reply().await, "+PONG\r\n");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_paused_and_then_closed() {
    let bounds = Bounds {
        idle_time: SOON,
        resp_idle_time: NEVER,
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    let mut client = Client::connect(server.resp).await;
    let echo = line(&format!("echo {}", "x".repeat(50_000)));
    let mut sent = 0_usize;
    // The sockets of both sides hold a bounded amount, so sending ends.
    while client.stream.write_all(&echo).await.is_ok() {
        sent += 1;
        assert!(sent < 10_000, "read half a gigabyte without replying");
    }
}

#[tokio::test]
async fn a_reply_is_not_lost_while_the_client_is_sending() {
    let server = Server::start(CONFIG).await;
    let mut client = Client::connect(server.resp).await;
    client.send(b"*x\r\n").await;
    for _ in 0..20 {
        // The server may have closed by now.
        client.stream.write_all(&[b'y'; 1_000]).await.ok();
    }
    assert_eq!(
        client.rest().await,
        "-ERR Protocol error: invalid multibulk length\r\n"
    );
}

#[tokio::test]
async fn a_long_pipeline_is_answered_in_order() {
    let server = Server::start(CONFIG).await;
    let client = Client::connect(server.resp).await;
    let (read, mut write) = client.stream.into_split();
    let count = 50_000;
    let sending = async move {
        for n in 0..count {
            write.write_all(&line(&format!("echo {n}"))).await.unwrap();
        }
        write.write_all(&line("quit")).await.unwrap();
    };
    let mut client = Client::over(tokio::io::join(read, tokio::io::sink()));
    let (said, ()) = tokio::join!(client.rest(), sending);
    let mut lines = said.lines();
    for n in 0..count {
        assert_eq!(lines.nth(1), Some(&*n.to_string()));
    }
    assert_eq!(lines.next(), Some("+OK"));
}
