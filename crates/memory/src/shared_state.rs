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
        let end = length.map(|length| after(self.0.clock.now(), length));
        let mut sets = self.0.sets.lock();
        let kept = sets.entry_ref(set).or_default();
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

impl ProcessCounts {
    /// Calls `act` with the map and the present instant.
    fn with<T>(&self, act: impl FnOnce(&mut ProcessMap, Timestamp) -> T) -> T {
        let now = self.state.0.clock.now();
        let mut maps = self.state.0.maps.lock();
        act(maps.entry_ref(&self.map.name).or_default(), now)
    }
}

impl SharedCounts for ProcessCounts {
    fn add<'a>(&'a mut self, counts: &'a [(Vec<u8>, u64)]) -> StateFuture<'a, AddedCounts> {
        let names_max = usize::try_from(self.map.names_max).unwrap_or(usize::MAX);
        let counted = self.with(|map, now| {
            if map.lasts_until.is_some_and(|end| end <= now) {
                map.counts.clear();
            }
            if map.counts.is_empty() {
                map.lasts_until = self.map.lasts.map(|lasts| after(now, lasts));
            }
            let mut sum: u64 = 0;
            for (name, count) in counts {
                let has_room = map.counts.len() < names_max || map.counts.contains_key(name);
                let name = if has_room { name } else { OTHER };
                let place = map.counts.entry_ref(name).or_default();
                *place = place.saturating_add(*count);
                sum = sum.saturating_add(*count);
            }
            sum
        });
        at_once(Ok(AddedCounts {
            counted,
            doubtful: 0,
        }))
    }

    fn close(&mut self, terms: PeriodTerms) -> StateFuture<'_, PeriodState> {
        at_once(Ok(self.with(|map, now| {
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
        })))
    }

    fn finish(&mut self) -> StateFuture<'_, bool> {
        at_once(Ok(self.with(|map, _| {
            let was_closing = !map.closing.is_empty();
            map.closing.clear();
            was_closing
        })))
    }
}
