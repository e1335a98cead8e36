//! Accepting connections: bounded, with TLS if the listener has it, until the listener closes.

use super::accept_log::AcceptLog;
use super::bind::BoundListener;
use super::connection_handler::{
    AcceptedConnection, ConnectionHandler, ListenerConfig, TlsHandshake,
};
use super::idle_clock::Pulse;
use super::peer_stream::PeerStream;
use super::phase::PhaseWatch;
use super::room::{ConnectionPermit, ConnectionRoom, Origin};
use super::socket::{Socket, Stream};
use super::tls::{self, ListenerTls};
use crate::tasks::Tasks;
use prometheus_client::metrics::gauge::Gauge;
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// The pause while there is no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The resolution of idle times of connections.
const SECOND: Duration = Duration::from_secs(1);

/// The acceptor of one listener's connections.
struct Acceptor<R> {
    reception: Arc<R>,
    phase: PhaseWatch,
    tasks: Arc<Tasks>,
    room: Arc<ConnectionRoom>,
    origin: Box<dyn Fn(IpAddr) -> Origin + Send + Sync>,
    tls: Option<Arc<ListenerTls>>,
}

/// Accepts connections until the listener closes, and serves them.
pub fn open<R: ConnectionHandler>(
    bound: BoundListener,
    reception: R,
    phase: PhaseWatch,
    tasks: &Arc<Tasks>,
    origin: impl Fn(IpAddr) -> Origin + Send + Sync + 'static,
) {
    let threshold = reception.threshold();
    let most = threshold.bounds.connections;
    let gauge = &threshold.metrics.connections_max;
    gauge.set(i64::try_from(most).unwrap_or(i64::MAX));
    let acceptor = Acceptor {
        room: Arc::new(ConnectionRoom::new(most, bound.of_address)),
        reception: Arc::new(reception),
        phase,
        tasks: Arc::clone(tasks),
        origin: Box::new(origin),
        tls: bound.tls,
    };
    tasks.spawn(acceptor.run(bound.socket));
}

impl<R: ConnectionHandler> Acceptor<R> {
    /// Accepts until the listener closes.
    async fn run(self, socket: Socket) {
        let mut phase = self.phase.clone();
        let mut waiting = None;
        tokio::select! {
            () = self.accept(&socket, &mut waiting) => {}
            () = phase.reaches(self.reception.threshold().closes_in) => {}
        }
        self.empty_queue(socket, waiting);
    }

    /// Accepts the connections that the kernel has established, whose clients may have sent a request; then
    /// closes the socket.
    fn empty_queue(&self, socket: Socket, waiting: Option<(Stream, Origin, IpAddr)>) {
        if let (Some((stream, origin, peer)), Some(permit)) = (waiting, self.room.free()) {
            self.accept_connection(stream, origin, peer, permit);
        }
        let Ok(queue) = socket.into_queue() else {
            return;
        };
        while let Some(permit) = self.room.free() {
            match queue.next() {
                Ok((stream, peer)) => {
                    self.accept_connection(stream, (self.origin)(peer), peer, permit);
                }
                Err(error) if is_the_clients(&error) => {}
                // The queue is empty.
                Err(_) => return,
            }
        }
    }

