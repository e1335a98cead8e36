//! The connections of one listener: how many there are, from where, and which have been idle longest.

use super::pulse::Pulse;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The least share of a listener that one network has by default.
const SHARE_MIN: usize = 100;

/// Out of so many connections one is closed when all places are taken: looking for the longest idle ones
/// takes a step for each, and must not happen with every connection that comes.
const BATCH: usize = 64;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The address, or for IPv6 the network: whoever has one address there has all of them.
    pub(super) network: IpAddr,
    /// A trusted proxy brings connections of many clients.
    pub(super) is_proxy: bool,
}

impl Origin {
    pub(super) fn new(peer: IpAddr, ipv6_prefix: u8, is_proxy: bool) -> Self {
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
pub(super) struct Room {
    places: Arc<Semaphore>,
    /// Connections of one network, and of a network of trusted proxies.
    of_network: usize,
    of_proxy: usize,
    /// Moments so far: each connection is one, and so is each second. By them it is known how long
    /// connections have been idle, and no request reads a clock for it.
    moments: Arc<AtomicU64>,
    /// By network and number. Connections that were asked to close are not among them.
    open: Mutex<HashMap<IpAddr, Own, RandomState>>,
}

/// The connections of one network, by number.
type Own = HashMap<u64, Arc<Pulse>, RandomState>;

/// A place in a [`Room`], until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    network: IpAddr,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    /// A room for `most` connections, and for so many of one network; by default a tenth. Trusted proxies
    /// have nine tenths: the rest stays free for others.
    pub(super) fn new(most: usize, of_network: Option<usize>) -> Self {
        let of_network = of_network.unwrap_or((most / 10).max(SHARE_MIN));
        Self {
            places: Arc::new(Semaphore::new(most)),
            of_network,
            of_proxy: most.saturating_sub(most / 10).max(of_network),
            moments: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Notes that time passes, and returns the moment that is over.
    pub(super) fn tick(&self) -> u64 {
        self.moments.fetch_add(1, Relaxed)
    }

    /// Returns a place, if one is free.
    pub(super) fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits until a place is free.
    pub(super) async fn freed(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Returns how many places are free.
    pub(super) fn left(&self) -> usize {
        self.places.available_permits()
    }

    /// Makes sure that `origin` may have another connection, and returns how many of its own were asked
    /// to close for that; `None` if it has all that it may, and none of them is idle.
    pub(super) fn make_way(&self, origin: Origin) -> Option<usize> {
        let most = if origin.is_proxy {
            self.of_proxy
        } else {
            self.of_network
        };
        let mut open = self.open.lock();
        let Some(own) = open.get_mut(&origin.network).filter(|it| it.len() >= most) else {
            return Some(0);
        };
        let idle = own
            .iter()
            .filter_map(|(number, pulse)| Some((pulse.idle_since()?, *number)));
        let longest = longest(idle.collect(), batch(most));
        for (_, number) in &longest {
            if let Some(pulse) = own.remove(number) {
                pulse.evict();
            }
        }
        (!longest.is_empty()).then_some(longest.len())
    }

    /// Asks some of the longest idle connections to close, and returns how many.
    pub(super) fn evict(&self) -> usize {
        let mut open = self.open.lock();
        let all = open.values().map(Own::len).sum();
        let idle = open.iter().flat_map(|(network, own)| {
            own.iter()
                .filter_map(|(number, pulse)| Some((pulse.idle_since()?, (*network, *number))))
        });
        let longest = longest(idle.collect(), batch(all));
        for (_, (network, number)) in &longest {
            if let Some(pulse) = open.get_mut(network).and_then(|it| it.remove(number)) {
                pulse.evict();
            }
        }
        longest.len()
    }

    /// Takes the place that `permit` stands for.
    pub(super) fn enter(
        self: &Arc<Self>,
        origin: Origin,
        permit: OwnedSemaphorePermit,
    ) -> (Place, Arc<Pulse>) {
        let number = self.tick();
        let pulse = Arc::new(Pulse::new(&self.moments));
        let mut open = self.open.lock();
        let own = open.entry(origin.network).or_default();
        own.insert(number, Arc::clone(&pulse));
        let place = Place {
            room: Arc::clone(self),
            network: origin.network,
            number,
            _permit: permit,
        };
        (place, pulse)
    }
}

impl Drop for Place {
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

/// Returns the `most` longest idle of `idle`, by when they were active last and then by number.
fn longest<T: Ord>(mut idle: Vec<(u64, T)>, most: usize) -> Vec<(u64, T)> {
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

    fn enter(room: &Arc<Room>, address: &str) -> Option<(Place, Arc<Pulse>)> {
        room.make_way(origin(address))?;
        Some(room.enter(origin(address), room.free()?))
    }

    fn is_evicted(pulse: &Pulse) -> bool {
        pulse.evicted().now_or_never().is_some()
    }

    #[test]
    fn the_longest_idle_connection_closes_first_and_none_that_is_busy() {
        let room = Arc::new(Room::new(4, Some(4)));
        let [(_a, first), (_b, second), (_c, third), (_d, fourth)] =
            [(); 4].map(|()| enter(&room, "192.0.2.1").unwrap());
        let _answering = second.answering();
        for active in [&fourth, &first] {
            room.tick();
            active.touch();
        }
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&third) && !is_evicted(&fourth));
        assert_eq!(room.evict(), 1);
        assert!(is_evicted(&fourth) && !is_evicted(&first));
        assert_eq!((room.evict(), room.evict()), (1, 0));
        assert!(is_evicted(&first) && !is_evicted(&second));
    }

    #[test]
    fn an_address_has_its_share_and_makes_way_for_itself() {
        let room = Arc::new(Room::new(10, Some(2)));
        let (_one, first) = enter(&room, "192.0.2.1").unwrap();
        let (_two, second) = enter(&room, "192.0.2.1").unwrap();
        let (_other, other) = enter(&room, "192.0.2.2").unwrap();
        let (_three, third) = enter(&room, "192.0.2.1").unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&other));
        let _busy = second.answering();
        // WebSockets may be silent for hours, and are not idle.
        third.settle(true);
        assert!(enter(&room, "192.0.2.1").is_none(), "none of them is idle");
        assert!(enter(&room, "192.0.2.2").is_some());
    }

    #[test]
    fn who_has_one_address_of_ipv6_has_all_of_its_network() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::2:3"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        let whole = Origin::new("2001:db8::1".parse().unwrap(), 0, false);
        assert_eq!(whole.network, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }

    #[test]
    fn a_trusted_proxy_has_more_and_not_everything() {
        let room = Room::new(10_000, None);
        assert_eq!((room.of_network, room.of_proxy), (1_000, 9_000));
        let room = Room::new(50, None);
        assert_eq!((room.of_network, room.of_proxy), (100, 100));
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let room = Arc::new(Room::new(1, None));
        drop(enter(&room, "192.0.2.1").unwrap());
        assert!(room.open.lock().is_empty());
        assert_eq!(room.left(), 1);
        // A connection that was asked to close leaves nothing behind either.
        let asked = enter(&room, "192.0.2.1").unwrap();
        assert_eq!(room.evict(), 1);
        drop(asked);
        assert!(room.open.lock().is_empty());
    }
}
