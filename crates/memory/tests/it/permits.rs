//! Requests in flight.

use crate::shop::{MINUTE_US, START, ask, name, narrow, store, take, wide};
use tidegate_core::ask::{PermitId, PermitTerms};
use tidegate_core::{Ask, ManualClock, Op, Outcome, Quota, Receipt, Wait};
use tidegate_memory::MemoryStore;

fn concurrent(permits: u64) -> Quota {
    Quota::concurrent(permits).build().unwrap()
}

fn release(store: &MemoryStore<ManualClock>, subject: u64, quota: &Quota) -> Outcome {
    let name = name("api", subject);
    store.decide_one(&Ask {
        op: Op::GiveBack(Receipt::latest(1)),
        ..ask(&name, "api", quota)
    })
}

fn acquire(id: u64, ttl_us: u64) -> Op {
    Op::Acquire(PermitTerms {
        id: PermitId([id, 1]),
        units: 1,
        ttl_us,
    })
}

/// A bucket with permits has no instant at which it may be evicted, for any number of other keys.
#[test]
fn no_permit_is_evicted_from_a_full_store() {
    let (store, clock) = store(100);
    let one = concurrent(1);
    for subject in 0..20 {
        assert!(take(&store, "api", subject, &one).is_allowed());
    }
    for round in 0..3 {
        for subject in 0..2_000 {
            take(&store, "filler", 10_000 * round + subject, &wide(3));
        }
        clock.advance_micros(10 * MINUTE_US);
    }
    for subject in 0..20 {
        let refused = take(&store, "api", subject, &one);
        assert_eq!(refused.wait, Wait::RELEASE, "{subject}");
        release(&store, subject, &one);
        assert!(take(&store, "api", subject, &one).is_allowed(), "{subject}");
    }
}

/// A guard finds its permit again even if it was taken while no record had room: it shares no bucket with others.
#[test]
fn a_full_store_has_a_bucket_for_each_key_with_guards() {
    let (store, _clock) = store(1);
    for subject in 0..5_000 {
        take(&store, "filler", subject, &wide(1));
    }
    assert!(store.shared().total() > 0, "the store is full");
    let (shared, one) = (store.shared().total(), concurrent(1));
    let rate = narrow(1_000_000);
    for subject in 0..500 {
        let name = name("api", subject);
        let request = [ask(&name, "api", &one), ask("all", "api", &rate)];
        assert!(store.decide_now(&request).passed, "{subject}");
        assert!(!store.decide_now(&request).passed, "{subject}");
    }
    for subject in 0..500 {
        release(&store, subject, &one);
        assert!(take(&store, "api", subject, &one).is_allowed(), "{subject}");
        release(&store, subject, &one);
    }
    let used = store.stats().record_bytes;
    assert!(take(&store, "api", 7, &one).is_allowed());
    assert!(
        store.stats().record_bytes > used,
        "a record that is free is gone"
    );
    let rates = store.shared().total() - shared;
    assert!(
        rates <= 1_000,
        "only the rate may have had no room: {rates}"
    );
}

/// Nothing bounds how many keys acquire permits that end by themselves, so without room they share a bucket.
#[test]
fn a_full_store_never_holds_too_many_permits_with_an_end() {
    let (store, clock) = store(1);
    for subject in 0..5_000 {
        take(&store, "filler", subject, &wide(1));
    }
    let (quota, used) = (concurrent(2), store.stats().record_bytes);
    let acquire_for = |subject: u64, id| {
        let name = name("api", subject);
        store.decide_one(&Ask {
            op: acquire(id, MINUTE_US / 2),
            ..ask(&name, "api", &quota)
        })
    };
    let held = (0..5_000).filter(|subject| acquire_for(*subject, 100 + *subject).is_allowed());
    assert!(held.count() >= 2, "their bucket has room for two at least");
    let grown = store.stats().record_bytes - used;
    assert!(grown < 200_000, "{grown} bytes more");
    // A key that held one when there was no room does not begin with none when there is.
    for subject in 0..2 {
        let before = acquire_for(subject, 100 + subject);
        assert!(before.is_allowed(), "a repetition");
    }
    clock.advance_micros(2 * MINUTE_US);
    let free = (0..2).filter(|id| acquire_for(9_999, *id).is_allowed());
    assert_eq!(free.count(), 2, "all have ended");
    assert!(!acquire_for(9_999, 2).is_allowed());
}

/// The guards of a reset bucket are in flight, and will release their permits: those must not be others'.
#[test]
fn a_reset_frees_permits_with_an_end_and_keeps_those_of_guards() {
    let (store, _clock) = store(100);
    let quota = concurrent(3);
    let subject = name("api", 1);
    let mine = ask(&subject, "api", &quota);
    assert!(store.decide_one(&mine).is_allowed());
    assert!(!store.reset_now(mine.bucket, &quota), "nothing to free");
    let op = acquire(1, MINUTE_US);
    assert!(store.decide_one(&Ask { op, ..mine }).is_allowed());
    assert!(store.reset_now(mine.bucket, &quota));
    let look = Ask {
        op: Op::Look,
        ..mine
    };
    assert_eq!(store.decide_one(&look).remaining, 2);
    release(&store, 1, &quota);
    assert_eq!(store.decide_one(&look).remaining, 3);
    assert!(store.inspect_now(mine.bucket, &quota).is_none());
}

/// Guards end with their process. Permits with an end outlive it, as their holders do.
#[test]
fn a_snapshot_keeps_permits_with_an_end_alone() {
    let clock = ManualClock::at(START);
    let builder = || MemoryStore::builder().max_keys(100).clock(clock.clone());
    let store = builder().with_snapshots().build();
    let quota = concurrent(5);
    let ask_of = |bucket, op| Ask {
        op,
        ..Ask::take(bucket, &quota, 0)
    };
    for (bucket, op) in [
        (&b"both"[..], Op::Take(2)),
        (b"both", acquire(1, MINUTE_US)),
        (b"guards", Op::Take(2)),
    ] {
        assert!(store.decide_one(&ask_of(bucket, op)).is_allowed());
    }
    let mut bytes = Vec::new();
    store.write_snapshot(&mut bytes, b"").unwrap();
    let (next, _) = builder().restore(&mut &*bytes).unwrap();
    let left = |bucket| next.decide_one(&ask_of(bucket, Op::Look)).remaining;
    assert_eq!((left(b"both"), left(b"guards")), (4, 5));
    let renew = Op::Renew {
        id: PermitId([1, 1]),
        ttl_us: 2 * MINUTE_US,
    };
    assert!(next.decide_one(&ask_of(b"both", renew)).is_allowed());
    clock.advance_micros(2 * MINUTE_US);
    assert_eq!(left(b"both"), 5);
}
