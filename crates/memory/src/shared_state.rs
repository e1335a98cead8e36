//! State that limiters of one process share in addition to buckets: sets and counts, as core names
//! them.
//!
//! A snapshot of the store carries both: bans and counts of addresses survive a restart like buckets.
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

/// Maximum number of sets, and of maps of counts.
const NAMES_MAX: usize = 1_000;

/// Maximum number of members of a set.
const MEMBERS_MAX: usize = 1_000_000;

/// Name under which counts are kept that a map has no room for.
const OTHER: &[u8] = b"other";

/// A hash map with a random seed, because names come from clients.
type ByName<K, V> = HashMap<K, V, RandomState>;

/// Members of a set, with the instant at which each expires; `None` is permanently.
type ProcessSet = ByName<Vec<u8>, Option<Timestamp>>;

/// Sets and counts of this process. Clones share them.
///
/// All calls return ready futures. An error means that a bound was exceeded.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessState(Arc<ProcessStateInner>);

/// The shared part of [`ProcessState`].
#[derive(Debug, Default)]
struct ProcessStateInner {
    /// Time for expiry. Sets and counts use real time, even in a store with another clock.
    clock: SystemClock,
    /// Sets by name.
    sets: Mutex<ByName<String, ProcessSet>>,
    /// Maps of counts by name.
    maps: Mutex<ByName<String, ProcessMap>>,
}

/// A map of counts, which may start from zero at the end of a period.
#[derive(Debug, Default)]
struct ProcessMap {
    /// Counts of the present period.
    counts: ByName<Vec<u8>, u64>,
    /// Instant at which it starts from zero.
    lasts_until: Option<Timestamp>,
    /// End of the present period, if there is one.
    period_end: Option<Timestamp>,
    /// Counts of the last period, while it is being closed.
    closing: ByName<Vec<u8>, u64>,
}

/// One limiter's part in a map of counts.
#[derive(Debug)]
struct ProcessCounts {
    /// The state that has the map.
    state: ProcessState,
    /// Name and settings of the map.
    map: CountMap,
}

/// Returns a future that is ready with `result`.
fn at_once<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StateFuture<'a, T> {
    Box::pin(ready(result))
}

/// Returns the instant `time` after `now`.
fn after(now: Timestamp, time: Duration) -> Timestamp {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(micros))
}

/// Returns the time from `now` to `then`; 0 if that is past.
fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_micros(then.as_micros().saturating_sub(now.as_micros()))
}

/// Returns the state of `name`. If it is new and there are too many, expired ones are dropped
/// first.
fn entry<'a, V: Default>(
    all: &'a mut ByName<String, V>,
    name: &str,
    is_over: impl Fn(&V) -> bool,
) -> Result<&'a mut V, StoreError> {
    if all.len() >= NAMES_MAX && !all.contains_key(name) {
        all.retain(|_, kept| !is_over(kept));
        if all.len() >= NAMES_MAX {
            let why = format!("no room for {name}: {NAMES_MAX} others are in memory");
            return Err(StoreError::permanent(why));
        }
    }
    Ok(all.entry_ref(name).or_default())
}

/// Returns the members.
///
/// # Errors
///
/// A permanent error if there are more than `max`: a part of a set would be a wrong answer.
fn at_most<T>(set: &str, max: usize, members: Vec<T>) -> Result<Vec<T>, StoreError> {
    if members.len() > max {
        let why = format!("the set {set} has more than {max} members");
        return Err(StoreError::permanent(why));
    }
    Ok(members)
}

/// A member of a set, or a counted name, with its end or its count.
pub(crate) type KeptMember = (Vec<u8>, u64);

/// A map of counts as a snapshot carries it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptCounts {
    /// Instant at which it starts from zero.
    pub(crate) lasts_until: Option<Timestamp>,
    /// End of the present period.
    pub(crate) period_end: Option<Timestamp>,
    /// Counts of the present period.
    pub(crate) counts: Vec<KeptMember>,
    /// Counts of the period that is being closed.
    pub(crate) closing: Vec<KeptMember>,
}

