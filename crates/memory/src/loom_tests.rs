//! Every interleaving of two threads, by loom, on a table of one or two sets of two slots.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p tidegate-memory --release --lib loom
//! ```
//!
//! Each test describes the change to the code that makes it fail.

use crate::MemoryStore;
use crate::sync::SEED;
use crate::table::WordTable;
use crate::word;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};
use loom::thread;
use tidegate_core::{Ask, Clock, Op, Quota, Receipt, Timestamp};

const START: u64 = 1_700_000_000_000_000;

/// A clock that loom controls, so that it tries every instant at which a thread may read it.
#[derive(Clone, Debug)]
struct Ticks(Arc<AtomicU64>);

impl Ticks {
    fn advance_micros(&self, micros: u64) {
        self.0.fetch_add(micros, SeqCst);
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(SeqCst))
    }
}

type Store = MemoryStore<Ticks>;

/// Runs every interleaving with at most three preemptions, for several seeds: the slots of the keys
/// matter.
fn model(test: fn()) {
    for seed in 0..8 {
        SEED.set(seed);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(test);
    }
}

fn store() -> (Arc<Store>, Ticks) {
    store_of(1)
}

/// Returns a store whose table has one or two sets of two slots.
fn store_of(sets: usize) -> (Arc<Store>, Ticks) {
    let clock = Ticks(Arc::new(AtomicU64::new(START)));
    let store = MemoryStore::builder()
        .max_keys(sets)
        .clock(clock.clone())
        .build();
    (Arc::new(store), clock)
}

/// Returns a quota of this many units per second.
fn quota(amount: u64) -> Quota {
    Quota::new(amount, 1_000_000)
        .build()
        .expect("a valid quota")
}

fn take(store: &Store, bucket: &[u8], quota: &Quota) -> u64 {
    u64::from(store.decide_one(&Ask::take(bucket, quota, 1)).is_allowed())
}

fn both(store: &Store, buckets: [&[u8]; 2], quota: &Quota) -> u64 {
    let asks = buckets.map(|bucket| Ask::take(bucket, quota, 1));
    u64::from(store.decide_now(&asks).passed)
}

fn left(store: &Store, bucket: &[u8], quota: &Quota) -> u64 {
    let look = Ask {
        op: Op::Look,
        ..Ask::take(bucket, quota, 0)
    };
    store.decide_one(&look).remaining
}

/// Fails if `WordTable::swap` stores instead of comparing.
#[test]
fn loom_two_charges_of_one_word_are_both_counted() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(3);
        assert_eq!(take(&store, b"a", &quota), 1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota) + take(&other, b"a", &quota));
        let mine = take(&store, b"a", &quota);
        let theirs = thread.join().expect("no panic");
        assert_eq!(mine + theirs, 2);
        assert_eq!(left(&store, b"a", &quota), 0);
    });
}

/// Fails if `WordTable::claim` does not look for the key again once it holds the stripe.
#[test]
fn loom_a_new_key_gets_one_slot() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota));
        let mine = take(&store, b"a", &quota);
        assert_eq!(mine + thread.join().expect("no panic"), 1);
        assert_eq!(store.stats().buckets, 1);
    });
}

/// Two new keys at once: neither disturbs the other. Fails if `WordTable::claim` writes the word before
/// the fingerprint.
#[test]
fn loom_two_new_keys_get_a_slot_each() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota) + take(&other, b"a", &quota));
        let mine = take(&store, b"b", &quota) + take(&store, b"b", &quota);
        assert_eq!((mine, thread.join().expect("no panic")), (1, 1));
        assert_eq!(store.stats().buckets, 2);
    });
}