    /// Accepts until cancelled. A connection is `waiting` while there is no place for it.
    async fn accept(&self, socket: &Socket, waiting: &mut Option<(Stream, Origin, IpAddr)>) {
        let threshold = self.reception.threshold();
        let mut trouble = AcceptLog::default();
        let mut seconds = interval(SECOND);
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = socket.accept() => accepted,
                _ = seconds.tick() => {
                    self.room.tick();
                    continue;
                }
            };
            match accepted {
                Ok((stream, peer)) => {
                    trouble.note_success();
                    let origin = (self.origin)(peer);
                    *waiting = Some((stream, origin, peer));
                    match self.make_way(origin).await {
                        Some(closed) => threshold.metrics.closed_of_address(closed),
                        None => {
                            *waiting = None;
                            threshold.metrics.refused.inc();
                            trouble.note_refused(threshold, origin);
                            continue;
                        }
                    }
                    let permit = self.place(&mut trouble).await;
                    if let (Some(permit), Some((stream, origin, peer))) = (permit, waiting.take()) {
                        self.accept_connection(stream, origin, peer, permit);
                    }
                }
                // The client gave up before its connection was accepted.
                Err(error) if is_the_clients(&error) => {
                    debug!(event = "connection_lost", %error, "connection lost before it was accepted");
                }
                Err(error) => {
                    trouble.note_failure(threshold, &error);
                    if is_exhaustion(&error) {
                        threshold.metrics.closed_when_full(self.room.evict());
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Makes sure that `origin` may have another connection. Connections that were signalled to close get a
    /// turn to do so first: a burst of new ones must not be refused because of them.
    async fn make_way(&self, origin: Origin) -> Option<usize> {
        let closed = self.room.make_way(origin);
        if closed.is_some() {
            return closed;
        }
        yield_now().await;
        self.room.make_way(origin)
    }

    /// Waits for a place. While there is none, the longest idle connections are signalled to close.
    async fn place(&self, trouble: &mut AcceptLog) -> Option<OwnedSemaphorePermit> {
        let threshold = self.reception.threshold();
        trouble.note_room(threshold, self.room.left());
        if let Some(permit) = self.room.free() {
            return Some(permit);
        }
        loop {
            threshold.metrics.closed_when_full(self.room.evict());
            if let Ok(permit) = timeout(PAUSE, self.room.freed()).await {
                return permit;
            }
        }
    }

    /// Serves a connection in its own task. Its socket holds `permit` until it closes.
    fn accept_connection(
        &self,
        stream: Stream,
        origin: Origin,
        peer: IpAddr,
        permit: OwnedSemaphorePermit,
    ) {
        if let Err(error) = stream.prepare() {
            return debug!(event = "connection_lost", %error, "connection lost before it was accepted");
        }
        let metrics = &self.reception.threshold().metrics;
        metrics.accepted.inc();
        let (place, pulse) = self.room.enter(origin, permit);
        let mut arrival = AcceptedConnection {
            peer,
            secure: None,
            tasks: Arc::clone(&self.tasks),
            phase: self.phase.clone(),
            pulse,
            open: OpenCount::count(&metrics.connections, place),
        };
        let reception = Arc::clone(&self.reception);
        let acceptor = self.tls.as_ref().map(|tls| tls.acceptor());
        self.tasks.spawn(async move {
            let stream = match acceptor {
                None => PeerStream::Plain(stream),
                // Boxed: it is large, and connections without TLS need no space for it.
                Some(tls) => {
                    let shaken = handshake(&tls, stream, reception.threshold(), &arrival.pulse);
                    let Some(stream) = Box::pin(shaken).await else {
                        return;
                    };
                    arrival.secure = Some(TlsHandshake {
                        is_http2: tls::is_http2(&stream),
                        certificate: tls::certificate(&stream),
                    });
                    PeerStream::Secure(Box::new(stream))
                }
            };
            reception.serve(stream, arrival).await;
        });
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: Stream,
    threshold: &ListenerConfig,
    pulse: &Pulse,
) -> Option<tokio_rustls::server::TlsStream<Stream>> {
    let shaken = tokio::select! {
        biased;
        shaken = timeout(threshold.bounds.handshake_time, tls.accept(stream)) => shaken,
        () = pulse.evicted() => return None,
    };
    let why = match shaken {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    threshold.metrics.broken.inc();
    debug!(
        event = "tls_handshake_failed",
        listener = threshold.name,
        error = why,
        "TLS handshake failed"
    );
    None
}

/// A connection that is counted as open until it is dropped, even by an abort.
struct OpenCount {
    connections: Gauge,
    _place: ConnectionPermit,
}

impl OpenCount {
    fn count(connections: &Gauge, place: ConnectionPermit) -> Self {
        connections.inc();
        Self {
            connections: connections.clone(),
            _place: place,
        }
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.connections.dec();
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

/// Returns true if the system lacks descriptors or memory, some of which idle connections hold.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_descriptors_or_memory_closes_idle_connections() {
        for (errno, closes) in [
            (Errno::MFILE, true),
            (Errno::NFILE, true),
            (Errno::NOBUFS, true),
            (Errno::NOMEM, true),
            (Errno::PERM, false),
            (Errno::PROTO, false),
            (Errno::NETDOWN, false),
        ] {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(is_exhaustion(&error), closes, "{error}");
        }
        assert!(!is_exhaustion(&io::Error::other("no errno")));
    }
}