/// An end that never comes, as a number.
pub(crate) const NEVER: u64 = u64::MAX;

impl ProcessState {
    /// Returns the time that ends are compared with.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Returns the names of all sets.
    pub(crate) fn set_names(&self) -> Vec<String> {
        self.0.sets.lock().keys().cloned().collect()
    }

    /// Returns the members of a set that have not ended, each with its end or [`NEVER`].
    pub(crate) fn set_to_keep(&self, name: &str, now: Timestamp) -> Vec<KeptMember> {
        let sets = self.0.sets.lock();
        let members = sets.get(name).into_iter().flatten();
        let members = members.filter(|(_, end)| end.is_none_or(|end| end > now));
        let kept =
            members.map(|(member, end)| (member.clone(), end.map_or(NEVER, Timestamp::as_micros)));
        kept.collect()
    }

    /// Adds members of a snapshot to a set. Returns false if there is no room for all of them.
    pub(crate) fn restore_set(&self, name: &str, members: Vec<KeptMember>) -> bool {
        let mut sets = self.0.sets.lock();
        if sets.len() >= NAMES_MAX && !sets.contains_key(name) {
            return false;
        }
        let kept = sets.entry_ref(name).or_default();
        let room = MEMBERS_MAX.saturating_sub(kept.len());
        let has_room = members.len() <= room;
        for (member, end) in members.into_iter().take(room) {
            let end = Some(end).filter(|end| *end != NEVER);
            kept.insert(member, end.map(Timestamp::from_micros));
        }
        has_room
    }

    /// Returns the names of all maps of counts.
    pub(crate) fn map_names(&self) -> Vec<String> {
        self.0.maps.lock().keys().cloned().collect()
    }

    /// Returns a map of counts, unless it is over.
    pub(crate) fn map_to_keep(&self, name: &str, now: Timestamp) -> Option<KeptCounts> {
        let list = |counts: &ByName<Vec<u8>, u64>| {
            let counts = counts.iter().map(|(name, count)| (name.clone(), *count));
            counts.collect()
        };
        let maps = self.0.maps.lock();
        let map = maps.get(name).filter(|map| !map.is_over(now))?;
        Some(KeptCounts {
            lasts_until: map.lasts_until,
            period_end: map.period_end,
            counts: list(&map.counts),
            closing: list(&map.closing),
        })
    }

    /// Adds counts of a snapshot to a map. Returns false if there is no room for it.
    pub(crate) fn restore_map(&self, name: &str, kept: KeptCounts) -> bool {
        let mut maps = self.0.maps.lock();
        if maps.len() >= NAMES_MAX && !maps.contains_key(name) {
            return false;
        }
        let map = maps.entry_ref(name).or_default();
        map.lasts_until = kept.lasts_until;
        map.period_end = kept.period_end;
        map.counts.extend(kept.counts);
        map.closing.extend(kept.closing);
        true
    }
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

    /// Returns true if the map can be dropped: it has no counts, or they have expired.
    fn is_over(&self, now: Timestamp) -> bool {
        self.closing.is_empty() && (self.counts.is_empty() || self.has_lapsed(now))
    }
}

impl ProcessCounts {
    /// Calls `act` with the map and the present instant, under the mutex.
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

    /// Regression: any number was kept, so each reload that renamed its lists leaked memory.
    #[test]
    fn sets_and_maps_are_bounded_and_dropped_after_expiry() {
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
            add(NAMES_MAX, None).expect("it replaces the expired one");
            let full = add(NAMES_MAX + 1, None).expect_err("no other is over");
            assert!(full.to_string().contains("no room for"), "{full}");
            add(NAMES_MAX, None).expect("it already exists");
        }
    }
}
