//! Accepting connections: bounded, through TLS where the door has it, until the door closes.

use super::bind::BoundDoor;
use super::phase::Watch;
use super::reception::{Arrival, Reception, Secure, Threshold};
use super::tls;
use super::trouble::Trouble;
use crate::tasks::Tasks;
use prometheus_client::metrics::gauge::Gauge;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts the connections of one door.
pub(super) struct Acceptor<R> {
    pub(super) reception: Arc<R>,
    pub(super) phase: Watch,
    pub(super) tasks: Arc<Tasks>,
    room: Arc<Semaphore>,
    tls: Option<TlsAcceptor>,
}

impl<R: Reception> Acceptor<R> {
    pub(super) fn new(
        reception: R,
        tls: Option<TlsAcceptor>,
        phase: Watch,
        tasks: Arc<Tasks>,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(reception.threshold().bounds.connections)),
            reception: Arc::new(reception),
            phase,
            tasks,
            tls,
        }
    }

    /// Accepts until the door closes.
    pub(super) async fn run(self, socket: TcpListener) {
        let mut phase = self.phase.clone();
        tokio::select! {
            () = self.accept(&socket) => {}
            () = phase.reaches(self.reception.threshold().closes_in) => {}
        }
        self.empty_queue(socket);
    }

    /// Accepts those whom the kernel has told that their connection stands, and who may have sent a
    /// request; then closes the socket.
    fn empty_queue(&self, socket: TcpListener) {
        // The system is asked itself: tokio only knows what it said some time ago.
        let Ok(socket) = socket.into_std() else {
            return;
        };
        while let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
            let accepted = socket.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(true)?;
                Ok((TcpStream::from_std(stream)?, peer.ip()))
            });
            match accepted {
                Ok((stream, peer)) => self.welcome(stream, peer, permit),
                Err(error) if is_the_clients(&error) => {}
                // Nobody waits any more.
                Err(_) => return,
            }
        }
    }

    /// Accepts for ever.
    async fn accept(&self, socket: &TcpListener) {
        let mut trouble = Trouble::default();
        loop {
            let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else {
                return;
            };
            trouble.note_room(self.reception.threshold(), self.room.available_permits());
            match socket.accept().await {
                Ok((stream, peer)) => {
                    trouble.note_success();
                    self.welcome(stream, peer.ip(), permit);
                }
                // The client gave up before we came to it.
                Err(error) if is_the_clients(&error) => debug!(%error, "lost a connection"),
                Err(error) => {
                    trouble.note_failure(self.reception.threshold(), &error);
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection in a task of its own. Its socket holds `permit` until it closes.
    fn welcome(&self, stream: TcpStream, peer: IpAddr, permit: OwnedSemaphorePermit) {
        // Answers are small and complete; waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            return debug!(%error, "lost a connection");
        }
        let metrics = &self.reception.threshold().metrics;
        metrics.accepted.inc();
        let mut arrival = Arrival {
            peer,
            secure: None,
            tasks: Arc::clone(&self.tasks),
            phase: self.phase.clone(),
            open: Open::count(&metrics.connections, permit),
        };
        let reception = Arc::clone(&self.reception);
        match self.tls.clone() {
            None => self.tasks.spawn(reception.serve(stream, arrival)),
            Some(tls) => self.tasks.spawn(async move {
                if let Some(stream) = handshake(&tls, stream, reception.threshold()).await {
                    let is_http2 = tls::is_http2(&stream);
                    let certificate = tls::certificate(&stream);
                    arrival.secure = Some(Secure {
                        is_http2,
                        certificate,
                    });
                    reception.serve(stream, arrival).await;
                }
            }),
        }
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    threshold: &Threshold,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    let shaken = timeout(threshold.bounds.handshake_time, tls.accept(stream)).await;
    let why = match shaken {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    threshold.metrics.broken.inc();
    debug!(door = threshold.name, why, "a TLS handshake failed");
    None
}

/// A connection that is counted as open until it is dropped, even by an abort.
struct Open {
    connections: Gauge,
    _permit: OwnedSemaphorePermit,
}

impl Open {
    fn count(connections: &Gauge, permit: OwnedSemaphorePermit) -> Self {
        connections.inc();
        Self {
            connections: connections.clone(),
            _permit: permit,
        }
    }
}

impl Drop for Open {
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

pub(super) fn open<R: Reception>(bound: BoundDoor, reception: R, phase: Watch, tasks: &Arc<Tasks>) {
    let acceptor = Acceptor::new(reception, bound.tls, phase, Arc::clone(tasks));
    tasks.spawn(acceptor.run(bound.socket));
}
