//! Decisions without a free slot: the buckets that new keys of a limit share.
//!
//! A key without a slot is decided by the overflow bucket of its quota and group, alone, while the
//! slot that it does not have is held. A key that finds a slot begins full, unless it was itself
//! charged in the overflow bucket: then it begins with a copy of it, because its own debt is a part
//! of that one.
//!
//! The group of a key is its network (IPv4 /16, IPv6 /32) if its name contains an address, and else
//! the key itself. It follows from the name alone, so that all asks for a bucket agree.

use super::MemoryStore;
use crate::overflow::{GROUPS, Overflow};
use crate::word;
use std::hash::Hasher;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_core::{
    Ask, Bucket, BucketState, ChargedOutcome, Clock, Op, Outcome, Timestamp, step,
};

impl<C: Clock> MemoryStore<C> {
    /// Decides by the overflow bucket. The caller holds the place that the key does not have.
    #[cold]
    pub(super) fn decide_overflow(
        &self,
        ask: &Ask<'_>,
        key: u64,
        now: Timestamp,
    ) -> ChargedOutcome {
        let name = self.overflow_of(ask, key);
        let mut overflow = self.records.lock_overflow();
        let now = self.unless_late(&overflow, now);
        let mut bucket = overflow.take(name, ask.quota, now);
        let now = self.clamp_to_now([(&mut bucket, ask.quota)], now);
        let mut charged = step::charge_one(ask.quota, &mut bucket, without_credit(ask.op), now);
        if ask.op.receipt().is_some() {
            charged.outcome.mark = 0;
        }
        count(&mut overflow, ask, &charged.outcome, now);
        // At the floor, a forced charge takes only what the clock has paid off since the last one. If
        // each of them counted, a flood of debits would fill the filter with keys that owe next to
        // nothing.
        if charged.units > 0 {
            overflow.note_charge((name, key), &bucket, ask.quota, now);
        }
        self.put_overflow(&mut overflow, (name, ask), bucket, now);
        charged
    }

    /// Stores an overflow bucket, and extends the time for which overflow buckets matter.
    pub(super) fn put_overflow(
        &self,
        overflow: &mut Overflow,
        (name, ask): (u64, &Ask<'_>),
        bucket: Bucket,
        now: Timestamp,
    ) {
        let until = bucket.fresh_at(ask.quota).as_micros();
        self.overflow_until.fetch_max(until, Relaxed);
        overflow.put(name, bucket, ask.quota, now);
    }

    /// Returns the name of the overflow bucket of a key. It contains the numbers of the quota,
    /// which may differ from key to key if a plan sets them: a debt by one rate cannot be read by
    /// another.
    pub(super) fn overflow_of(&self, ask: &Ask<'_>, key: u64) -> u64 {
        let ((scope, subject), quota) = (parts(ask), ask.quota);
        let group = match network(subject) {
            Some(network) => self.fingerprint(network, quota),
            None => key,
        };
        // The higher bits: filters tell the keys of a group apart by the lower ones.
        let group = group / (u64::MAX / GROUPS + 1);
        let mut hasher = self.hasher(quota);
        hasher.write(scope);
        // The lifetime stands for the overdraft, which differs for requests of one key that may wait.
        for number in [
            quota.amount(),
            quota.period_us(),
            quota.capacity(),
            quota.lifetime_us_max(),
        ] {
            hasher.write_u64(number);
        }
        hasher.finish().wrapping_add(group)
    }

    /// Returns true if some overflow bucket still matters.
    #[inline]
    pub(super) fn is_overflowing(&self, now: Timestamp) -> bool {
        now.as_micros() < self.overflow_until.load(Relaxed)
    }

    /// Returns the state that a key without a place begins with when it gets one: a copy of the
    /// overflow bucket if it was charged there, and else `None`, for a new one. It keeps the copy
    /// even if that refuses it, so that it need not wait until no key uses the overflow bucket any
    /// more.
    ///
    /// The caller holds the place. Returns the instant to decide at, too.
    pub(super) fn begin(
        &self,
        ask: &Ask<'_>,
        key: u64,
        now: Timestamp,
    ) -> (Timestamp, Option<Bucket>) {
        if !self.is_overflowing(now) {
            return (now, None);
        }
        let overflow = self.records.lock_overflow();
        let now = self.unless_late(&overflow, now);
        let name = self.overflow_of(ask, key);
        (now, overflow.copy((name, key), ask.quota, now))
    }

    /// Returns the first state of a key ([`begin`](Self::begin)) as a word.
    pub(super) fn first_word(&self, ask: &Ask<'_>, key: u64, now: Timestamp) -> (Timestamp, u64) {
        match self.begin(ask, key, now) {
            (now, Some(bucket)) => (now, self.pack(&bucket, ask.quota)),
            (now, None) => (now, word::fresh(self.since_epoch(now))),
        }
    }

    /// Returns `now`, or the present time if the overflow buckets, which are locked, were changed
    /// after `now`.
    fn unless_late(&self, overflow: &Overflow, now: Timestamp) -> Timestamp {
        if overflow.is_late(now) {
            self.clock.now()
        } else {
            now
        }
    }
}

/// Counts a decision of an overflow bucket.
pub(super) fn count(overflow: &mut Overflow, ask: &Ask<'_>, outcome: &Outcome, now: Timestamp) {
    if ask.op.receipt().is_none() {
        let (scope, subject) = parts(ask);
        overflow.count(outcome, (scope, network(subject)), now);
    }
}

/// Splits the bucket name into the names of the limit and of the subject.
fn parts<'a>(ask: &Ask<'a>) -> (&'a [u8], &'a [u8]) {
    let parts = ask.bucket.split_at_checked(ask.scope);
    parts.unwrap_or((&[], ask.bucket))
}

