//! The number of requests that wait for each limit, and their maximum.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_policy::{Limit, Policy};

/// The requests that wait for one limit, under any policy that contains it. A reload keeps the room as long
/// as the limit keeps its name.
#[derive(Debug, Default)]
pub(crate) struct WaitRoom {
    /// Requests that wait, or that are being decided and may have to.
    held: AtomicU32,
    /// Requests that wait.
    waiting: AtomicU32,
}

/// The rooms of all limits that let requests wait, by the indexes of policy and limit.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    rooms: Vec<Vec<Option<Arc<WaitRoom>>>>,
}

/// Rooms by the names of policy and limit; for a joined policy, by the name of its origin.
type RoomsByLimit = BTreeMap<(String, String), Arc<WaitRoom>>;

/// A permit to wait, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitPermit {
    room: Arc<WaitRoom>,
    is_waiting: bool,
}

/// The number of requests that wait for one limit: see [`Limiter::waiting`](crate::Limiter::waiting). Compare
/// it with the limit's `max_waiting`, beyond which requests are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// The name of the policy.
    pub policy: String,
    /// The name of the limit.
    pub limit: String,
    /// The number of requests.
    pub count: u32,
}

impl Rooms {
    /// Returns the rooms of `policies`; reuses those of `earlier` policies with the same names. A limit has one room
    /// in its own policy and in all policies it was joined into, just as it has one bucket per subject.
    pub(crate) fn of(policies: &[Policy], earlier: Option<(&[Policy], &Self)>) -> Self {
        let known = earlier.map(|(policies, rooms)| rooms.by_limit(policies));
        let mut known: RoomsByLimit = known.unwrap_or_default();
        let rooms = policies.iter().map(|policy| {
            let limits = policy.limits.iter().enumerate();
            let room = |(nth, limit): (usize, &Limit)| {
                limit.waiting?;
                let name = (policy.origin(nth).to_owned(), limit.name.clone());
                Some(Arc::clone(known.entry(name).or_default()))
            };
            limits.filter(|_| policy.waits()).map(room).collect()
        });
        Self {
            rooms: rooms.collect(),
        }
    }

    /// Returns the rooms by name; they must be those of `policies`.
    fn by_limit(&self, policies: &[Policy]) -> RoomsByLimit {
        let policies = policies.iter().zip(&self.rooms);
        let rooms = policies.flat_map(|(policy, rooms)| {
            let limits = policy.limits.iter().zip(rooms).enumerate();
            limits.filter_map(|(nth, (limit, room))| {
                let name = (policy.origin(nth).to_owned(), limit.name.clone());
                Some((name, Arc::clone(room.as_ref()?)))
            })
        });
        rooms.collect()
    }

    /// Returns the number of requests that wait at each limit of `policies`, which must be those of these
    /// rooms.
    pub(crate) fn waiting(&self, policies: &[Policy]) -> Vec<QueueStatus> {
        let mut waiting = Vec::new();
        // A request under a joined policy waits in the rooms of the policies it was joined from.
        let policies = policies.iter().enumerate();
        for (p, policy) in policies.filter(|(_, policy)| !policy.is_joined()) {
            for (l, limit) in policy.limits.iter().enumerate() {
                if let Some(room) = self.get(p, l) {
                    waiting.push(QueueStatus {
                        policy: policy.name.clone(),
                        limit: limit.name.clone(),
                        count: room.waiting(),
                    });
                }
            }
        }
        waiting
    }

    pub(crate) fn get(&self, policy: usize, limit: usize) -> Option<&Arc<WaitRoom>> {
        self.rooms.get(policy)?.get(limit)?.as_ref()
    }
}

impl WaitRoom {
    /// Returns the number of requests that wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }

    /// Returns a permit for one more request to wait, if there are fewer than `most`.
    pub(crate) fn enter(self: &Arc<Self>, most: u32) -> Option<WaitPermit> {
        let one_more = |held: u32| (held < most).then(|| held.saturating_add(1));
        self.held.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(WaitPermit {
            room: Arc::clone(self),
            is_waiting: false,
        })
    }
}

impl WaitPermit {
    /// Counts the holder as waiting from now on.
    pub(crate) fn begin(&mut self) {
        if !self.is_waiting {
            self.is_waiting = true;
            self.room.waiting.fetch_add(1, Relaxed);
        }
    }

    /// Counts the holder as no longer waiting; the permit is still held.
    pub(crate) fn end(&mut self) {
        if self.is_waiting {
            self.is_waiting = false;
            self.room.waiting.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for WaitPermit {
    fn drop(&mut self) {
        self.end();
        self.room.held.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::WaitRoom;
    use std::sync::Arc;

    #[test]
    fn the_wait_room_is_bounded_and_leaving_frees_a_place() {
        let room = Arc::new(WaitRoom::default());
        let mut first = room.enter(2).unwrap();
        let second = room.enter(2).unwrap();
        assert!(room.enter(2).is_none());
        assert_eq!(room.waiting(), 0);
        first.begin();
        first.begin();
        assert_eq!(room.waiting(), 1);
        drop(first);
        assert_eq!(room.waiting(), 0);
        let third = room.enter(2).unwrap();
        assert!(room.enter(2).is_none());
        drop((second, third));
        assert!(room.enter(1).is_some());
    }
}
