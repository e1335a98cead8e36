//! All faults, thousands of times: no resource leaks.

use super::kit::{Link, OK, Place, Program, RawUpstream};
use crate::kit::{Client, in_time, request};
use futures_util::StreamExt;
use futures_util::stream;
use std::net::SocketAddr;

const MIB: usize = 1 << 20;
const THOUSANDS: usize = 20;
/// The number of concurrent faults.
const AT_ONCE: usize = 32;

/// The faults, each with the client's reaction; some clients do not wait for a response.
const FAULTS: [(&str, AfterRequest); 12] = [
    ("GET /ok", AfterRequest::Wait),
    ("GET /nobody", AfterRequest::Wait),
    ("GET /close", AfterRequest::Wait),
    ("GET /reset", AfterRequest::Wait),
    ("GET /half", AfterRequest::Wait),
    ("GET /garbage", AfterRequest::Wait),
    ("GET /both", AfterRequest::Wait),
    ("GET /silent", AfterRequest::Wait),
    ("GET /quiet", AfterRequest::Wait),
    ("GET /endless", AfterRequest::GoWithin),
    ("POST /ok", AfterRequest::GoBefore),
    ("POST /ok", AfterRequest::SendTooMuch),
];

/// What a client does after its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterRequest {
    /// Waits for the response or the end.
    Wait,
    /// Leaves after the response has begun.
    GoWithin,
    /// Leaves in the middle of its request body.
    GoBefore,
    SendTooMuch,
}

async fn upstream() -> RawUpstream {
    RawUpstream::start(|mut link: Link| async move {
        while let Some((head, _)) = link.request().await? {
            match head.line.split(' ').nth(1).unwrap() {
                "/close" => return Ok(()),
                "/reset" => return link.reset(),
                "/half" => {
                    return link
                        .say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
                        .await;
                }
                "/garbage" => link.say("garbage\r\n\r\n").await?,
                "/both" => {
                    let both = "content-length: 2\r\ntransfer-encoding: chunked";
                    link.say(format!("HTTP/1.1 200 OK\r\n{both}\r\n\r\n0\r\n\r\n"))
                        .await?;
                }
                "/silent" => return link.until_closed().await,
                "/quiet" => {
                    link.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
                        .await?;
                    return link.until_closed().await;
                }
                "/endless" => {
                    link.say("HTTP/1.1 200 OK\r\n\r\n").await?;
                    let piece = vec![b'x'; 16 << 10];
                    loop {
                        link.say(&piece).await?;
                    }
                }
                _ => link.say(OK).await?,
            }
        }
        Ok(())
    })
    .await
}

async fn go_wrong(address: SocketAddr, nth: usize) {
    let (line, then) = FAULTS[nth % FAULTS.len()];
    let (method, target) = line.split_once(' ').unwrap();
    let mut client = Client::connect(address).await;
    let fields: &[&str] = match then {
        AfterRequest::Wait | AfterRequest::GoWithin => &[],
        AfterRequest::GoBefore => &["content-length: 9"],
        AfterRequest::SendTooMuch => &["transfer-encoding: chunked"],
    };
    let body = match then {
        AfterRequest::Wait | AfterRequest::GoWithin => String::new(),
        AfterRequest::GoBefore => "hello".to_owned(),
        AfterRequest::SendTooMuch => format!("800\r\n{}\r\n", "x".repeat(0x800)),
    };
    // In one write: clients with a short patience must not wait for the rest.
    client.send(request(method, target, fields) + &body).await;
    match then {
        AfterRequest::Wait => drop(client.try_reply(method).await),
        AfterRequest::GoWithin => drop(client.head().await),
        AfterRequest::GoBefore => {}
        AfterRequest::SendTooMuch => {
            let reply = client.reply(method).await;
            assert_eq!(reply.status(), 413, "{}", reply.text());
        }
    }
}

/// Runs a thousand faults, as many at once as allowed.
async fn thousand(address: SocketAddr) {
    let each = stream::iter(0..1_000).map(|nth| go_wrong(address, nth));
    each.buffer_unordered(AT_ONCE).collect::<()>().await;
}

#[tokio::test]
async fn after_twenty_thousand_faults_nothing_leaks() {
    let upstream = upstream().await;
    let place = Place::reserve();
    let (at, nobody) = (upstream.address, place.address);
    let gate = Program::start(&format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - {{ name: nobody, match: {{ path: /nobody }}, upstreams: ['http://{nobody}'], policy: none }}
  - name: all
    upstreams: ['http://{at}']
    policy: none
    body_bytes: 1KiB
    timeouts: {{ response: 20ms, idle: 20ms }}
policies: [{{ name: api, limits: [{{ name: x, rate: 1/s }}] }}]
"
    ))
    .await;
    let sockets = gate.sockets();
    let mut memory = Vec::new();
    for _ in 0..THOUSANDS {
        thousand(gate.address).await;
        at_rest(&gate).await;
        memory.push(gate.memory());
    }
    // An allocator's spare memory varies by several MiB, so one thousand shows little about the
    // next. But leaks add up: less than a KiB per request would show.
    let (first, second) = memory.split_at_mut(THOUSANDS / 2);
    let grown = median(second).saturating_sub(median(first));
    assert!(grown < 8 * MIB, "{grown} bytes: {memory:?}");

    // Idle connections are kept until the upstream closes them.
    drop(upstream);
    in_time("no more sockets than before", async {
        while gate.sockets() > sockets {
            gate.page().await;
        }
    })
    .await;
    let page = gate.page().await;
    for outcome in [
        "answered",
        "refused_connection",
        "response_timeout",
        "broken",
        "cut_short",
        "upload_failed",
    ] {
        assert!(page.outcomes(outcome) > 0, "{outcome}: {page:?}");
    }
}

async fn at_rest(gate: &Program) {
    in_time("nothing under way, and nobody connected", async {
        loop {
            let page = gate.page().await;
            if page.in_flight() == 0 && page.connections() == 0 {
                return;
            }
        }
    })
    .await;
}

fn median(of: &mut [usize]) -> usize {
    of.sort_unstable();
    of[of.len() / 2]
}
