//! The number of requests that wait for each limit, and their maximum.

use crate::by_limit::ByLimit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_policy::Policy;

/// The requests that wait for one limit, under any policy that contains it. A reload keeps the room as long
/// as the limit keeps its name.
#[derive(Debug, Default)]
pub(crate) struct WaitRoom {
    /// Requests that wait, or that are being decided and may have to.
    held: AtomicU32,
    /// Requests that wait.
    waiting: AtomicU32,
}

/// The rooms of all limits that let requests wait.
pub(crate) type Rooms = ByLimit<WaitRoom>;

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

/// Returns the rooms of `policies`; reuses those of `earlier` policies.
pub(crate) fn rooms_of(policies: &[Policy], earlier: Option<(&[Policy], &Rooms)>) -> Rooms {
    ByLimit::of(policies, earlier, |policy, limit| {
        policy.waits() && limit.waiting.is_some()
    })
}

/// Returns the number of requests that wait at each limit of `policies`, which must be those of `rooms`. A request
/// under a joined policy waits in the rooms of the policies it was joined from.
pub(crate) fn waiting(rooms: &Rooms, policies: &[Policy]) -> Vec<QueueStatus> {
    let rooms = rooms.each(policies);
    rooms
        .map(|(policy, limit, room)| QueueStatus {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            count: room.waiting(),
        })
        .collect()
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
