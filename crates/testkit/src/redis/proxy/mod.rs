//! A proxy with network faults under a test's control.

mod pump;
mod relay;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use super::port::Port;
use super::wait::until;

/// Faults, in each direction. Default: none.
///
/// ```
/// use std::time::Duration;
/// use tidegate_testkit::redis::ProxyFaults;
///
/// let slow_and_deaf = ProxyFaults {
///     delay_requests: Duration::from_millis(30),
///     ..ProxyFaults::drop_replies()
/// };
/// assert!(slow_and_deaf.swallow_replies && !slow_and_deaf.swallow_requests);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "faults that combine freely")]
pub struct ProxyFaults {
    /// Delay of requests. It delays each byte without limiting the throughput.
    pub delay_requests: Duration,
    /// Delay of replies.
    pub delay_replies: Duration,
    /// Requests never arrive; the connection stays.
    pub swallow_requests: bool,
    /// Replies never arrive; the connection stays, and the server has executed the commands.
    pub swallow_replies: bool,
    /// This many more bytes of requests pass on each connection, then it is reset.
    pub cut_requests_after: Option<usize>,
    /// This many more bytes of replies pass on each connection, then it is reset.
    pub cut_replies_after: Option<usize>,
    /// Connections are accepted and reset at once; those that were open before stay.
    pub reset_new: bool,
    /// Nothing listens: connections are refused. Those that were open before stay.
    pub refuse_new: bool,
}

impl ProxyFaults {
    /// No faults.
    pub fn none() -> Self {
        Self::default()
    }

    /// Delays a round trip by this much, half of it each way.
    pub fn slow(round_trip: Duration) -> Self {
        Self {
            delay_requests: round_trip / 2,
            delay_replies: round_trip / 2,
            ..Self::none()
        }
    }

    /// Connections are accepted, and all bytes on them vanish.
    pub fn blackhole() -> Self {
        Self {
            swallow_requests: true,
            swallow_replies: true,
            ..Self::none()
        }
    }

    /// Requests reach the server, replies vanish.
    pub fn drop_replies() -> Self {
        Self {
            swallow_replies: true,
            ..Self::none()
        }
    }

    /// Nothing listens at the port any more.
    pub fn refuse() -> Self {
        Self {
            refuse_new: true,
            ..Self::none()
        }
    }
}

/// The state that the proxy's tasks watch.
#[derive(Debug, Clone, Copy, Default)]
struct ProxyState {
    faults: ProxyFaults,
    /// Number of resets of all connections so far.
    resets: u64,
    /// Number of orders so far.
    number: u64,
}

/// The orders as a connection sees them, which was accepted under some and may have missed others
/// since.
#[derive(Debug, Clone)]
struct OrderWatch {
    last: ProxyState,
    orders: watch::Receiver<ProxyState>,
}

impl OrderWatch {
    fn since(last: ProxyState, mut orders: watch::Receiver<ProxyState>) -> Self {
        orders.mark_changed();
        Self { last, orders }
    }

    fn faults(&self) -> ProxyFaults {
        self.last.faults
    }

    /// Waits for other faults. None: the connection is to be reset.
    async fn changed(&mut self) -> Option<ProxyFaults> {
        loop {
            self.orders.changed().await.ok()?;
            let orders = *self.orders.borrow_and_update();
            let last = std::mem::replace(&mut self.last, orders);
            if orders.resets != last.resets {
                return None;
            }
            if orders.number != last.number {
                return Some(orders.faults);
            }
        }
    }
}

#[derive(Debug, Default)]
struct ProxyCounters {
    accepted: AtomicU64,
    open: AtomicU64,
    request_bytes: AtomicU64,
    reply_bytes: AtomicU64,
    /// The last order that the listener has carried out.
    carried_out: AtomicU64,
}

/// A port that forwards to another one on loopback, with faults that can change at any moment.
///
/// It has its own thread and clock, so that it continues while a test blocks its runtime or holds
/// its clock. It does not read the bytes, so that it forwards TLS as well.
///
/// ```no_run
/// use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server};
///
/// let server = Server::start();
/// let proxy = FaultProxy::start(server.port());
/// // … connect to proxy.address() …
/// proxy.set(ProxyFaults::drop_replies());
/// proxy.reset();
/// proxy.set(ProxyFaults::none());
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    port: Port,
    counters: Arc<ProxyCounters>,
    /// Dropped with the proxy, which ends the thread.
    orders: Option<watch::Sender<ProxyState>>,
    thread: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy in front of this port, without faults.
    pub fn start(upstream: u16) -> Self {
        let port = Port::lease();
        let counters = Arc::new(ProxyCounters::default());
        let (orders, watched) = watch::channel(ProxyState::default());
        let relay = relay::ProxyRelay::new(port.number(), upstream, Arc::clone(&counters), watched);
        let thread = thread::Builder::new()
            .name(format!("fault-proxy-{}", port.number()))
            .spawn(move || relay.run())
            .expect("there is room for a thread");
        let proxy = Self {
            port,
            counters,
            orders: Some(orders),
            thread: Some(thread),
        };
        proxy.set(ProxyFaults::none());
        proxy
    }

    /// Returns the port it listens at.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Sets these faults, and no others. Bytes already in flight still arrive.
    pub fn set(&self, faults: ProxyFaults) {
        self.order(|orders| orders.faults = faults);
    }

    /// Resets all open connections now (`RST`, as when a machine has gone). When it returns they
    /// have ended; a client may already have come back with a new one.
    pub fn reset(&self) {
        self.order(|orders| orders.resets += 1);
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.counters.open.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes of requests passed on.
    pub fn request_bytes(&self) -> u64 {
        self.counters.request_bytes.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes of replies passed on.
    pub fn reply_bytes(&self) -> u64 {
        self.counters.reply_bytes.load(Ordering::SeqCst)
    }

    /// Changes the orders, and waits until the listener follows them.
    fn order(&self, change: impl FnOnce(&mut ProxyState)) {
        let orders = self.orders.as_ref().expect("the proxy is there");
        orders.send_modify(|orders| {
            change(orders);
            orders.number += 1;
        });
        let number = orders.borrow().number;
        until("the proxy does as it is told", || {
            self.counters.carried_out.load(Ordering::SeqCst) >= number
        });
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