/// Two slots hold keys that are full again; one of them is used again while two other keys take the
/// slots over. In every order, no key is charged for another and none passes twice. Fails if
/// `WordTable::load` does not read the fingerprint again after the word, and if `WordTable::claim`
/// does not lock the word before it writes the fingerprint.
#[test]
fn loom_a_slot_is_taken_over_from_a_late_owner() {
    model(|| {
        let (store, clock) = store();
        let quota = quota(1);
        assert_eq!(take(&store, b"a", &quota) + take(&store, b"b", &quota), 2);
        clock.advance_micros(1_000_001);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota));
        let mine = take(&store, b"c", &quota) + take(&store, b"d", &quota);
        let theirs = thread.join().expect("no panic");
        // Three keys and two slots: the third shares the overflow bucket, which is full.
        assert_eq!((mine, theirs), (2, 1));
        for bucket in [b"a", b"c", b"d"] {
            assert_eq!(take(&store, bucket, &quota), 0, "{bucket:?}");
        }
    });
}

/// The same if the late owner's slot has a word that was claimed and never charged: a takeover must
/// not leave the same word again. Fails if slots are claimed with a word of 0.
#[test]
fn loom_a_slot_that_was_never_charged_is_taken_over_from_a_late_owner() {
    model(|| {
        let (store, clock) = store();
        let quota = quota(1);
        // Passes as a draft and claims two slots, one of them only to read it.
        let asks = [Ask::take(b"b", &quota, 1), Ask::look(b"a", &quota)];
        assert!(store.decide_now(&asks).passed);
        clock.advance_micros(1_000_001);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota));
        // Claims both slots, and charges only one of them.
        let asks = [Ask::take(b"c", &quota, 1), Ask::look(b"d", &quota)];
        let mine = u64::from(store.decide_now(&asks).passed);
        let theirs = thread.join().expect("no panic");
        assert_eq!((mine, theirs), (1, 1));
        let again = (take(&store, b"a", &quota), take(&store, b"c", &quota));
        assert_eq!(again, (0, 0));
        assert_eq!(left(&store, b"d", &quota), 1);
    });
}

/// Words are locked by one thread and swapped by the other. Fails if `WordTable::load` returns a locked
/// word, and if `Words::lock_and_write` stores the lock without comparing.
#[test]
fn loom_a_request_and_single_asks_lose_nothing() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(3);
        assert_eq!(both(&store, [b"a", b"b"], &quota), 1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota) + take(&other, b"b", &quota));
        let mine = both(&store, [b"b", b"a"], &quota);
        assert_eq!((mine, thread.join().expect("no panic")), (1, 2));
        assert_eq!(left(&store, b"a", &quota) + left(&store, b"b", &quota), 0);
    });
}

/// Two requests over the same two buckets in opposite orders, with room for one. Fails (deadlock)
/// if `lock_words` does not sort.
#[test]
fn loom_requests_in_opposite_orders_are_all_or_nothing() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(2);
        assert_eq!(both(&store, [b"a", b"b"], &quota), 1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || both(&other, [b"b", b"a"], &quota));
        let mine = both(&store, [b"a", b"b"], &quota);
        assert_eq!(mine + thread.join().expect("no panic"), 1);
        assert_eq!(left(&store, b"a", &quota) + left(&store, b"b", &quota), 0);
    });
}

/// The same for keys that are not there yet, where both threads claim slots. Fails if `claim` does
/// not look for the key again, and (deadlock) if `lock_words` does not sort.
#[test]
fn loom_requests_over_new_keys_are_all_or_nothing() {
    model(|| {
        let (store, _clock) = store();
        let quota = quota(1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || both(&other, [b"b", b"a"], &quota));
        let mine = both(&store, [b"a", b"b"], &quota);
        assert_eq!(mine + thread.join().expect("no panic"), 1);
        assert_eq!(take(&store, b"a", &quota) + take(&store, b"b", &quota), 0);
    });
}

/// The home of a new key is crowded, so that it may go to its other set; meanwhile slots at home become
/// free. It gets one slot. Fails if `WordTable::claim` looks for the key at home only.
#[test]
fn loom_a_new_key_gets_one_slot_in_two_sets() {
    model(|| {
        let (store, clock) = store_of(2);
        let (slow, fast) = (quota(1), Quota::new(1, 10).build().expect("a valid quota"));
        take(&store, b"a", &fast);
        take(&store, b"b", &fast);
        take(&store, b"c", &slow);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"new", &slow));
        clock.advance_micros(11);
        let mine = take(&store, b"new", &slow);
        assert_eq!(mine + thread.join().expect("no panic"), 1);
        assert_eq!(take(&store, b"new", &slow), 0);
        assert_eq!(store.stats().buckets, 2);
    });
}

