//! The connections of one listener: their number, their origin, and the longest idle ones.

use super::idle_clock::Pulse;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The minimum share of a listener that one network has by default.
const SHARE_MIN: usize = 100;

/// One in this many connections is closed when all places are taken: finding the longest idle ones takes a
/// step per connection, and must not happen for every new one.
const BATCH: usize = 64;

/// The time in which a full listener does not close a connection before its first request. It covers a TLS
/// handshake: otherwise new connections would close each other.
const GRACE: Duration = Duration::from_secs(2);

/// The origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address, or for IPv6 the network: a client with one address there has all of them.
    pub network: IpAddr,
    /// True for a trusted proxy, which brings connections of many clients.
    pub(crate) is_proxy: bool,
}

impl Origin {
    /// Returns the origin of a connection from `peer`.
    pub fn new(peer: IpAddr, ipv6_prefix: u8, is_proxy: bool) -> Self {
        let network = match peer.to_canonical() {
            IpAddr::V6(address) => {
                let cut = 128_u32.saturating_sub(ipv6_prefix.into());
                let kept = u128::MAX.checked_shl(cut).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
            }
            address @ IpAddr::V4(_) => address,
        };
        Self { network, is_proxy }
    }
}

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionRoom {
    places: Arc<Semaphore>,
    /// The maximum connections of one network, and of a network of trusted proxies.
    of_network: usize,
    of_proxy: usize,
    /// The number of moments so far: each connection is one, and so is each second. They measure idle times
    /// without reading a clock for each request.
    moments: Arc<AtomicU64>,
    /// The connections by network and number.
    open: Mutex<HashMap<IpAddr, NetworkConnections, RandomState>>,
}

/// The connections of one network, by number.
type NetworkConnections = HashMap<u64, OpenConnection, RandomState>;

/// An open connection.
#[derive(Debug)]
struct OpenConnection {
    pulse: Arc<Pulse>,
    accepted_at: Instant,
    /// True if it was signalled to close. It keeps its place until it does.
    is_asked: bool,
}

