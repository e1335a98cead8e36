//! A remote store, which is slow and may not answer.

use crate::{RuntimeClock, config, settle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate::{DecidedBy, Decision, Limiter, MemoryStore, Request, Store, StoreError};
use tidegate_core::{Ask, Inspection, Op, Quota, Reply};
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};

const MS: Duration = Duration::from_millis(1);

/// Buckets behind a slow wire that can be cut.
#[derive(Clone, Debug)]
struct RemoteStore {
    memory: Arc<MemoryStore<RuntimeClock>>,
    is_cut: Arc<AtomicBool>,
    /// The number of refunds in flight, by one limiter.
    under_way: Arc<AtomicUsize>,
    given_back: Arc<AtomicUsize>,
}

impl RemoteStore {
    fn new() -> Self {
        let memory = MemoryStore::builder().clock(RuntimeClock::start()).build();
        Self {
            memory: Arc::new(memory),
            is_cut: Arc::default(),
            under_way: Arc::default(),
            given_back: Arc::default(),
        }
    }

    fn limiter(&self, limits: &str) -> Limiter<Self> {
        let builder = Limiter::builder().config(config(limits));
        let builder = builder.clock(RuntimeClock::start()).max_keys(1_000);
        let wire = Self {
            under_way: Arc::default(),
            ..self.clone()
        };
        builder.build_with(wire).unwrap()
    }
}

impl Store for RemoteStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        if self.is_cut.load(Relaxed) {
            return Err(StoreError::transient("the wire is cut"));
        }
        let gives_back = asks.iter().any(|ask| matches!(ask.op, Op::GiveBack(_)));
        if gives_back {
            self.given_back.fetch_add(1, Relaxed);
            let others = self.under_way.fetch_add(1, Relaxed);
            assert_eq!(others, 0, "one after the other");
            sleep(MS).await;
            self.under_way.fetch_sub(1, Relaxed);
        }
        Ok(self.memory.decide_now(asks))
    }

    async fn inspect(&self, name: &[u8], quota: &Quota) -> Result<Option<Inspection>, StoreError> {
        self.memory.inspect(name, quota).await
    }

    async fn reset(&self, name: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.memory.reset(name, quota).await
    }
}

fn ask(limiter: &Limiter<RemoteStore>) -> JoinHandle<Decision> {
    let limiter = limiter.clone();
    tokio::spawn(async move { limiter.check(&Request::new()).await.unwrap() })
}

fn waiting(limiter: &Limiter<RemoteStore>) -> u32 {
    limiter.waiting()[0].count
}

/// In addition to the limit that waits, one that can be refunded.
const TWO: &str = "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s },
     { name: hourly, rate: 1000/h }";

