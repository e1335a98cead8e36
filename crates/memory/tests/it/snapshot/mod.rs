//! A store that is written and read again continues as if nothing had happened.

mod clocks; // a clock that has gone back or forward
mod damage; // bytes that are no whole snapshot
mod meanwhile; // writing while others decide

use crate::model::quotas;
use crate::shop::{MINUTE_US, START, ask, log, name, narrow, take, wide, window};
use proptest::prelude::*;
use proptest::sample::select;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tidegate_core::shared_state::{CountMap, PeriodState, PeriodTerms, StateFuture};
use tidegate_core::{Ask, ManualClock, OnChange, Op, Outcome, Quota, Receipt, Store, Timestamp};
use tidegate_memory::MemoryStore;
use tidegate_memory::snapshot::{RestoredSnapshot, SnapshotTotals};

type TestStore = MemoryStore<ManualClock>;

/// A store that can be written, and its clock.
fn store(max_keys: usize) -> (TestStore, ManualClock) {
    let clock = ManualClock::at(START);
    let builder = MemoryStore::builder().max_keys(max_keys);
    (builder.clock(clock.clone()).with_snapshots().build(), clock)
}

fn write(store: &TestStore) -> (Vec<u8>, SnapshotTotals) {
    let mut bytes = Vec::new();
    let totals = store.write_snapshot(&mut bytes, b"note").unwrap();
    assert_eq!(totals.bytes, u64::try_from(bytes.len()).unwrap());
    (bytes, totals)
}

fn read(bytes: &[u8], max_keys: usize, clock: &ManualClock) -> (TestStore, RestoredSnapshot) {
    let builder = MemoryStore::builder().max_keys(max_keys);
    let (store, restored) = builder.clock(clock.clone()).restore(&mut &*bytes).unwrap();
    assert_eq!(restored.note, b"note");
    (store, restored)
}

/// The store of a process that continues with the buckets of `before`.
fn restart(before: &TestStore, clock: &ManualClock) -> TestStore {
    read(&write(before).0, before.stats().slots / 2, clock).0
}

fn quota_list() -> Vec<Quota> {
    let mut list: Vec<Quota> = quotas().into_iter().map(|(quota, _)| quota).collect();
    let lends = Quota::new(40, 1_000).label("lends").refundable(true);
    list.push(lends.build().unwrap().with_lending(true));
    let debt = Quota::new(5, 900).label("debt").overdraft(7);
    list.push(debt.build().unwrap());
    list.push(Quota::block(700).unwrap());
    list
}

/// A key, its quotas in a request, a cost, a kind of operation, and a pause before.
fn steps() -> impl Strategy<Value = Vec<(usize, Vec<usize>, u64, u8, u64)>> {
    let bands = prop::collection::btree_set(0..quota_list().len(), 1..4);
    let pause = prop_oneof![3 => Just(0), 2 => 1..=50_u64, 1 => 1..=600_u64];
    let cost = select(&[0, 1, 1, 1, 2, 3][..]);
    let step =
        (0..20_usize, bands, cost, 0..6_u8, pause).prop_map(|(key, bands, cost, kind, pause)| {
            (key, bands.into_iter().collect(), cost, kind, pause)
        });
    prop::collection::vec(step, 1..60)
}