/// Returns the operation for an overflow bucket. Nothing is credited there: the charge may have
/// been made elsewhere, and then the units would be other keys'.
pub(super) fn without_credit(op: Op) -> Op {
    op.receipt().map_or(op, |_| Op::Look)
}

/// Returns the network of the address in the name of a subject: up to the second `.` of an IPv4
/// address, or the second `:` of an IPv6 address. `None` if the name contains no address.
fn network(subject: &[u8]) -> Option<&[u8]> {
    /// Prefix of an address in the name of a subject.
    const ADDRESS: &[u8] = b"ip:";
    let starts = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| subject.get(at));
        matches!(before, None | Some(b'/' | b',' | b'~'))
            && subject.get(*at..).is_some_and(|it| it.starts_with(ADDRESS))
    };
    let at = (0..subject.len()).find(starts)?;
    let address = subject.get(at.saturating_add(ADDRESS.len())..)?;
    let mut separators = (0_usize..)
        .zip(address)
        .filter(|(_, it)| matches!(it, b'.' | b':'));
    let end = separators.nth(1).map_or(address.len(), |(at, _)| at);
    address.get(..end)
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn the_network_of_a_key_is_in_its_name() {
        for (subject, expected) in [
            ("ip:192.0.2.1", Some("192.0")),
            ("/ip:192.0.2.1", Some("192.0")),
            ("user:7,ip:10.1.2.3,method:GET", Some("10.1")),
            ("api-key~ip:10.1.2.3", Some("10.1")),
            ("ip:2001:db8:1:2::/64", Some("2001:db8")),
            ("ip:2001::/64", Some("2001:")),
            ("ip:::1", Some(":")),
            ("ip:unknown", Some("unknown")),
            ("user:7", None),
            ("header:x-ip:7", None),
            ("zip:10.1.2.3", None),
            ("", None),
        ] {
            let found = network(subject.as_bytes()).map(|it| str::from_utf8(it).unwrap());
            assert_eq!(found, expected, "{subject}");
        }
    }
}
