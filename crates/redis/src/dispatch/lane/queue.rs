//! The requests that wait in a lane, and which carrier may take which of them.
//!
//! Two calls in flight reach Redis in any order. So a bucket belongs to one carrier at a time: a request
//! for a bucket of another carrier's call goes with that carrier's next one, once this is back.

use super::batch::LaneBatch;
use super::waiter::{Buckets, LaneRequest};
use super::{CALL_WEIGHT_MAX, CARRIERS_MAX, PATIENCE};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::VecDeque;
use tokio::time::Instant;

/// The requests of a lane. Requests on one bucket are sent in order: those behind a call in flight wait
/// for its carrier.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<LaneRequest>,
    /// Of all that wait, except requests for the same buckets as the one before them.
    weight: u32,
    /// A bit for each carrier with a call in flight.
    carriers: u8,
    /// When the last of them was sent, or a carrier for it.
    pub(super) sent: Option<Instant>,
    /// The buckets of the last request, be it still here or in flight.
    last: Buckets,
    /// The buckets of requests that are in flight, or wait for a certain carrier.
    claims: HashMap<u64, Claim, RandomState>,
    /// The requests that wait for a certain carrier, by its number.
    behind: Vec<VecDeque<LaneRequest>>,
}

/// A bucket that belongs to a carrier.
#[derive(Debug)]
struct Claim {
    carrier: u8,
    /// The number of requests of that carrier on this bucket.
    requests: u32,
    /// True if one of them is in the carrier's present call.
    is_in_call: bool,
}

/// The carriers that the buckets of a request belong to.
enum Owner {
    Nobody,
    One(u8),
    Several,
}

impl Queue {
    /// Adds a request. Returns the number of the carrier that has to be sent for it, if one has to.
    pub(super) fn put(&mut self, mut waiter: LaneRequest, now: Instant) -> Option<u8> {
        waiter.is_repeat = self.last == waiter.buckets;
        if !waiter.is_repeat {
            self.last.clone_from(&waiter.buckets);
            self.weight = self.weight.saturating_add(waiter.weight);
        }
        let wants_carrier = self.wants_carrier(waiter.is_repeat, now);
        self.waiting.push_back(waiter);
        if !wants_carrier {
            return None;
        }
        let number = self.carriers.trailing_ones();
        self.carriers |= 1_u8.checked_shl(number)?;
        self.sent = Some(now);
        u8::try_from(number).ok()
    }

    /// Returns true if another carrier has to start: if none is running, if more requests wait than fit
    /// into the calls in flight, or if the last call was sent too long ago. For any number of equal
    /// requests one call at a time is enough: its reply may answer them all.
    fn wants_carrier(&self, is_repeat: bool, now: Instant) -> bool {
        let full_calls = self.weight / CALL_WEIGHT_MAX;
        let is_late = || {
            let sent = self.sent.unwrap_or(now);
            now.saturating_duration_since(sent) > PATIENCE
        };
        match self.carriers.count_ones() {
            0 => true,
            CARRIERS_MAX.. => false,
            carriers => carriers <= full_calls || (!is_repeat && is_late()),
        }
    }

    /// Takes the next request that `carrier` may add to `batch`, if it fits in there. Returns with it
    /// how many of its buckets are meant in there already.
    ///
    /// A request whose buckets belong to several carriers, and all behind it, wait until they are back.
    pub(super) fn next(&mut self, carrier: u8, batch: &LaneBatch) -> Option<(LaneRequest, usize)> {
        let behind = self.behind.get(usize::from(carrier));
        if let Some(waiter) = behind.and_then(VecDeque::front) {
            let known = self.known(waiter);
            if !batch.has_room(waiter, known) {
                return None;
            }
            let behind = self.behind.get_mut(usize::from(carrier))?;
            return Some((behind.pop_front()?, known));
        }
        loop {
            let waiter = self.waiting.front()?;
            let owner = match self.owner(waiter) {
                Owner::Several => return None,
                Owner::One(other) => other,
                Owner::Nobody => carrier,
            };
            let known = self.known(waiter);
            if owner == carrier && !batch.has_room(waiter, known) {
                return None;
            }
            let waiter = self.waiting.pop_front()?;
            if !waiter.is_repeat {
                self.weight = self.weight.saturating_sub(waiter.weight);
            }
            self.claim(&waiter.buckets, owner);
            if owner == carrier {
                return Some((waiter, known));
            }
            let other = usize::from(owner);
            if self.behind.len() <= other {
                self.behind
                    .resize_with(other.saturating_add(1), VecDeque::new);
            }
            self.behind.get_mut(other)?.push_back(waiter);
        }
    }

    /// Returns the carrier that the buckets of a request belong to.
    fn owner(&self, waiter: &LaneRequest) -> Owner {
        let mut owner = Owner::Nobody;
        for claim in waiter.buckets.iter().filter_map(|it| self.claims.get(it)) {
            match owner {
                Owner::One(other) if other != claim.carrier => return Owner::Several,
                Owner::Nobody | Owner::One(_) | Owner::Several => {
                    owner = Owner::One(claim.carrier);
                }
            }
        }
        owner
    }

    /// Returns the number of a request's buckets that are in the present call of their carrier.
    fn known(&self, waiter: &LaneRequest) -> usize {
        let is_known = |bucket: &&u64| self.claims.get(*bucket).is_some_and(|it| it.is_in_call);
        waiter.buckets.iter().filter(is_known).count()
    }

    /// Assigns buckets to a carrier, so that later requests on them wait for it.
    fn claim(&mut self, buckets: &[u64], carrier: u8) {
        for bucket in buckets {
            let claim = self.claims.entry(*bucket).or_insert(Claim {
                carrier,
                requests: 0,
                is_in_call: false,
            });
            claim.requests = claim.requests.saturating_add(1);
        }
    }

    /// Notes that a request goes with its carrier's present call.
    pub(super) fn board(&mut self, buckets: &[u64]) {
        for bucket in buckets {
            if let Some(claim) = self.claims.get_mut(bucket) {
                claim.is_in_call = true;
            }
        }
    }

    /// Notes that requests are back, by their buckets, or will not be sent.
    pub(super) fn release(&mut self, buckets: &[u64], is_back: bool) {
        for bucket in buckets {
            if let Some(claim) = self.claims.get_mut(bucket) {
                claim.requests = claim.requests.saturating_sub(1);
                claim.is_in_call &= !is_back;
                if claim.requests == 0 {
                    self.claims.remove(bucket);
                }
            }
        }
    }

    /// Ends a carrier that has nothing to do.
    pub(super) fn end(&mut self, carrier: u8) {
        self.carriers &= !1_u8.checked_shl(carrier.into()).unwrap_or(0);
    }

    /// Ends a carrier whose call was given up. The requests behind it wait for another.
    pub(super) fn abandon(&mut self, carrier: u8) {
        self.end(carrier);
        self.claims.retain(|_, claim| claim.carrier != carrier);
        let behind = self.behind.get_mut(usize::from(carrier));
        let behind = behind.map(std::mem::take).unwrap_or_default();
        for waiter in behind.into_iter().rev() {
            if !waiter.is_repeat {
                self.weight = self.weight.saturating_add(waiter.weight);
            }
            self.waiting.push_front(waiter);
        }
    }
}