/// Decides a step, and notes a receipt of what it charged.
fn decide(
    store: &TestStore,
    quotas: &[Quota],
    (key, bands, cost, kind): (usize, &[usize], u64, u8),
    charged: &mut Vec<(usize, usize, Receipt)>,
) -> (bool, Vec<Outcome>) {
    let back = charged.last().copied().filter(|_| kind == 0);
    if let Some((key, band, receipt)) = back {
        charged.pop();
        let name = format!("key {key}");
        let op = Op::GiveBack(receipt);
        let ask = Ask {
            op,
            ..Ask::look(name.as_bytes(), &quotas[band])
        };
        let reply = store.decide_now(&[ask]);
        return (reply.passed, reply.outcomes.iter().copied().collect());
    }
    let name = format!("key {key}");
    let asks: Vec<Ask<'_>> = bands
        .iter()
        .map(|band| {
            let quota = &quotas[*band];
            let op = match kind {
                _ if quota.is_block() => Op::Block,
                1 => Op::Force(cost),
                2 => Op::Debit(cost),
                _ => Op::Take(cost),
            };
            Ask {
                op,
                ..Ask::look(name.as_bytes(), quota)
            }
        })
        .collect();
    let reply = store.decide_now(&asks);
    for (nth, (band, ask)) in bands.iter().zip(&asks).enumerate() {
        charged.extend(
            reply
                .receipt(nth, ask.op)
                .map(|receipt| (key, *band, receipt)),
        );
    }
    (reply.passed, reply.outcomes.iter().copied().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_restored_store_has_the_same_buckets_and_decides_alike(
        before in steps(),
        after in steps(),
        pause in prop_oneof![Just(0), 1..2_000_u64],
    ) {
        let (one, clock) = store(500);
        let quotas = quota_list();
        let mut charged = Vec::new();
        for (key, bands, cost, kind, pause) in before {
            clock.advance_micros(pause);
            decide(&one, &quotas, (key, &bands, cost, kind), &mut charged);
        }
        let (bytes, totals) = write(&one);
        clock.advance_micros(pause);
        let (other, restored) = read(&bytes, 500, &clock);
        prop_assert_eq!(restored.without_room, 0);
        prop_assert_eq!(restored.buckets + restored.expired, totals.buckets);
        for key in 0..20 {
            let name = format!("key {key}");
            for quota in &quotas {
                let kept = |store: &TestStore| {
                    store.inspect_now(name.as_bytes(), quota).map(|it| it.bucket)
                };
                prop_assert_eq!(kept(&one), kept(&other), "{} {:?}", key, quota);
            }
        }
        let mut charged_too = charged.clone();
        for (key, bands, cost, kind, pause) in after {
            clock.advance_micros(pause);
            let step = (key, &*bands, cost, kind);
            let expected = decide(&one, &quotas, step, &mut charged);
            prop_assert_eq!(decide(&other, &quotas, step, &mut charged_too), expected);
        }
        // Written once more, as the next process would.
        let again = restart(&other, &clock);
        prop_assert_eq!(again.stats().buckets, other.stats().buckets);
    }

    #[test]
    fn quotas_that_changed_are_adapted_as_on_a_reload(
        used in 1..100_u64,
        amount in 1..10_000_u64,
        change in select(&[OnChange::Keep, OnChange::Scale, OnChange::Reset][..]),
        refundable in any::<bool>(),
        window in any::<bool>(),
    ) {
        let quota = |amount| {
            let spec = Quota::new(amount, MINUTE_US).label("band").on_change(change);
            let kind = tidegate_core::Algorithm::FixedWindow(tidegate_core::Align::FirstRequest);
            let spec = if window { spec.algorithm(kind) } else { spec };
            spec.refundable(refundable && amount != 100).build().unwrap()
        };
        let (one, clock) = store(100);
        one.decide_one(&Ask::take(b"a", &quota(100), used));
        clock.advance_micros(1_000_000);
        let other = restart(&one, &clock);
        for cost in [0, 1, 1] {
            let quota = quota(amount);
            let take = Ask::take(b"a", &quota, cost);
            prop_assert_eq!(one.decide_one(&take), other.decide_one(&take));
        }
    }
}

#[test]
fn an_empty_store_is_restored_with_its_seeds() {
    let (one, clock) = store(100);
    let (bytes, totals) = write(&one);
    assert_eq!(totals.buckets, 0);
    let (other, restored) = read(&bytes, 100, &clock);
    assert_eq!(restored.buckets, 0);
    take(&other, "api", 1, &narrow(5));
    let third = restart(&other, &clock);
    assert_eq!(take(&third, "api", 1, &narrow(5)).remaining, 3);
}

#[test]
fn a_store_without_snapshots_writes_none() {
    let (store, _clock) = crate::shop::store(10);
    let error = store.write_snapshot(&mut Vec::new(), b"").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}

#[test]
fn only_what_changed_changes_the_digest() {
    let (store, clock) = store(1_000);
    for quota in [narrow(9), wide(9), window(9), log(9)] {
        take(&store, "api", 1, &quota);
    }
    let first = write(&store).1;
    clock.advance_micros(1_000);
    assert_eq!(
        write(&store).1.digest,
        first.digest,
        "time alone changes nothing"
    );
    take(&store, "api", 1, &narrow(9));
    assert_ne!(write(&store).1.digest, first.digest);
}

#[test]
fn buckets_as_good_as_new_are_not_written() {
    let (store, clock) = store(1_000);
    for quota in [narrow(9), wide(9), window(9), log(9)] {
        take(&store, "api", 1, &quota);
    }
    assert_eq!(write(&store).1.buckets, 4);
    clock.advance_micros(2 * MINUTE_US);
    assert_eq!(write(&store).1.buckets, 0);
}

#[test]
fn a_smaller_table_restores_what_it_has_room_for_and_counts_the_rest() {
    let (one, clock) = store(5_000);
    for subject in 0..4_000 {
        take(&one, "api", subject, &narrow(9));
        take(&one, "api", subject, &wide(9));
    }
    let (other, restored) = read(&write(&one).0, 500, &clock);
    assert!(restored.without_room > 0);
    assert_eq!(restored.buckets + restored.without_room, 8_000);
    assert_eq!(
        u64::try_from(other.stats().buckets).unwrap(),
        restored.buckets
    );
}

/// Keys without a slot are limited by overflow buckets: they must not begin with fresh ones.
#[test]
fn keys_that_overflow_buckets_charged_stay_charged() {
    for quota in [narrow(3), wide(3)] {
        let (one, clock) = store(1);
        let subjects = 0..5_000;
        for _ in 0..4 {
            for subject in subjects.clone() {
                take(&one, "api", subject, &quota);
            }
        }
        assert!(one.has_overflow());
        let (other, restored) = read(&write(&one).0, 1, &clock);
        assert_eq!(restored.without_room, 0);
        assert!(other.has_overflow());
        for subject in subjects {
            let (name, look) = (name("api", subject), Op::Test(1));
            let test = Ask {
                op: look,
                ..ask(&name, "api", &quota)
            };
            assert!(!other.decide_one(&test).is_allowed(), "{subject}");
        }
    }
}

fn ready<T>(mut call: StateFuture<'_, T>) -> T {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.unwrap(),
        Poll::Pending => panic!("nothing waits"),
    }
}

