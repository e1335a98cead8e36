use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::redis::{Access, BlockingClient, FaultProxy, ProxyFaults, Server, until};

const SHORT: Duration = Duration::from_millis(50);

fn behind_proxy() -> (Server, FaultProxy, BlockingClient) {
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let client = connect(&proxy).unwrap();
    (server, proxy, client)
}

fn connect(proxy: &FaultProxy) -> io::Result<BlockingClient> {
    BlockingClient::connect(proxy.port(), &Access::default())
}

#[test]
fn without_faults_everything_passes_and_is_counted() {
    let (_server, proxy, mut client) = behind_proxy();
    assert_eq!(client.command(&["PING"]).text(), "PONG");
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
    assert_eq!(proxy.request_bytes(), 14);
    assert_eq!(proxy.reply_bytes(), 7);
    let big = "x".repeat(1 << 20);
    client.command(&["SET", "big", &big]).done();
    assert_eq!(client.command(&["GET", "big"]).text(), big);
    drop(client);
    until("the proxy has closed it too", || proxy.open() == 0);
}

#[test]
fn requests_whose_replies_are_dropped_have_been_carried_out() {
    let (server, proxy, mut client) = behind_proxy();
    proxy.set(ProxyFaults::drop_replies());
    client.patience(SHORT);
    assert!(client.try_command(&["INCR", "a"]).is_err());
    until("the server has counted", || {
        server.command(&["GET", "a"]) != crate::redis::RespReply::Nil
    });
    assert_eq!(proxy.reply_bytes(), 0);
    assert_eq!(proxy.open(), 1);
}

#[test]
fn a_black_hole_drops_requests() {
    let (server, proxy, mut client) = behind_proxy();
    proxy.set(ProxyFaults::blackhole());
    client.patience(SHORT);
    assert!(client.try_command(&["INCR", "a"]).is_err());
    proxy.set(ProxyFaults::none());
    assert!(server.command(&["GET", "a"]).is_nil());
    assert_eq!(connect(&proxy).unwrap().command(&["INCR", "a"]).int(), 1);
}

#[test]
fn a_delay_postpones_replies_and_keeps_their_order() {
    let (_server, proxy, mut client) = behind_proxy();
    proxy.set(ProxyFaults::slow(Duration::from_millis(200)));
    client.patience(SHORT);
    assert!(client.try_command(&["PING"]).is_err());
    client.patience(Duration::from_secs(5));
    // The answer to the first is on its way, and that to the second behind it.
    assert_eq!(client.command(&["ECHO", "b"]).text(), "PONG");
}

#[test]
fn connections_are_reset_refused_and_cut() {
    let (_server, proxy, mut client) = behind_proxy();
    proxy.reset();
    assert_eq!(proxy.open(), 0);
    let error = client.try_command(&["PING"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

    proxy.set(ProxyFaults::refuse());
    let error = connect(&proxy).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

    proxy.set(ProxyFaults {
        reset_new: true,
        ..ProxyFaults::none()
    });
    assert!(
        connect(&proxy)
            .and_then(|mut client| client.try_command(&["PING"]))
            .is_err()
    );

    // The first reply has seven bytes, so the second is cut short.
    proxy.set(ProxyFaults {
        cut_replies_after: Some(10),
        ..ProxyFaults::none()
    });
    let mut client = connect(&proxy).unwrap();
    assert_eq!(client.command(&["PING"]).text(), "PONG");
    assert!(client.try_command(&["PING"]).is_err());
    assert_eq!(proxy.reply_bytes(), 10);
}

#[test]
fn a_reset_never_ended_when_a_client_reconnected_at_once() {
    let (_server, proxy, mut client) = behind_proxy();
    let (proxy, done) = (Arc::new(proxy), Arc::new(AtomicBool::new(false)));
    let client = {
        let (proxy, done) = (Arc::clone(&proxy), Arc::clone(&done));
        thread::spawn(move || {
            while !done.load(Ordering::SeqCst) {
                if client.try_command(&["PING"]).is_err() {
                    client = connect(&proxy).unwrap_or(client);
                }
            }
        })
    };
    for _ in 0..50 {
        let before = proxy.accepted();
        proxy.reset();
        until("the client is back", || proxy.accepted() > before);
    }
    done.store(true, Ordering::SeqCst);
    client.join().unwrap();
}
