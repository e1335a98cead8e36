//! A request over several buckets, all or nothing.
//!
//! 1. Find each bucket. A bucket that occurs twice is one target.
//! 2. If all are words: read them and decide on the copies. If that changes none of them, as a
//!    refusal does, that is the answer, and nothing has been written or locked. (One refusing
//!    bucket is enough, and it refused at the instant when it was read.)
//! 3. Else make it binding. Hold the stripes of keys that have no slot yet and claim one for each;
//!    lock the shards of records; lock the words. Each kind in rising order, and the kinds in this
//!    order, in all threads, so there is no deadlock. A new key that finds no room goes to its
//!    overflow bucket, which is locked after the shards, while the slot that it does not have is
//!    held. A block that finds none is not kept.
//! 4. If a word is not as it was in step 2, or there are records, decide again on the locked
//!    states.
//! 5. Write and unlock.
//!
//! Step 3 can fail: a slot whose bucket was full again may have been taken over since it was found.
//! Then it is repeated with the stripes of all targets held, and cannot fail so.

mod shared;

use super::MemoryStore;
use super::moving::{BucketLocation, can_move};
use crate::overflow::Overflow;
use crate::records::{NewKeyAdmission, Shard};
use crate::sync::MutexGuard;
use crate::table::SlotIndex;
use crate::word;
use smallvec::SmallVec;
use tidegate_core::{Ask, Bucket, BucketState, Clock, Op, Quota, Reply, Timestamp, step};

/// Number of buckets up to which a request needs no allocation.
const INLINE: usize = 4;

/// A list that needs no allocation for a usual request.
type InlineVec<T> = SmallVec<[T; INLINE]>;

/// A locked stripe with its number.
type Stripe<'a> = (usize, MutexGuard<'a, u64>);

/// Locked shards with their numbers, rising.
type Shards<'a> = InlineVec<(usize, MutexGuard<'a, Shard>)>;

/// One of the buckets of a request.
struct BucketTarget<'a> {
    /// Fingerprint of the bucket.
    fingerprint: u64,
    /// Its quota.
    quota: &'a Quota,
    /// First ask for it.
    ask: Ask<'a>,
    /// Location of its state.
    home: TargetState,
    /// Admission if it is a record and there is no room.
    entrance: NewKeyAdmission,
}

/// Location of a target's state.
#[derive(Clone, Copy, PartialEq)]
enum TargetState {
    /// In the table: the slot, if it has one, and the word seen there.
    Word { place: Option<SlotIndex>, seen: u64 },
    /// In the records.
    Record,
    /// Not stored: there is no room, and the overflow bucket decides.
    Overflow,
    /// No state: there is no room for a block, and it is not kept. Its limit still applies, and no
    /// subject is blocked because others were.
    Unkept,
}

impl TargetState {
    /// Returns the location of a bucket for which there is no room.
    fn without_room(ask: &Ask<'_>) -> Self {
        if ask.op == Op::Block {
            Self::Unkept
        } else {
            Self::Overflow
        }
    }
}

/// The targets of a request, and the target of each ask.
struct RequestTargets<'a> {
    /// The buckets, each once.
    targets: InlineVec<BucketTarget<'a>>,
    /// Index of the target of each ask.
    places: InlineVec<usize>,
}

/// The decision on copies, and the copies after it.
struct DecidedCopies {
    /// The reply if the copies are current.
    reply: Reply,
    /// The states after the decision, in the order of the targets.
    buckets: InlineVec<Bucket>,
}

/// Locks held while a request is decided.
struct LockedBuckets<'a> {
    /// Locked shards.
    shards: Shards<'a>,
    /// The overflow buckets, if a target needs one.
    overflow: Option<MutexGuard<'a, Overflow>>,
    /// Locked words in the order of the targets, 0 for targets that are not words.
    words: InlineVec<u64>,
}

/// Error: a slot was taken over by another key between the search and the lock.
struct TargetMoved;

impl<C: Clock> MemoryStore<C> {
    /// Decides a request over several buckets; see the [module](self) for the steps.
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