#[test]
fn bans_and_counts_survive() {
    let (one, clock) = store(10);
    let state = one.shared_state().unwrap();
    let hour = Duration::from_secs(3_600);
    let map = CountMap {
        name: "counts".to_owned(),
        names_max: 10_000,
        lasts: Some(hour),
    };
    let terms = PeriodTerms {
        period: hour,
        threshold: 5,
        lease: hour,
    };
    let sets = state.sets().unwrap();
    ready(sets.add("bans", &[b"10.0.0.1"], Some(hour)));
    ready(sets.add("bans", &[b"10.0.0.2"], None));
    ready(sets.add("bans", &[b"10.0.0.3"], Some(Duration::ZERO)));
    let many: Vec<(Vec<u8>, u64)> = (0..8_000_u32)
        .map(|nth| (nth.to_be_bytes().to_vec(), 7))
        .collect();
    let mut counts = state.counts(&map).unwrap();
    ready(counts.add(&many));
    assert!(matches!(
        ready(counts.close(terms)),
        PeriodState::Running { .. }
    ));

    let other = restart(&one, &clock);
    let state = other.shared_state().unwrap();
    let sets = state.sets().unwrap();
    let mut members = ready(sets.read("bans", 10, hour));
    members.sort();
    assert_eq!(members, [b"10.0.0.1", b"10.0.0.2"], "one has ended");
    let ends = ready(sets.ends("bans", 10, hour));
    let [(member, left)] = &ends[..] else {
        panic!("one has an end: {ends:?}");
    };
    assert_eq!(member, b"10.0.0.1");
    assert!(*left <= hour && *left > hour / 2);
    let mut counts = state.counts(&map).unwrap();
    assert!(matches!(ready(counts.close(terms)), PeriodState::Running { wait } if wait <= hour));
    // In a period that is over by now, all of them would be over the threshold.
    let at_once = PeriodTerms {
        period: Duration::ZERO,
        ..terms
    };
    assert!(matches!(
        ready(counts.close(at_once)),
        PeriodState::Running { .. }
    ));
}

#[test]
fn the_time_of_a_snapshot_is_that_of_the_store() {
    let (one, clock) = store(10);
    let (bytes, _) = write(&one);
    clock.advance_micros(5);
    let (_, restored) = read(&bytes, 10, &clock);
    assert_eq!(restored.written_at, START);
    assert_eq!(restored.clock_behind_us, 0);
    assert_eq!(
        restored.written_at,
        Timestamp::from_micros(START.as_micros())
    );
}
