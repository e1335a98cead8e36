//! The listener, and a task for each connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::pump::{self, Direction};
use super::{OrderWatch, ProxyCounters, ProxyState};
use crate::redis::wait::{PATIENCE, PAUSE};

#[derive(Debug)]
pub(super) struct ProxyRelay {
    port: u16,
    upstream: u16,
    counters: Arc<ProxyCounters>,
    orders: watch::Receiver<ProxyState>,
}

impl ProxyRelay {
    pub(super) fn new(
        port: u16,
        upstream: u16,
        counters: Arc<ProxyCounters>,
        orders: watch::Receiver<ProxyState>,
    ) -> Self {
        Self {
            port,
            upstream,
            counters,
            orders,
        }
    }

    /// Runs until the proxy is dropped.
    pub(super) fn run(self) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime on one thread")
            .block_on(self.listen());
    }

    async fn listen(mut self) {
        let mut listener = None;
        // Connections of a closed listener continue; all of them end with this set.
        let mut connections = JoinSet::new();
        let mut resets = 0;
        loop {
            let orders = *self.orders.borrow_and_update();
            if orders.faults.refuse_new || orders.resets != resets {
                // The kernel resets the connections that it had accepted for us.
                listener = None;
            }
            if orders.resets != resets {
                resets = orders.resets;
                // All open connections have seen the order. New connections come later.
                while connections.join_next().await.is_some() {}
            }
            if listener.is_none() && !orders.faults.refuse_new {
                listener = Some(bind(self.port).await);
            }
            let carried_out = &self.counters.carried_out;
            carried_out.store(orders.number, Ordering::SeqCst);
            loop {
                tokio::select! {
                    biased;
                    changed = self.orders.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                    accepted = accept(listener.as_ref()) => {
                        if let Ok(client) = accepted {
                            self.take(client, orders, &mut connections);
                        }
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        }
    }

    /// `then` are the orders under which it was accepted.
    fn take(&self, client: TcpStream, then: ProxyState, connections: &mut JoinSet<()>) {
        let counters = Arc::clone(&self.counters);
        counters.accepted.fetch_add(1, Ordering::SeqCst);
        if then.faults.reset_new {
            reset(&client);
            return;
        }
        counters.open.fetch_add(1, Ordering::SeqCst);
        let (upstream, orders) = (self.upstream, OrderWatch::since(then, self.orders.clone()));
        connections.spawn(async move {
            connect(client, upstream, orders, &counters).await;
            counters.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Listens at the port, which is leased. The kernel may hold it for a moment, because of a
/// connection that the last listener had not accepted.
async fn bind(port: u16) -> TcpListener {
    let began = Instant::now();
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => return listener,
            Err(error) => assert!(began.elapsed() < PATIENCE, "the port is ours: {error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(client, _)| client),
        None => std::future::pending().await,
    }
}

/// Passes on bytes in both directions until one side closes, or the connection is to be reset.
async fn connect(
    mut client: TcpStream,
    upstream: u16,
    orders: OrderWatch,
    counters: &ProxyCounters,
) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", upstream)).await else {
        reset(&client);
        return;
    };
    // Without these, waiting for more to send would add further delays.
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let is_cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let requests = Direction::requests(orders.clone(), counters);
        let replies = Direction::replies(orders, counters);
        tokio::try_join!(
            pump::run(from_client, to_server, requests),
            pump::run(from_server, to_client, replies),
        )
        .is_err()
    };
    if is_cut {
        reset(&client);
        reset(&server);
    }
}

/// Closing the connection will reset it.
fn reset(stream: &TcpStream) {
    drop(stream.set_zero_linger());
}
