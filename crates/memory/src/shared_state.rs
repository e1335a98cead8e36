//! What limiters of one process share in addition to buckets: sets and counts, as core names them.
//!
//! No other instance shares them, so there is no roll of instances, and no secret to agree on.

use crate::clock::SystemClock;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::shared_state::{
    AddedCounts, CountMap, PeriodState, PeriodTerms, SetMembers, SharedCounts, SharedSets,
    StateFuture,
};
use tidegate_core::{Clock, SharedState, StoreError, Timestamp};

/// The most sets, and the most maps of counts.
const NAMES_MAX: usize = 1_000;

/// The most members of a set.
const MEMBERS_MAX: usize = 1_000_000;

/// The name under which those are counted for whom a map has no room.
const OTHER: &[u8] = b"other";

type ByName<K, V> = HashMap<K, V, RandomState>;

/// Members of a set, and until when each stays; `None` is permanently.
type ProcessSet = ByName<Vec<u8>, Option<Timestamp>>;

/// Sets and counts of this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessState(Arc<ProcessStateInner>);

#[derive(Debug, Default)]
struct ProcessStateInner {
    clock: SystemClock,
    sets: Mutex<ByName<String, ProcessSet>>,
    maps: Mutex<ByName<String, ProcessMap>>,
}

/// A map of counts.
#[derive(Debug, Default)]
struct ProcessMap {
    counts: ByName<Vec<u8>, u64>,
    /// When it starts from zero.
    lasts_until: Option<Timestamp>,
    period_end: Option<Timestamp>,
    /// The counts of the last period, while it is being closed.
    closing: ByName<Vec<u8>, u64>,
}

/// One limiter's part in a map of counts.
#[derive(Debug)]
struct ProcessCounts {
    state: ProcessState,
    map: CountMap,
}

fn at_once<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StateFuture<'a, T> {
    Box::pin(ready(result))
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(micros))
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_micros(then.as_micros().saturating_sub(now.as_micros()))
}

/// Returns the state of `name`. If it is new and there are too many, those leave first that are over.
fn entry<'a, V: Default>(
    all: &'a mut ByName<String, V>,
    name: &str,
    is_over: impl Fn(&V) -> bool,
) -> Result<&'a mut V, StoreError> {
    if all.len() >= NAMES_MAX && !all.contains_key(name) {
        all.retain(|_, kept| !is_over(kept));
        if all.len() >= NAMES_MAX {
            let why = format!("no room for {name}: {NAMES_MAX} others are kept in this process");
            return Err(StoreError::permanent(why));
        }
    }
    Ok(all.entry_ref(name).or_default())
}

fn at_most<T>(set: &str, max: usize, members: Vec<T>) -> Result<Vec<T>, StoreError> {
    if members.len() > max {
        let why = format!("the set {set} has more than {max} members");
        return Err(StoreError::permanent(why));
    }
    Ok(members)
}

impl SharedState for ProcessState {
    fn sets(&self) -> Option<&dyn SharedSets> {
        Some(self)
    }

    fn counts(&self, map: &CountMap) -> Option<Box<dyn SharedCounts>> {
        Some(Box::new(ProcessCounts {
            state: self.clone(),
            map: map.clone(),
        }))
    }
}

impl SharedSets for ProcessState {
    fn read<'a>(&'a self, set: &'a str, max: usize, _: Duration) -> StateFuture<'a, SetMembers> {
        let sets = self.0.sets.lock();
        let members = sets.get(set).into_iter().flat_map(ByName::keys);
        at_once(at_most(set, max, members.cloned().collect()))
    }

    fn add<'a>(
        &'a self,
        set: &'a str,
        members: &'a [&'a [u8]],
        length: Option<Duration>,
    ) -> StateFuture<'a, SetMembers> {
        let now = self.0.clock.now();
        let end = length.map(|length| after(now, length));
        let mut sets = self.0.sets.lock();
        let has_ended = |end: &Option<Timestamp>| end.is_some_and(|end| end <= now);
        let kept = match entry(&mut sets, set, |it| it.values().all(has_ended)) {
            Ok(kept) => kept,
            Err(full) => return at_once(Err(full)),
        };
        // All of them or none.
        if kept.len().saturating_add(members.len()) > MEMBERS_MAX {
            let why = format!("the set {set} has room for {MEMBERS_MAX} members");
            return at_once(Err(StoreError::permanent(why)));
        }
        let mut new = Vec::new();
        for member in members {
            match kept.get_mut(*member) {
                // Permanently is the latest end.
                Some(known) => *known = known.zip(end).map(|(one, other)| one.max(other)),
                None => {
                    kept.insert(member.to_vec(), end);
                    new.push(member.to_vec());
                }
            }
        }
        at_once(Ok(new))
    }

    fn expire<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        let now = self.0.clock.now();
        let mut sets = self.0.sets.lock();
        let members = sets.get_mut(set).into_iter();
        let ended =
            members.flat_map(|it| it.extract_if(|_, end| end.is_some_and(|end| end <= now)));
        at_once(Ok(ended.map(|(member, _)| member).collect()))
    }

    fn ends<'a>(
        &'a self,
        set: &'a str,
        max: usize,
        _: Duration,
    ) -> StateFuture<'a, Vec<(Vec<u8>, Duration)>> {
        let now = self.0.clock.now();
        let sets = self.0.sets.lock();
        let members = sets.get(set).into_iter().flatten();
        let ends = members.filter_map(|(member, end)| Some((member.clone(), until(now, (*end)?))));
        at_once(at_most(set, max, ends.collect()))
    }
}