    /// Carries out step 1: finds the targets.
    fn plan<'a>(&self, asks: &[Ask<'a>], now: Timestamp) -> RequestTargets<'a> {
        let mut plan = RequestTargets {
            targets: InlineVec::new(),
            places: InlineVec::new(),
        };
        for ask in asks {
            let fingerprint = self.fingerprint(ask.bucket, ask.quota);
            let known = |target: &BucketTarget<'_>| target.fingerprint == fingerprint;
            let place = plan.targets.iter().position(known);
            plan.places.push(place.unwrap_or(plan.targets.len()));
            let entrance = NewKeyAdmission::of(ask);
            if let Some(target) = place.and_then(|place| plan.targets.get_mut(place)) {
                target.entrance = target.entrance.max(entrance);
            } else {
                plan.targets.push(BucketTarget {
                    entrance,
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

    /// Carries out step 2: decides on copies. `None` if there are records, new keys while an
    /// overflow bucket is in use, or states to settle.
    fn draft(
        &self,
        asks: &[Ask<'_>],
        plan: &mut RequestTargets<'_>,
        now: Timestamp,
    ) -> Option<DecidedCopies> {
        let mut buckets = InlineVec::new();
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
            if bucket.is_beyond_reach(target.quota, now) {
                return None;
            }
            buckets.push(bucket);
        }
        Some(DecidedCopies::of(asks, plan, buckets, now))
    }

    /// Returns true if the draft leaves all states as they were, so that nothing has to be written.
    fn changes_nothing(&self, plan: &RequestTargets<'_>, draft: &DecidedCopies) -> bool {
        plan.targets
            .iter()
            .zip(&draft.buckets)
            .all(|(target, bucket)| match target.home {
                TargetState::Word { seen, .. } => self.unpack(seen, target.quota) == *bucket,
                TargetState::Record | TargetState::Overflow | TargetState::Unkept => false,
            })
    }

    /// Carries out steps 3 to 5. `hold` is true if the stripes of all words are to be held, and
    /// contains the draft.
    ///
    /// # Errors
    ///
    /// [`TargetMoved`] if a slot was taken over since step 1. The caller then repeats the step with
    /// the stripes of all words held.
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

    /// Returns the word to write for `bucket` in place of `word`. No word is ever written twice to
    /// a slot, so that no reader takes another key's word for its own: a bucket that is full keeps
    /// its word, or gets one of now.
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

    /// Returns true if `now` is outdated: a record that is not there may have come and gone since.
    fn is_late(&self, plan: &RequestTargets<'_>, shards: &mut Shards<'_>, now: Timestamp) -> bool {
        plan.targets.iter().any(|target| {
            let shard = self.records.shard_of(target.fingerprint);
            target.home == TargetState::Record
                && shard_in(shards, shard)
                    .is_some_and(|shard| shard.may_have_dropped(target.fingerprint, now))
        })
    }

    /// Assigns a slot to every word target, or rejects it. Holds the stripes of those that had
    /// none, or of all. Returns true if `now` is outdated for one of them.
    fn claim_slots(
        &self,
        plan: &mut RequestTargets<'_>,
        hold_all: bool,
        now: Timestamp,
    ) -> (InlineVec<Stripe<'_>>, bool) {
        let needs = |target: &BucketTarget<'_>| match target.home {
            TargetState::Word { place, .. } => hold_all || place.is_none(),
            TargetState::Record => can_move(target.quota),
            TargetState::Overflow | TargetState::Unkept => false,
        };
        let stripe_of = |target: &BucketTarget<'_>| self.table.stripe_of(target.fingerprint);
        let stripes = sorted(plan.targets.iter().filter(|t| needs(t)).map(stripe_of));
        let mut guards: InlineVec<Stripe<'_>> = stripes
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
                    // The draft assumed a full bucket: check that.
                    if claimed && word == word::fresh(instant) {
                        *seen = word;
                    }
                }
                Err(_) => target.home = TargetState::without_room(&target.ask),
            }
        }
        (guards, late)
    }

    /// Locks the shards of all records, and rejects those for which there is no room; locks the
    /// overflow buckets if need be. Records that are still words are taken over. Returns true if
    /// `now` is outdated.
    fn lock_shards(
        &self,
        plan: &mut RequestTargets<'_>,
        stripes: &mut InlineVec<Stripe<'_>>,
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
            if !shard.has_room(target.fingerprint, target.entrance, now) {
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

    /// Locks all words and returns them in the order of the targets, 0 for records.
    ///
    /// The order of locking is that of the slots, not of the targets, so that two requests cannot
    /// wait for each other. If one slot was taken over, all words locked so far are unlocked
    /// unchanged.
    ///
    /// # Errors
    ///
    /// [`TargetMoved`] if a slot belongs to another key by now.
    fn lock_words(&self, plan: &RequestTargets<'_>) -> Result<InlineVec<u64>, TargetMoved> {
        let mut order: InlineVec<(SlotIndex, usize)> = InlineVec::new();
        for (i, target) in plan.targets.iter().enumerate() {
            if let TargetState::Word {
                place: Some(place), ..
            } = target.home
            {
                order.push((place, i));
            }
        }
        order.sort_unstable();
        let mut words: InlineVec<u64> = plan.targets.iter().map(|_| 0).collect();
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

    /// Carries out step 4: decides on the locked states.
    fn decide_held(
        &self,
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        held: &mut LockedBuckets<'_>,
        now: Timestamp,
    ) -> DecidedCopies {
        let mut buckets: InlineVec<Bucket> = plan
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
        let now = self.clamp_to_now(buckets.iter_mut().zip(quotas), now);
        let has_no_place =
            |it: &BucketTarget<'_>| matches!(it.home, TargetState::Overflow | TargetState::Unkept);
        if plan.targets.iter().any(has_no_place) {
            DecidedCopies::without_places(asks, plan, buckets, now)
        } else {
            DecidedCopies::of(asks, plan, buckets, now)
        }
    }

    /// Takes a record out of its locked shard. A key without a record begins with a copy of its
    /// overflow bucket if it was charged there, else full.
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
    /// Decides on `buckets`, and keeps them with the reply.
    fn of(
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        mut buckets: InlineVec<Bucket>,
        now: Timestamp,
    ) -> Self {
        let reply = step::decide(asks, &plan.places, &mut buckets, now);
        Self { reply, buckets }
    }
}

/// Returns the locked shard with the number `wanted`.
fn shard_in<'s>(shards: &'s mut Shards<'_>, wanted: usize) -> Option<&'s mut Shard> {
    let found = shards.iter_mut().find(|(shard, _)| *shard == wanted)?;
    Some(&mut found.1)
}

/// Returns the numbers in rising order, each once.
fn sorted(items: impl Iterator<Item = usize>) -> InlineVec<usize> {
    let mut items: InlineVec<usize> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
