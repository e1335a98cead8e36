//! A request over several buckets, all or nothing.
//!
//! 1. Find each bucket. The same bucket asked for twice is one target.
//! 2. Where all are words: read them as they are and decide on the copies. If that changes none of
//!    them, as a refusal does, that is the answer, and nothing has been written or locked. (One
//!    refusing bucket is enough, and it refused at the instant when it was read.)
//! 3. Else make it binding. Hold the stripes of keys that have no slot yet and claim one for each;
//!    lock the shards of records; lock the words. Each kind in rising order, and the kinds in this
//!    order, by everybody, so nobody waits in a circle. A new key that finds no room goes to its
//!    overflow bucket, which is locked after the shards, while the place that it does not have is held;
//!    a block that finds none is not kept.
//! 4. If a word is not as it was in step 2, or there are records, decide anew on what is locked.
//! 5. Write and unlock.
//!
//! Step 3 can fail: a slot that was as good as new may have been taken over since it was found. Then
//! it is done again with the stripes of all targets held, and cannot fail so.

mod shared;

use super::MemoryStore;
use super::moving::{BucketLocation, can_move};
use crate::overflow::Overflow;
use crate::records::{Entrance, Shard};
use crate::sync::MutexGuard;
use crate::table::SlotIndex;
use crate::word;
use smallvec::SmallVec;
use tidegate_core::{Ask, Bucket, BucketState, Clock, Op, Quota, Reply, Timestamp, step};

/// Requests over this many buckets need no allocation.
const INLINE: usize = 4;

type Few<T> = SmallVec<[T; INLINE]>;

/// A stripe by its number.
type Stripe<'a> = (usize, MutexGuard<'a, u64>);

/// Shards by their numbers, rising.
type Shards<'a> = Few<(usize, MutexGuard<'a, Shard>)>;

/// One of the buckets that a request means.
struct BucketTarget<'a> {
    fingerprint: u64,
    quota: &'a Quota,
    /// The first ask that means it.
    ask: Ask<'a>,
    home: TargetState,
}

/// Where a target's state is.
#[derive(Clone, Copy, PartialEq)]
enum TargetState {
    /// In the table: the slot, if it has one, and the word seen there.
    Word { place: Option<SlotIndex>, seen: u64 },
    /// In the records.
    Record,
    /// Nowhere: there is no room, and the overflow bucket decides.
    Overflow,
    /// Nowhere, and nothing stands in: there is no room for a block, and it is not kept. Its limit
    /// holds all the same, and nobody is blocked because others were.
    Unkept,
}

impl TargetState {
    /// Where a bucket is for which there is no room.
    fn without_room(ask: &Ask<'_>) -> Self {
        if ask.op == Op::Block {
            Self::Unkept
        } else {
            Self::Overflow
        }
    }
}

/// A request's targets, and which of them each ask means.
struct RequestTargets<'a> {
    targets: Few<BucketTarget<'a>>,
    places: Few<usize>,
}

/// What was decided on copies, and the copies as they then are.
struct DecidedCopies {
    reply: Reply,
    buckets: Few<Bucket>,
}

/// What is locked while a request is decided.
struct LockedBuckets<'a> {
    shards: Shards<'a>,
    /// If a target is there.
    overflow: Option<MutexGuard<'a, Overflow>>,
    /// In the order of the targets, 0 where they are no words.
    words: Few<u64>,
}

/// A slot was taken over by another key.
struct TargetMoved;