/// All slots are taken, so that a new key shares the overflow bucket; then one is free, and the key
/// gets it. Whichever comes first, it passes once. Fails if the stripe is let go before the overflow
/// bucket is charged, if the filter does not remember the key, and if a new slot of a key that it
/// remembers does not begin with a copy of that bucket.
#[test]
fn loom_a_key_without_a_slot_passes_once() {
    model(turned_away::<1, false>);
    model(turned_away::<1, true>);
    model(turned_away::<2, false>);
    model(turned_away::<2, true>);
}

fn turned_away<const SETS: usize, const SEVERAL: bool>() {
    let (store, clock) = store_of(SETS);
    let (slow, fast) = (quota(1), Quota::new(1, 10).build().expect("a valid quota"));
    let slow_ones: &[&[u8]] = if SETS == 1 {
        &[b"a"]
    } else {
        &[b"a", b"c", b"d"]
    };
    for name in slow_ones {
        assert_eq!(take(&store, name, &slow), 1);
    }
    assert_eq!(take(&store, b"b", &fast), 1);
    let ask = move |store: &Store| {
        let asks = [Ask::take(b"new", &slow, 1), Ask::look(b"a", &slow)];
        let asks = if SEVERAL { &asks[..] } else { &asks[..1] };
        u64::from(store.decide_now(asks).passed)
    };
    let other = Arc::clone(&store);
    let thread = thread::spawn(move || ask(&other));
    clock.advance_micros(11);
    let mine = ask(&store);
    assert_eq!(mine + thread.join().expect("no panic"), 1);
    assert_eq!(ask(&store), 0);
}

/// A key expires and its slot is taken over, while a thread that needs it has read the clock and is
/// suspended. It may pass, as of now, and then it is charged as of now. Fails if `decide_new_word`
/// does not ask the stripe whether its instant is over.
#[test]
fn loom_a_late_thread_does_not_pass_uncharged() {
    model(|| {
        let (store, clock) = store();
        let quota = Quota::new(1, 10).build().expect("a valid quota");
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &quota));
        let mine = take(&store, b"a", &quota);
        clock.advance_micros(11);
        take(&store, b"b", &quota);
        take(&store, b"c", &quota);
        if mine + thread.join().expect("no panic") == 2 {
            assert_eq!(take(&store, b"a", &quota), 0);
        }
    });
}

/// A narrow and a wide bucket in one request, with concurrent single asks of each. Fails if the
/// record is decided before its shard is locked.
#[test]
fn loom_narrow_and_wide_together_are_all_or_nothing() {
    model(|| {
        let (store, _clock) = store();
        let narrow = quota(1);
        let spec = Quota::new(1, 1_000_000).refundable(true).label("wide");
        let wide = spec.build().expect("a valid quota");
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || take(&other, b"a", &wide));
        let asks = [Ask::take(b"a", &narrow, 1), Ask::take(b"a", &wide, 1)];
        let mine = u64::from(store.decide_now(&asks).passed);
        assert_eq!(mine + thread.join().expect("no panic"), 1);
        assert_eq!(left(&store, b"a", &narrow), 1 - mine);
        assert_eq!(left(&store, b"a", &wide), 0);
    });
}