fn remaining(limiter: &Limiter<RemoteStore>) -> JoinHandle<u64> {
    let limiter = limiter.clone();
    tokio::spawn(async move {
        let looked = limiter.check(&Request::new().cost(0)).await.unwrap();
        let hourly = looked.applied().nth(1).unwrap();
        hourly.remaining()
    })
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_one_queue_and_leavers_refund_other_charges() {
    let store = RemoteStore::new();
    let (one, other) = (store.limiter(TWO), store.limiter(TWO));
    let mut tasks = Vec::new();
    for _ in 0..60 {
        tasks.push(ask(&one));
        tasks.push(ask(&other));
        settle().await;
    }
    assert_eq!(
        waiting(&one) + waiting(&other),
        100,
        "a hundred places are ten seconds"
    );
    assert_eq!(remaining(&one).await.unwrap(), 1_000 - 101);
    let alive: Vec<_> = tasks.iter().filter(|task| !task.is_finished()).collect();
    // The last first, so that each has others behind it that have left.
    for task in alive.iter().rev().take(50) {
        task.abort();
    }
    settle().await;
    assert_eq!(
        waiting(&one) + waiting(&other),
        50,
        "no cancelled request waits"
    );
    sleep(200 * MS).await;
    assert_eq!(store.given_back.load(Relaxed), 50);
    assert_eq!(remaining(&one).await.unwrap(), 1_000 - 51);
    // Other instances may have requests behind them, so their places stay unused; those of 200 ms have
    // refilled.
    let again: Vec<_> = (0..60).map(|_| ask(&one)).collect();
    settle().await;
    let got = again.iter().filter(|task| !task.is_finished()).count();
    assert!((2..=3).contains(&got), "{got}");
}

#[tokio::test(start_paused = true)]
async fn a_freed_place_goes_only_to_the_next_waiter_of_the_process() {
    let text = "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s }";
    let store = RemoteStore::new();
    let limiters = [store.limiter(text), store.limiter(text)];
    let began = Instant::now();
    let mut tasks = Vec::new();
    for nth in 0..20 {
        let limiter = limiters[nth % 2].clone();
        tasks.push(tokio::spawn(async move {
            limiter.check(&Request::new()).await.unwrap();
            began.elapsed()
        }));
        settle().await;
    }
    // In one process, the turns of 4, 8 and 14 become free.
    for nth in [4, 8, 14] {
        tasks[nth].abort();
        settle().await;
    }
    assert_eq!(store.given_back.load(Relaxed), 0, "nothing is credited");
    let mut turns = Vec::new();
    for (nth, task) in tasks.into_iter().enumerate() {
        if let Ok(passed) = task.await {
            turns.push((nth, passed.as_millis() / 100));
        }
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = turns.into_iter().partition(|(nth, _)| nth % 2 == 0);
    let moved = [(0, 0), (2, 2), (6, 4), (10, 6), (12, 8), (16, 10), (18, 12)];
    assert_eq!(ours, moved);
    let kept: Vec<_> = (1..20).step_by(2).map(|nth| (nth, nth as u128)).collect();
    assert_eq!(theirs, kept);
}

#[tokio::test(start_paused = true)]
async fn passed_requests_are_not_refunded_ahead_of_possible_waiters() {
    let store = RemoteStore::new();
    let alone = store.limiter("{ name: all, rate: 1/s burst 1, on_refusal: wait, max_wait: 3s }");
    let decision = ask(&alone).await.unwrap();
    assert!(!alone.refund_decision(&decision).await.unwrap());
    assert_eq!(store.given_back.load(Relaxed), 0);
    let late = ask(&alone).await.unwrap();
    assert!(
        late.waited() >= Duration::from_secs(1),
        "it is still charged"
    );
    // The charge of another limit is refunded.
    let both = store.limiter(TWO);
    let decision = ask(&both).await.unwrap();
    let before = remaining(&both).await.unwrap();
    assert!(both.refund_decision(&decision).await.unwrap());
    assert_eq!(remaining(&both).await.unwrap(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn simultaneous_leavers_are_refunded_exactly_in_turn() {
    let text = "{ name: all, rate: 1/s burst 1, on_refusal: wait, max_wait: 100s },
         { name: hourly, rate: 1000/h }";
    let store = RemoteStore::new();
    let limiter = store.limiter(text);
    let tasks: Vec<_> = (0..101).map(|_| ask(&limiter)).collect();
    settle().await;
    assert_eq!(waiting(&limiter), 100);
    for task in tasks.iter().rev() {
        task.abort();
    }
    settle().await;
    sleep(300 * MS).await;
    assert_eq!(store.given_back.load(Relaxed), 100);
    assert_eq!(remaining(&limiter).await.unwrap(), 999);
}

#[tokio::test(start_paused = true)]
async fn a_wait_permit_is_held_until_everything_is_refunded() {
    let text = "{ name: all, rate: 1/s burst 1, on_refusal: wait, max_wait: 1h, max_waiting: 10 },
         { name: hourly, rate: 1000/h }";
    let store = RemoteStore::new();
    let limiter = store.limiter(text);
    let tasks: Vec<_> = (0..11).map(|_| ask(&limiter)).collect();
    settle().await;
    for task in &tasks {
        task.abort();
    }
    settle().await;
    assert_eq!(waiting(&limiter), 0);
    assert!(
        !ask(&limiter).await.unwrap().is_allowed(),
        "ten are being given back"
    );
    sleep(50 * MS).await;
    let waits = ask(&limiter);
    settle().await;
    assert_eq!(waiting(&limiter), 1);
    assert!(waits.await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn without_the_store_no_request_waits() {
    let store = RemoteStore::new();
    let limiter = store.limiter(
        "{ name: all, rate: 10/s burst 10, on_refusal: wait, max_wait: 10s, on_failure: local }",
    );
    store.is_cut.store(true, Relaxed);
    let began = Instant::now();
    let mut allowed = 0;
    for _ in 0..20 {
        let decision = ask(&limiter).await.unwrap();
        assert_eq!(decision.decided_by(), DecidedBy::Local);
        assert!(!limiter.refund_decision(&decision).await.unwrap());
        allowed += u32::from(decision.is_allowed());
    }
    assert_eq!(allowed, 5, "half of the burst");
    assert!(began.elapsed().is_zero());
    assert_eq!(waiting(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn a_window_waiter_is_decided_without_the_store_on_an_outage() {
    let store = RemoteStore::new();
    let limiter = store.limiter(
        "{ name: all, rate: 2/s, algorithm: fixed-window, on_refusal: wait, max_wait: 10s, on_failure: deny }",
    );
    let tasks: Vec<_> = (0..6).map(|_| ask(&limiter)).collect();
    settle().await;
    assert_eq!(waiting(&limiter), 4);
    store.is_cut.store(true, Relaxed);
    advance(1_001 * MS).await;
    for (nth, task) in tasks.into_iter().enumerate() {
        let decision = task.await.unwrap();
        assert_eq!(decision.is_allowed(), nth < 2);
        if nth >= 2 {
            assert_eq!(decision.decided_by(), DecidedBy::Failure);
        }
    }
    assert_eq!(waiting(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn nonrefundable_charges_stay_charged() {
    let store = RemoteStore::new();
    let limiter = store.limiter(TWO);
    let tasks: Vec<_> = (0..4).map(|_| ask(&limiter)).collect();
    settle().await;
    store.is_cut.store(true, Relaxed);
    tasks[3].abort();
    settle().await;
    store.is_cut.store(false, Relaxed);
    assert_eq!(remaining(&limiter).await.unwrap(), 996);
    assert_eq!(waiting(&limiter), 2);
}
