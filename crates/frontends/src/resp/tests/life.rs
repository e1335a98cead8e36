//! The life of connections over a stream in memory, in virtual time.

use super::kit::{bulk, decider};
use crate::resp::RespFrontend;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tidegate_net::connection_handler::{AcceptedConnection, ConnectionHandler, ListenerConfig};
use tidegate_net::idle_clock::Pulse;
use tidegate_net::metrics::ListenerMetrics;
use tidegate_net::phase::{self, Phase, PhaseController};
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{sleep, timeout};

/// The time within which an evicted or drained connection closes; shorter than the timeout of an
/// incomplete command.
const SOON: Duration = Duration::from_secs(1);

/// A connection, and the parts of the server that can end it.
struct Line {
    client: DuplexStream,
    pulse: Arc<Pulse>,
    lead: PhaseController,
    _tasks: Arc<Tasks>,
}

impl Line {
    fn connect() -> Self {
        let (lead, phase) = phase::channel();
        let threshold = ListenerConfig {
            name: "resp",
            bounds: Bounds::default(),
            metrics: ListenerMetrics::default(),
            closes_in: Phase::Draining,
            age: None,
        };
        let frontend = Arc::new(RespFrontend::new(threshold, decider().0, None));
        let (client, stream) = duplex(4 << 10);
        let pulse = Arc::<Pulse>::default();
        let tasks = Arc::<Tasks>::default();
        let arrival = AcceptedConnection {
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure: None,
            tasks: Arc::clone(&tasks),
            phase,
            pulse: Arc::clone(&pulse),
            open: (),
        };
        tasks.spawn(frontend.serve(stream, arrival));
        Self {
            client,
            pulse,
            lead,
            _tasks: tasks,
        }
    }

    /// Sends `bytes`, which end one `PING`, and reads its reply.
    async fn ping(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).await.unwrap();
        let mut reply = [0; 7];
        self.client.read_exact(&mut reply).await.unwrap();
        assert_eq!(&reply, b"+PONG\r\n");
    }

    /// Returns true if the server closes the connection soon.
    async fn closes(&mut self) -> bool {
        let read = timeout(SOON, self.client.read(&mut [0])).await;
        read.is_ok_and(|read| read.unwrap() == 0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_partial_command_does_not_protect_from_eviction() {
    for first in [&b"PING\r\n"[..], b"PING\r\nP"] {
        let mut line = Line::connect();
        line.ping(first).await;
        line.pulse.evict();
        assert!(line.closes().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_partial_command_does_not_delay_draining() {
    let mut line = Line::connect();
    line.ping(b"PING\r\nP").await;
    line.lead.enter(Phase::Draining);
    // A command in transit is answered.
    line.ping(b"ING\r\nP").await;
    assert!(line.closes().await);
}

#[tokio::test(start_paused = true)]
async fn a_client_sending_partial_commands_is_not_idle() {
    let mut line = Line::connect();
    line.ping(b"PING\r\nP").await;
    let step = Bounds::default().body_time * 9 / 10;
    let steps = Bounds::default().resp_idle_time.as_secs() * 2 / step.as_secs();
    for _ in 0..steps {
        sleep(step).await;
        line.ping(b"ING\r\nP").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_still_reading_replies_is_not_idle() {
    let mut line = Line::connect();
    line.ping(b"PING\r\n").await;
    assert!(line.pulse.idle_since().is_some());
    let echo = bulk(&["ECHO", &"x".repeat(20_000)]);
    line.client.write_all(&echo).await.unwrap();
    // The first part of the reply is there, and the rest does not fit.
    let head = line.client.read_u8().await.unwrap();
    assert_eq!((head, line.pulse.idle_since()), (b'$', None));
    line.pulse.evict();
    let mut rest = Vec::new();
    line.client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest.len(), "20000\r\n".len() + 20_000 + "\r\n".len());
}
