//! Replies of a real Redis to the same bytes.

use crate::kit::{CONFIG, Server, bulk, in_time, line};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Valid and invalid protocol.
const BYTES: &[&[u8]] = &[
    b"PING\r\n",
    b"PING\n",
    b"\r\n\r\nPING\r\n",
    b"  ping   a\r\n",
    b"ping 'a b'\r\n",
    b"ping \"a\\x41\\n\\q\"\r\n",
    b"ping \"a\"b\r\n",
    b"ping \"a\r\n",
    b"ping 'it\\'s'\r\n",
    b"ping a\"b c\"\r\n",
    b"ping ''\r\n",
    b"*0\r\n*1\r\n$4\r\nPING\r\n",
    b"*-1\r\n*1\r\n$4\r\nPING\r\n",
    b"*\r\n",
    b"*a\r\n",
    b"*2147483648\r\n",
    b"*1\r\n4\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
    b"*+1\r\n$4\r\nPING\r\n",
    b"*01\r\n$4\r\nPING\r\n",
    b"*1\rX$4\r\nPING\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"*1\r\n$\r\n",
    b"*1 \r\n$4\r\nPING\r\n",
    b"'foo\\n'\r\n",
    b"\"\" a\r\n",
    b"POST / HTTP/1.1\r\n",
    b"host: a\r\n",
];

/// Commands of one line.
const COMMANDS: &[&str] = &[
    "foo",
    "foo a b",
    "ping a b",
    "ECHO",
    "echo x",
    "client",
    "client foo",
    "CLIENT FOO x",
    "client setname",
    "client getname",
    "client getname x",
    "client no-evict on",
    "client no-evict x",
    "select 0",
    "select 99",
    "select a",
    "select",
    "select -1",
    "select 99999999999",
    "hello 4",
    "hello x",
    "hello 1",
    "hello 3 foo",
    "hello 3 auth a",
    "hello 3 auth bob x",
    "hello 3 setname",
    "hello 99999999999999999999",
    "auth",
    "auth x",
    "auth default x",
    "auth bob x",
    "auth a b c",
    "reset",
    "reset x",
    "quit x",
    "quit",
    "command count x",
    "command foo",
    "command info nosuch",
    "command docs nosuch",
    "command list x",
    "config get save",
    "config get",
    "config foo",
    "config get nosuch",
    "config",
    "info nosuch",
    "del",
    "del nosuch other",
    "unlink nosuch",
    "exists",
    "exists nosuch nosuch",
    "type nosuch",
    "type a b",
    "ttl nosuch",
    "ttl",
    "pttl nosuch",
];

/// Sequences of commands.
const TRANSACTIONS: &[&[&str]] = &[
    &["multi", "ping", "echo x", "exec", "ping"],
    &["multi", "exec"],
    &["multi", "multi", "ping", "exec"],
    &["multi", "foo a", "ping", "exec", "ping"],
    &["multi", "echo", "exec"],
    &["multi", "client foo", "exec"],
    &["multi", "multi x", "exec"],
    &["multi", "exec x", "ping", "exec"],
    &["multi", "discard x", "discard", "exec"],
    &["multi", "ping a b", "select 99", "ping", "exec"],
    &["multi", "watch a", "unwatch", "exec"],
    &["multi", "auth x", "exec"],
    &["multi", "reset", "exec"],
    &["multi", "ping", "discard", "exec"],
    &["multi", "ping", "quit"],
    &["exec"],
    &["discard"],
    &["unwatch"],
    &["watch"],
    &["multi x"],
];

/// Returns everything that a server sends for `bytes` until it closes. A `QUIT` marks the end if
/// the bytes themselves cause no close.
async fn reply_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.write_all(&line("quit")).await.unwrap();
    let mut said = Vec::new();
    let reading = stream.read_to_end(&mut said);
    // A reset after the last reply is an end as well.
    in_time("the end of a connection", reading).await.ok();
    said
}

#[tokio::test]
async fn any_bytes_are_answered_as_by_redis() {
    let redis = tidegate_testkit::redis::Server::start();
    let theirs: SocketAddr = redis.address().parse().unwrap();
    let server = Server::start(CONFIG).await;
    let ours = server.resp;
    let long = "x".repeat(200);
    let mut rows: Vec<Vec<u8>> = BYTES.iter().map(|bytes| bytes.to_vec()).collect();
    rows.extend(COMMANDS.iter().map(|words| line(words)));
    rows.push(bulk(&["foo", "a", "b\r\nc"]));
    rows.push(bulk(&["FoO", &long, "y"]));
    rows.push(bulk(&[&long, "a"]));
    rows.push(bulk(&["foo", &long[..100], &long[..100], "z"]));
    rows.push(bulk(&["client", "setname", "a b"]));
    rows.push([line("client setname abc"), line("client getname")].concat());
    for commands in TRANSACTIONS {
        rows.push(commands.iter().flat_map(|words| line(words)).collect());
    }
    for bytes in rows {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let (theirs, ours) = (reply_to(theirs, &bytes).await, reply_to(ours, &bytes).await);
        let show = |said: &[u8]| String::from_utf8_lossy(said).into_owned();
        assert_eq!(show(&ours), show(&theirs), "{shown:?}");
    }
}

#[tokio::test]
async fn unauthenticated_clients_get_the_same_error() {
    let redis = tidegate_testkit::redis::Server::start();
    redis.command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let theirs: SocketAddr = redis.address().parse().unwrap();
    let config = CONFIG.replace(
        "resp: '127.0.0.1:0'",
        "resp: { address: '127.0.0.1:0', token: hunter2 }",
    );
    let server = Server::start(&config).await;
    let ours = server.resp;
    let mut rows: Vec<Vec<u8>> = [
        "ping",
        "foo",
        "ping a b",
        "hello 4",
        "hello x",
        "hello 3 auth default no",
        "auth no",
        "auth default hunter2",
        "auth bob hunter2",
        "reset",
        "command",
        "client id",
        "client nosuch",
        "auth x y z",
        "echo",
    ]
    .iter()
    .map(|words| line(words))
    .collect();
    rows.push([line("auth hunter2"), line("ping")].concat());
    rows.push([line("auth hunter2"), line("reset"), line("ping")].concat());
    rows.push(
        [
            line("multi"),
            line("exec"),
            line("auth hunter2"),
            line("exec"),
        ]
        .concat(),
    );
    rows.push(
        [
            line("auth hunter2"),
            line("multi"),
            line("auth no"),
            line("exec"),
        ]
        .concat(),
    );
    rows.push(b"*11\r\n".to_vec());
    rows.push(b"*2\r\n$4\r\nauth\r\n$16385\r\n".to_vec());
    rows.push(b"ping 1 2 3 4 5 6 7 8 9 10 11 12\r\n".to_vec());
    for bytes in rows {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let (theirs, ours) = (reply_to(theirs, &bytes).await, reply_to(ours, &bytes).await);
        let show = |said: &[u8]| String::from_utf8_lossy(said).into_owned();
        assert_eq!(show(&ours), show(&theirs), "{shown:?}");
    }
}