/// A place in a [`ConnectionRoom`], released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    room: Arc<ConnectionRoom>,
    network: IpAddr,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionRoom {
    /// Creates a room for `most` connections, and for `of_network` of one network. Default: a tenth. Trusted
    /// proxies have nine tenths: the rest stays free for others.
    pub(crate) fn new(most: usize, of_network: Option<usize>) -> Self {
        let of_network = of_network.unwrap_or((most / 10).max(SHARE_MIN));
        Self {
            places: Arc::new(Semaphore::new(most)),
            of_network,
            of_proxy: most.saturating_sub(most / 10).max(of_network),
            moments: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Counts a moment, and returns the one that is over.
    pub(crate) fn tick(&self) -> u64 {
        self.moments.fetch_add(1, Relaxed)
    }

    /// Returns a place, if one is free.
    pub(crate) fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits until a place is free.
    pub(crate) async fn freed(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Returns the number of free places.
    pub(crate) fn left(&self) -> usize {
        self.places.available_permits()
    }

    /// Makes sure that `origin` may have another connection, and returns the number of its connections that
    /// were signalled to close for that. Returns `None` if it has its share and none of them is idle, or if
    /// too many that were signalled are still open.
    pub(crate) fn make_way(&self, origin: Origin) -> Option<usize> {
        let share = if origin.is_proxy {
            self.of_proxy
        } else {
            self.of_network
        };
        let mut open = self.open.lock();
        let Some(own) = open.get_mut(&origin.network).filter(|it| it.len() >= share) else {
            return Some(0);
        };
        let batch = batch(share);
        let asked = own.values().filter(|entry| entry.is_asked).count();
        if own.len().saturating_sub(asked) < share {
            return (own.len() < share.saturating_add(batch)).then_some(0);
        }
        let idle = own
            .iter()
            .filter_map(|(number, entry)| Some((entry.idle_since()?, *number)));
        let longest = longest(idle.collect(), batch.saturating_sub(asked));
        for (_, number) in &longest {
            if let Some(entry) = own.get_mut(number) {
                entry.ask();
            }
        }
        (!longest.is_empty()).then_some(longest.len())
    }

    /// Signals some of the longest idle connections to close, and returns their number.
    pub(crate) fn evict(&self) -> usize {
        let now = Instant::now();
        let mut open = self.open.lock();
        let all = open.values().map(NetworkConnections::len).sum();
        let idle = open.iter().flat_map(|(network, own)| {
            own.iter()
                .filter(|(_, entry)| !entry.is_new(now))
                .filter_map(|(number, entry)| Some((entry.idle_since()?, (*network, *number))))
        });
        let longest = longest(idle.collect(), batch(all));
        for (_, (network, number)) in &longest {
            if let Some(entry) = open.get_mut(network).and_then(|it| it.get_mut(number)) {
                entry.ask();
            }
        }
        longest.len()
    }

    /// Takes the place of `permit`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        origin: Origin,
        permit: OwnedSemaphorePermit,
    ) -> (ConnectionPermit, Arc<Pulse>) {
        let number = self.tick();
        let pulse = Arc::new(Pulse::new(&self.moments));
        let mut open = self.open.lock();
        let own = open.entry(origin.network).or_default();
        let entry = OpenConnection {
            pulse: Arc::clone(&pulse),
            accepted_at: Instant::now(),
            is_asked: false,
        };
        own.insert(number, entry);
        let place = ConnectionPermit {
            room: Arc::clone(self),
            network: origin.network,
            number,
            _permit: permit,
        };
        (place, pulse)
    }
}

impl OpenConnection {
    /// Returns the moment since which the connection is idle; `None` while it is not, or if it was signalled
    /// to close.
    fn idle_since(&self) -> Option<u64> {
        self.pulse.idle_since().filter(|_| !self.is_asked)
    }

    /// Returns true if the first request may still be in transit.
    fn is_new(&self, now: Instant) -> bool {
        self.pulse.requests() == 0 && now.saturating_duration_since(self.accepted_at) < GRACE
    }

    fn ask(&mut self) {
        self.is_asked = true;
        self.pulse.evict();
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.room.open.lock();
        if let Some(own) = open.get_mut(&self.network) {
            own.remove(&self.number);
            if own.is_empty() {
                open.remove(&self.network);
            }
        }
    }
}

fn batch(all: usize) -> usize {
    (all / BATCH).max(1)
}

/// Returns the `most` longest idle of `idle`, by last activity and then by number; at most half of them, but
/// at least one: if few are idle, those have just become idle.
fn longest<T: Ord>(mut idle: Vec<(u64, T)>, most: usize) -> Vec<(u64, T)> {
    let most = most.min((idle.len() / 2).max(1));
    if idle.len() > most {
        idle.select_nth_unstable(most);
        idle.truncate(most);
    }
    idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn origin(address: &str) -> Origin {
        Origin::new(address.parse().unwrap(), 64, false)
    }

    fn enter(room: &Arc<ConnectionRoom>, address: &str) -> Option<(ConnectionPermit, Arc<Pulse>)> {
        room.make_way(origin(address))?;
        let (place, pulse) = room.enter(origin(address), room.free()?);
        pulse.begin(false);
        Some((place, pulse))
    }

    fn is_evicted(pulse: &Pulse) -> bool {
        pulse.evicted().now_or_never().is_some()
    }

    #[test]
    fn the_longest_idle_connection_closes_first_and_none_that_is_busy() {
        let room = Arc::new(ConnectionRoom::new(4, Some(4)));
        let [(_a, first), (_b, second), (_c, third), (_d, fourth)] =
            [(); 4].map(|()| enter(&room, "192.0.2.1").unwrap());
        let _answering = second.answering();
        for active in [&fourth, &first] {
            room.tick();
            active.begin(false);
        }
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&third) && !is_evicted(&fourth));
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&fourth) && !is_evicted(&first));
        assert_eq!((room.evict(), room.evict()), (1, 0));
        assert!(is_evicted(&first) && !is_evicted(&second));
    }

    #[test]
    fn an_address_at_its_share_evicts_its_own_connections() {
        let room = Arc::new(ConnectionRoom::new(10, Some(2)));
        let (one, first) = enter(&room, "192.0.2.1").unwrap();
        let (_two, second) = enter(&room, "192.0.2.1").unwrap();
        let (_other, other) = enter(&room, "192.0.2.2").unwrap();
        let (_three, third) = enter(&room, "192.0.2.1").unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&other));
        drop(one);
        let _busy = second.answering();
        // WebSockets may be silent for hours, and are not idle.
        third.settle(true);
        assert!(enter(&room, "192.0.2.1").is_none(), "none of them is idle");
        assert!(enter(&room, "192.0.2.2").is_some());
    }

    #[test]
    fn a_connection_that_does_not_close_counts_towards_its_address() {
        let room = Arc::new(ConnectionRoom::new(1_000, Some(128)));
        let mut places = Vec::new();
        while let Some(place) = enter(&room, "192.0.2.1") {
            places.push(place);
        }
        assert_eq!(places.len(), 128 + 2, "its share and a batch");
        assert_eq!(places.iter().filter(|(_, it)| is_evicted(it)).count(), 2);
        assert!(enter(&room, "192.0.2.2").is_some());
        // Once one has closed, the next may be signalled.
        places.remove(0);
        assert_eq!(room.make_way(origin("192.0.2.1")), Some(1));
        places.push(enter(&room, "192.0.2.1").unwrap());
        assert!(enter(&room, "192.0.2.1").is_none());
    }

    #[test]
    fn a_connection_is_asked_to_close_only_once() {
        let room = Arc::new(ConnectionRoom::new(2, None));
        let [(_a, first), (_b, second)] = [(); 2].map(|()| enter(&room, "192.0.2.1").unwrap());
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&first));
        assert_eq!((room.evict(), room.evict()), (1, 0));
        assert!(is_evicted(&second) && !is_evicted(&first));
    }

    #[tokio::test(start_paused = true)]
    async fn new_connections_do_not_close_each_other_before_their_first_request() {
        let room = Arc::new(ConnectionRoom::new(3, None));
        let connect = || room.enter(origin("192.0.2.1"), room.free().unwrap());
        let (_busy, busy) = enter(&room, "192.0.2.1").unwrap();
        let _answering = busy.answering();
        let [(_a, first), (_b, second)] = [(); 2].map(|()| connect());
        assert_eq!(room.evict(), 0, "both may be in their handshakes");
        // One has had its first request, and is idle.
        second.begin(false);
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&second) && !is_evicted(&first));
        tokio::time::advance(GRACE).await;
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&first));
    }

    #[test]
    fn a_step_closes_at_most_half_of_the_idle_connections() {
        let room = Arc::new(ConnectionRoom::new(640, Some(640)));
        let all: Vec<_> = (0..640)
            .map(|_| enter(&room, "192.0.2.1").unwrap())
            .collect();
        // All but six are busy; a batch is ten.
        let _busy: Vec<_> = all.iter().skip(6).map(|(_, it)| it.answering()).collect();
        assert_eq!([(); 5].map(|()| room.evict()), [3, 1, 1, 1, 0]);
    }

    #[test]
    fn ipv6_addresses_of_one_network_share_a_quota() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::2:3"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        let whole = Origin::new("2001:db8::1".parse().unwrap(), 0, false);
        assert_eq!(whole.network, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }

    #[test]
    fn a_trusted_proxy_has_a_larger_but_bounded_share() {
        let room = ConnectionRoom::new(10_000, None);
        assert_eq!((room.of_network, room.of_proxy), (1_000, 9_000));
        let room = ConnectionRoom::new(50, None);
        assert_eq!((room.of_network, room.of_proxy), (100, 100));
    }

    #[test]
    fn closed_connections_are_removed() {
        let room = Arc::new(ConnectionRoom::new(1, None));
        drop(enter(&room, "192.0.2.1").unwrap());
        assert!(room.open.lock().is_empty());
        assert_eq!(room.left(), 1);
        // A connection that was signalled to close leaves nothing behind either.
        let asked = enter(&room, "192.0.2.1").unwrap();
        assert_eq!(room.evict(), 1);
        drop(asked);
        assert!(room.open.lock().is_empty());
    }
}