/// The table alone: a reader never gets the word of another key. A slot goes from key 1 to key 2,
/// whose words are even and odd. Fails if the fingerprint is written with the word unlocked.
#[test]
fn loom_a_reader_never_gets_the_word_of_another_key() {
    model(|| {
        let table = Arc::new(WordTable::new(1).expect("it is small"));
        let old = word::pack(2, 0);
        let mut stripe = table.hold(table.stripe_of(1));
        let (place, _) = table.claim(&mut stripe, 1, old, 0).expect("it is empty");
        table
            .claim(&mut stripe, 3, word::pack(1 << 20, 0), 0)
            .expect("half empty");
        drop(stripe);
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || {
            let mut stripe = other.hold(other.stripe_of(2));
            other.claim(&mut stripe, 2, word::pack(5, 0), 3).is_ok()
        });
        if let Ok(seen) = table.load(place, 1) {
            assert_eq!(seen, old);
            // Too late: the slot may be another's by now, and then this does nothing.
            let swapped = table.swap(place, seen, word::pack(4, 0));
            let taken_over = thread.join().expect("no panic");
            assert_ne!(swapped, taken_over, "one of the two has the key");
        } else {
            assert!(thread.join().expect("no panic"));
        }
    });
}

/// Fails if a record is made after the stripe was released.
#[test]
fn loom_two_versions_of_a_quota_share_one_bucket() {
    model(|| {
        let (store, _clock) = store();
        let spec = Quota::new(1, 1_000_000).label("band");
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || {
            let wide = spec.refundable(true).build().expect("a valid quota");
            take(&other, b"a", &wide)
        });
        let narrow = spec.build().expect("a valid quota");
        let passed = take(&store, b"a", &narrow);
        assert_eq!(passed + thread.join().unwrap(), 1);
    });
}

/// Fails if a vacated slot keeps its fingerprint.
#[test]
fn loom_a_bucket_that_moves_is_charged_once() {
    model(|| {
        let (store, _clock) = store();
        let spec = Quota::new(2, 1_000_000).label("band");
        let narrow = spec.build().expect("a valid quota");
        take(&store, b"a", &narrow);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || {
            let wide = spec.refundable(true).build().expect("a valid quota");
            take(&other, b"a", &wide)
        });
        let passed = take(&store, b"a", &narrow);
        assert_eq!(passed + thread.join().unwrap(), 1);
        assert_eq!(take(&store, b"a", &narrow), 0);
    });
}

/// A guard releases its permit while another request asks for one: never two in flight, and none is lost. Fails
/// if the record is put back after its shard was unlocked.
#[test]
fn loom_a_permit_is_released_once_while_another_request_takes_it() {
    model(|| {
        let (store, _clock) = store();
        let one = Quota::concurrent(1).build().expect("a valid quota");
        let release = move |store: &Store| {
            let op = Op::GiveBack(Receipt::latest(1));
            store.decide_one(&Ask {
                op,
                ..Ask::take(b"a", &one, 0)
            });
        };
        let in_flight = Arc::new(AtomicU64::new(1));
        assert_eq!(take(&store, b"a", &one), 1);
        let (other, theirs) = (Arc::clone(&store), Arc::clone(&in_flight));
        let thread = thread::spawn(move || {
            if take(&other, b"a", &one) == 1 {
                assert_eq!(theirs.fetch_add(1, SeqCst), 0, "two in flight");
                theirs.fetch_sub(1, SeqCst);
                release(&other);
            }
        });
        in_flight.fetch_sub(1, SeqCst);
        release(&store);
        thread.join().expect("no panic");
        assert_eq!(left(&store, b"a", &one), 1);
    });
}

/// A permit and a rate in one request, while a guard releases the last permit. Fails if one of the two is charged
/// before the other is locked.
#[test]
fn loom_a_permit_beside_a_rate_is_all_or_nothing() {
    model(|| {
        let (store, _clock) = store();
        let (rate, one) = (
            quota(1),
            Quota::concurrent(1).build().expect("a valid quota"),
        );
        assert_eq!(take(&store, b"a", &one), 1);
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || {
            let asks = [Ask::take(b"a", &rate, 1), Ask::take(b"a", &one, 1)];
            u64::from(other.decide_now(&asks).passed)
        });
        store.decide_one(&Ask {
            op: Op::GiveBack(Receipt::latest(1)),
            ..Ask::take(b"a", &one, 0)
        });
        let passed = thread.join().expect("no panic");
        assert_eq!(left(&store, b"a", &rate), 1 - passed);
        assert_eq!(left(&store, b"a", &one), 1 - passed);
    });
}