impl ProcessMap {
    /// Returns true if it starts from zero with the next count.
    fn has_lapsed(&self, now: Timestamp) -> bool {
        self.lasts_until.is_some_and(|end| end <= now)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.closing.is_empty() && (self.counts.is_empty() || self.has_lapsed(now))
    }
}

impl ProcessCounts {
    /// Calls `act` with the map and the present instant.
    fn with<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut ProcessMap, Timestamp) -> T,
    ) -> StateFuture<'a, T> {
        let now = self.state.0.clock.now();
        let mut maps = self.state.0.maps.lock();
        let map = entry(&mut maps, &self.map.name, |map| map.is_over(now));
        at_once(map.map(|map| act(map, now)))
    }
}

impl SharedCounts for ProcessCounts {
    fn add<'a>(&'a mut self, counts: &'a [(Vec<u8>, u64)]) -> StateFuture<'a, AddedCounts> {
        let names_max = usize::try_from(self.map.names_max).unwrap_or(usize::MAX);
        self.with(|map, now| {
            if map.has_lapsed(now) {
                map.counts.clear();
            }
            if map.counts.is_empty() {
                map.lasts_until = self.map.lasts.map(|lasts| after(now, lasts));
            }
            let mut counted: u64 = 0;
            for (name, count) in counts {
                let has_room = map.counts.len() < names_max || map.counts.contains_key(name);
                let name = if has_room { name } else { OTHER };
                let place = map.counts.entry_ref(name).or_default();
                *place = place.saturating_add(*count);
                counted = counted.saturating_add(*count);
            }
            AddedCounts {
                counted,
                doubtful: 0,
            }
        })
    }

    fn close(&mut self, terms: PeriodTerms) -> StateFuture<'_, PeriodState> {
        self.with(|map, now| {
            let end = *map.period_end.get_or_insert(after(now, terms.period));
            if map.closing.is_empty() && end <= now {
                map.closing = std::mem::take(&mut map.counts);
                map.period_end = Some(after(now, terms.period));
            }
            if map.closing.is_empty() {
                let wait = until(now, map.period_end.unwrap_or(end));
                return PeriodState::Running { wait };
            }
            let over = map.closing.iter();
            let over = over.filter(|(name, count)| **count >= terms.threshold && *name != OTHER);
            let over = over.map(|(name, count)| (name.clone(), *count)).collect();
            PeriodState::Closing { over }
        })
    }

    fn finish(&mut self) -> StateFuture<'_, bool> {
        self.with(|map, _| {
            let was_closing = !map.closing.is_empty();
            map.closing.clear();
            was_closing
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES_MAX, ProcessState};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;
    use tidegate_core::shared_state::{CountMap, SharedSets, StateFuture};
    use tidegate_core::{SharedState, StoreError};

    fn result<T>(mut call: StateFuture<'_, T>) -> Result<T, StoreError> {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("nothing waits"),
        }
    }

    /// Any number was kept: each reload that renamed its lists took memory for good.
    #[test]
    fn sets_and_maps_are_bounded_and_leave_once_they_are_over() {
        let state = ProcessState::default();
        let ban = |set: usize, length| {
            let set = format!("bans-{set}");
            result(state.add(&set, &[b"10.0.0.1"], length)).map(drop)
        };
        let count = |map: usize, lasts| {
            let name = format!("counts-{map}");
            let map = CountMap {
                name,
                names_max: 10,
                lasts,
            };
            let mut counts = state.counts(&map).unwrap();
            result(counts.add(&[(b"10.0.0.1".to_vec(), 1)])).map(drop)
        };
        for add in [&ban as &dyn Fn(_, _) -> Result<(), StoreError>, &count] {
            for nth in 1..NAMES_MAX {
                add(nth, None).unwrap();
            }
            add(0, Some(Duration::ZERO)).unwrap();
            add(NAMES_MAX, None).expect("in place of the one that is over");
            let full = add(NAMES_MAX + 1, None).expect_err("no other is over");
            assert!(full.to_string().contains("no room for"), "{full}");
            add(NAMES_MAX, None).expect("it is there already");
        }
    }
}