impl<C: Clock> MemoryStore<C> {
    pub(super) fn decide_several(&self, asks: &[Ask<'_>], now: Timestamp) -> Reply {
        let mut plan = self.plan(asks, now);
        let mut draft = self.draft(asks, &mut plan, now);
        if let Some(draft) = draft.take_if(|draft| self.changes_nothing(&plan, draft)) {
            return draft.reply;
        }
        let mut hold_all = false;
        loop {
            match self.decide_locked(asks, &mut plan, (hold_all, draft.take()), now) {
                Ok(reply) => return reply,
                Err(TargetMoved) => {
                    hold_all = true;
                    plan = self.plan(asks, now);
                }
            }
        }
    }

    /// Step 1.
    fn plan<'a>(&self, asks: &[Ask<'a>], now: Timestamp) -> RequestTargets<'a> {
        let mut plan = RequestTargets {
            targets: Few::new(),
            places: Few::new(),
        };
        for ask in asks {
            let fingerprint = self.fingerprint(ask.bucket, ask.quota);
            let known = |target: &BucketTarget<'_>| target.fingerprint == fingerprint;
            let place = plan.targets.iter().position(known);
            plan.places.push(place.unwrap_or(plan.targets.len()));
            if place.is_none() {
                plan.targets.push(BucketTarget {
                    fingerprint,
                    quota: ask.quota,
                    ask: *ask,
                    home: if self.is_word(ask.quota, now) {
                        TargetState::Word {
                            place: None,
                            seen: 0,
                        }
                    } else {
                        TargetState::Record
                    },
                });
            }
        }
        plan
    }

    /// Step 2; `None` where there are records, new keys while an overflow bucket is in use, or states
    /// to settle.
    fn draft(
        &self,
        asks: &[Ask<'_>],
        plan: &mut RequestTargets<'_>,
        now: Timestamp,
    ) -> Option<DecidedCopies> {
        let mut buckets = Few::new();
        for target in &mut plan.targets {
            let TargetState::Word { place, seen } = &mut target.home else {
                return None;
            };
            if let Some(found) = self.table.find(target.fingerprint)
                && let Ok(word) = self.table.load(found, target.fingerprint)
            {
                (*place, *seen) = (Some(found), word);
            } else if self.is_overflowing(now) || self.has_movable() {
                return None;
            }
            let bucket = self.unpack(*seen, target.quota);
            if bucket.is_ahead(target.quota, now) {
                return None;
            }
            buckets.push(bucket);
        }
        Some(DecidedCopies::of(asks, plan, buckets, now))
    }

    fn changes_nothing(&self, plan: &RequestTargets<'_>, draft: &DecidedCopies) -> bool {
        plan.targets
            .iter()
            .zip(&draft.buckets)
            .all(|(target, bucket)| match target.home {
                TargetState::Word { seen, .. } => self.unpack(seen, target.quota) == *bucket,
                TargetState::Record | TargetState::Overflow | TargetState::Unkept => false,
            })
    }

    /// Steps 3 to 5. `hold` says whether to hold the stripes of all words, and brings the draft.
    fn decide_locked(
        &self,
        asks: &[Ask<'_>],
        plan: &mut RequestTargets<'_>,
        hold: (bool, Option<DecidedCopies>),
        now: Timestamp,
    ) -> Result<Reply, TargetMoved> {
        let (hold_all, draft) = hold;
        let (mut stripes, late) = self.claim_slots(plan, hold_all, now);
        let (shards, overflow, late) = self.lock_shards(plan, &mut stripes, (late, now));
        let words = self.lock_words(plan)?;
        let mut locked = LockedBuckets {
            shards,
            overflow,
            words,
        };

        let as_drafted = plan.targets.iter().zip(&locked.words).all(
            |(target, word)| matches!(target.home, TargetState::Word { seen, .. } if seen == *word),
        );
        let done = match draft {
            Some(draft) if as_drafted && !late => draft,
            _ if late => self.decide_held(asks, plan, &mut locked, self.clock.now()),
            _ => self.decide_held(asks, plan, &mut locked, now),
        };
        if let Some(overflow) = &mut locked.overflow {
            self.note_shared(overflow, asks, plan, &done);
        }
        let (now, reply) = (done.reply.at, done.reply);
        for ((target, word), bucket) in plan.targets.iter().zip(&locked.words).zip(done.buckets) {
            match target.home {
                TargetState::Word { place, .. } => {
                    if let Some(place) = place {
                        let next = self.next_word(*word, &bucket, target.quota, now);
                        self.table.unlock(place, next);
                    }
                }
                TargetState::Record => {
                    let shard = self.records.shard_of(target.fingerprint);
                    if let Some(shard) = shard_in(&mut locked.shards, shard) {
                        shard.put(target.fingerprint, bucket, target.quota, now);
                    }
                }
                TargetState::Overflow => {
                    if let Some(overflow) = &mut locked.overflow {
                        let name = self.overflow_of(&target.ask, target.fingerprint);
                        self.put_overflow(overflow, (name, &target.ask), bucket, now);
                    }
                }
                TargetState::Unkept => {}
            }
        }
        Ok(reply)
    }

    /// The word to leave for `bucket` where `word` was. No word is ever written twice to a slot, so
    /// that nobody takes another key's word for his own: a bucket that is as good as new keeps the
    /// word that it has, or gets one of now.
    fn next_word(&self, word: u64, bucket: &Bucket, quota: &Quota, now: Timestamp) -> u64 {
        let is_fresh = |bucket: &Bucket| bucket.fresh_at(quota) <= now;
        let before = self.unpack(word, quota);
        if before == *bucket || (is_fresh(&before) && is_fresh(bucket)) {
            word
        } else if is_fresh(bucket) {
            word::fresh(self.since_epoch(now))
        } else {
            self.pack(bucket, quota)
        }
    }

    /// Whether `now` is not now any more: a record that is not there may have come and gone since.
    fn is_late(&self, plan: &RequestTargets<'_>, shards: &mut Shards<'_>, now: Timestamp) -> bool {
        plan.targets.iter().any(|target| {
            let shard = self.records.shard_of(target.fingerprint);
            target.home == TargetState::Record
                && shard_in(shards, shard)
                    .is_some_and(|shard| shard.may_have_dropped(target.fingerprint, now))
        })
    }

    /// Gives every word target a slot, or turns it away; holds the stripes of those that had none,
    /// or of all. Tells whether `now` is not now any more for one of them.
    fn claim_slots(
        &self,
        plan: &mut RequestTargets<'_>,
        hold_all: bool,
        now: Timestamp,
    ) -> (Few<Stripe<'_>>, bool) {
        let needs = |target: &BucketTarget<'_>| match target.home {
            TargetState::Word { place, .. } => hold_all || place.is_none(),
            TargetState::Record => can_move(target.quota),
            TargetState::Overflow | TargetState::Unkept => false,
        };
        let stripe_of = |target: &BucketTarget<'_>| self.table.stripe_of(target.fingerprint);
        let stripes = sorted(plan.targets.iter().filter(|t| needs(t)).map(stripe_of));
        let mut guards: Few<Stripe<'_>> = stripes
            .into_iter()
            .map(|stripe| (stripe, self.table.hold(stripe)))
            .collect();
        let instant = self.since_epoch(now);
        let mut late = guards.iter().any(|(_, taken_over)| instant < **taken_over);
        for target in &mut plan.targets {
            let stripe = self.table.stripe_of(target.fingerprint);
            let TargetState::Word { place, seen } = &mut target.home else {
                continue;
            };
            let Some((_, guard)) = guards.iter_mut().find(|(held, _)| *held == stripe) else {
                continue;
            };
            if self.has_movable() && self.table.find(target.fingerprint).is_none() {
                match self.fetch_record(guard, (target.fingerprint, target.quota)) {
                    BucketLocation::Word(found) => {
                        *place = Some(found);
                        continue;
                    }
                    BucketLocation::Record => {
                        target.home = TargetState::Record;
                        continue;
                    }
                    BucketLocation::Nowhere => {}
                }
            }
            let (at, word) = self.first_word(&target.ask, target.fingerprint, now);
            late |= at > now;
            match self.table.claim(guard, target.fingerprint, word, instant) {
                Ok((found, claimed)) => {
                    *place = Some(found);
                    // The draft took it to be as good as new: is it?
                    if claimed && word == word::fresh(instant) {
                        *seen = word;
                    }
                }
                Err(_) => target.home = TargetState::without_room(&target.ask),
            }
        }
        (guards, late)
    }

    /// Locks the shards of all records, and turns away those for which there is no room; locks the
    /// overflow buckets if need be. Records that are words so far are taken over. Tells whether `now` is
    /// not now any more.
    fn lock_shards(
        &self,
        plan: &mut RequestTargets<'_>,
        stripes: &mut Few<Stripe<'_>>,
        (late, now): (bool, Timestamp),
    ) -> (Shards<'_>, Option<MutexGuard<'_, Overflow>>, bool) {
        let records = plan.targets.iter().filter_map(|target| match target.home {
            TargetState::Record => Some(self.records.shard_of(target.fingerprint)),
            TargetState::Word { .. } | TargetState::Overflow | TargetState::Unkept => None,
        });
        let mut shards: Shards<'_> = sorted(records)
            .into_iter()
            .map(|shard| (shard, self.records.lock(shard)))
            .collect();
        for target in &mut plan.targets {
            let Some(shard) = shard_in(&mut shards, self.records.shard_of(target.fingerprint))
                .filter(|_| target.home == TargetState::Record)
            else {
                continue;
            };
            let stripe = self.table.stripe_of(target.fingerprint);
            if can_move(target.quota)
                && let Some((_, held)) = stripes.iter_mut().find(|(nth, _)| *nth == stripe)
            {
                self.fetch_word(held, shard, (target.fingerprint, target.quota));
            }
            if !shard.has_room(target.fingerprint, Entrance::IfRoom, now) {
                target.home = TargetState::without_room(&target.ask);
            }
        }
        let turned_away = |target: &BucketTarget<'_>| target.home == TargetState::Overflow;
        let is_needed = plan.targets.iter().any(turned_away)
            || (!shards.is_empty() && self.is_overflowing(now));
        let overflow = is_needed.then(|| self.records.lock_overflow());
        if overflow.is_some() {
            plan.share_overflow(|target| self.overflow_of(&target.ask, target.fingerprint));
        }
        let late = late
            || overflow.as_ref().is_some_and(|it| it.is_late(now))
            || self.is_late(plan, &mut shards, now);
        (shards, overflow, late)
    }

    /// Locks all words; gives them back in the order of the targets, 0 for records.
    fn lock_words(&self, plan: &RequestTargets<'_>) -> Result<Few<u64>, TargetMoved> {
        let mut order: Few<(SlotIndex, usize)> = Few::new();
        for (i, target) in plan.targets.iter().enumerate() {
            if let TargetState::Word {
                place: Some(place), ..
            } = target.home
            {
                order.push((place, i));
            }
        }
        order.sort_unstable();
        let mut words: Few<u64> = plan.targets.iter().map(|_| 0).collect();
        for (nth, (place, i)) in order.iter().enumerate() {
            let fingerprint = plan.targets.get(*i).map_or(0, |t| t.fingerprint);
            match (self.table.lock(*place, fingerprint), words.get_mut(*i)) {
                (Ok(word), Some(slot)) => *slot = word,
                _ => {
                    for (place, i) in order.iter().take(nth) {
                        self.table
                            .unlock(*place, words.get(*i).copied().unwrap_or(0));
                    }
                    return Err(TargetMoved);
                }
            }
        }
        Ok(words)
    }

    /// Step 4.
    fn decide_held(
        &self,
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        held: &mut LockedBuckets<'_>,
        now: Timestamp,
    ) -> DecidedCopies {
        let mut buckets: Few<Bucket> = plan
            .targets
            .iter()
            .zip(&held.words)
            .map(|(target, word)| match target.home {
                TargetState::Word { .. } => self.unpack(*word, target.quota),
                TargetState::Record => {
                    let overflow = held.overflow.as_deref();
                    self.take_record(target, (&mut held.shards, overflow), now)
                }
                TargetState::Overflow | TargetState::Unkept => Bucket::new(target.quota),
            })
            .collect();
        // Last, because new records begin with copies of these.
        for (target, bucket) in plan.targets.iter().zip(&mut buckets) {
            if target.home == TargetState::Overflow
                && let Some(overflow) = &mut held.overflow
            {
                let name = self.overflow_of(&target.ask, target.fingerprint);
                *bucket = overflow.take(name, target.quota, now);
            }
        }
        let quotas = plan.targets.iter().map(|target| target.quota);
        let now = self.settle(buckets.iter_mut().zip(quotas), now);
        let has_no_place =
            |it: &BucketTarget<'_>| matches!(it.home, TargetState::Overflow | TargetState::Unkept);
        if plan.targets.iter().any(has_no_place) {
            DecidedCopies::without_places(asks, plan, buckets, now)
        } else {
            DecidedCopies::of(asks, plan, buckets, now)
        }
    }

    fn take_record(
        &self,
        target: &BucketTarget<'_>,
        (shards, overflow): (&mut Shards<'_>, Option<&Overflow>),
        now: Timestamp,
    ) -> Bucket {
        let key = target.fingerprint;
        let shard = shard_in(shards, self.records.shard_of(key));
        if let Some(shard) = shard.filter(|shard| shard.contains(key)) {
            return shard.take(key, target.quota, now);
        }
        let copy = overflow.and_then(|overflow| {
            let name = self.overflow_of(&target.ask, key);
            overflow.copy((name, key), target.quota, now)
        });
        copy.unwrap_or_else(|| Bucket::new(target.quota))
    }
}

impl DecidedCopies {
    /// Decides on `buckets`.
    fn of(
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        mut buckets: Few<Bucket>,
        now: Timestamp,
    ) -> Self {
        let reply = step::decide(asks, &plan.places, &mut buckets, now);
        Self { reply, buckets }
    }
}

fn shard_in<'s>(shards: &'s mut Shards<'_>, wanted: usize) -> Option<&'s mut Shard> {
    let found = shards.iter_mut().find(|(shard, _)| *shard == wanted)?;
    Some(&mut found.1)
}

fn sorted(items: impl Iterator<Item = usize>) -> Few<usize> {
    let mut items: Few<usize> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
