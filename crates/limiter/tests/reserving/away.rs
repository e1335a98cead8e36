use crate::stores::SharedMemory;
use crate::{MINUTE, clock, config, policy, remaining, reserve};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate::SettleState::{Already, Kept, Settled};
use tidegate::shared_state::StateFuture;
use tidegate::{
    CheckError, DecidedBy, Limiter, LocalShare, ManualClock, Request, SettleError, SharedState,
    Store, StoreError, StoreErrorKind,
};
use tidegate_core::{Ask, ChargedOutcome, Inspection, PartialAnswer, Quota, Reply};

/// A shared store that becomes unreachable, wholly or in part.
#[derive(Clone, Debug)]
struct UnreliableStore {
    shared: SharedMemory,
    is_down: Arc<AtomicBool>,
    /// Buckets whose names contain this are not answered for.
    lost: Arc<Mutex<Option<&'static str>>>,
}

impl UnreliableStore {
    fn new(clock: ManualClock) -> Self {
        Self {
            shared: SharedMemory::new(clock, true),
            is_down: Arc::default(),
            lost: Arc::default(),
        }
    }

    fn reach(&self) -> Result<(), StoreError> {
        if self.is_down.load(Relaxed) {
            let error = StoreError::transient("nobody answers");
            return Err(error.with_kind(StoreErrorKind::Timeout));
        }
        Ok(())
    }

    /// Decides the asks that are not lost, and reports the rest as unknown.
    async fn decide_part(&self, asks: &[Ask<'_>], lost: &str) -> Result<Reply, StoreError> {
        let is_lost = |ask: &Ask<'_>| String::from_utf8_lossy(ask.bucket).contains(lost);
        if !asks.iter().any(is_lost) {
            return self.shared.decide(asks).await;
        }
        let rest: Vec<Ask<'_>> = asks.iter().filter(|ask| !is_lost(ask)).copied().collect();
        let error = StoreError::transient("a part does not answer");
        if rest.is_empty() {
            return Err(error.with_kind(StoreErrorKind::Timeout));
        }
        let reply = self.shared.decide(&rest).await?;
        let mut outcomes = reply.outcomes.iter().enumerate();
        let answered = |ask: &Ask<'_>| {
            let (nth, outcome) = (!is_lost(ask)).then(|| outcomes.next()).flatten()?;
            Some(PartialAnswer {
                at: reply.at,
                answer: ChargedOutcome {
                    outcome: *outcome,
                    units: reply.applied.units(nth, ask.op),
                },
            })
        };
        Err(error.with_answers(asks.iter().map(answered).collect()))
    }
}

impl Store for UnreliableStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        self.reach()?;
        let lost = *self.lost.lock();
        match lost {
            Some(lost) => self.decide_part(asks, lost).await,
            None => self.shared.decide(asks).await,
        }
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        self.reach()?;
        self.shared.inspect(bucket, quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.reach()?;
        self.shared.reset(bucket, quota).await
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        self.shared.refund(asks);
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(self)
    }
}

impl SharedState for UnreliableStore {
    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        match self.reach() {
            Ok(()) => self.shared.secret(proposal),
            Err(error) => Some(Box::pin(std::future::ready(Err(error)))),
        }
    }
}

/// Two instances, each of which has half of everything while the store is unreachable.
struct TwoInstances {
    store: UnreliableStore,
    limiters: [Limiter<UnreliableStore>; 2],
}

impl TwoInstances {
    fn new(limits: &str) -> Self {
        let clock = clock();
        let store = UnreliableStore::new(clock.clone());
        let limiter = || {
            let builder = Limiter::builder().config(config(limits)).max_keys(1_000);
            let builder = builder.local_share(LocalShare::Millionths(500_000));
            let built = builder.clock(clock.clone()).build_with(store.clone());
            built.unwrap_or_else(|error| panic!("{error}"))
        };
        Self {
            limiters: [limiter(), limiter()],
            store,
        }
    }

    fn cut(&self, is_down: bool) {
        self.store.is_down.store(is_down, Relaxed);
    }

    fn lose(&self, lost: Option<&'static str>) {
        *self.store.lost.lock() = lost;
    }
}

const HOURLY: &str = "{ name: tokens, rate: 100/h, overdraft: 20, algorithm: fixed-window }";

#[tokio::test]
async fn a_local_charge_is_settled_here_and_kept_by_other_instances() {
    for algorithm in ["fixed-window", "token-bucket", "sliding-log"] {
        let two = TwoInstances::new(&format!(
            "{{ name: tokens, rate: 100/h, overdraft: 20, algorithm: {algorithm} }}"
        ));
        let [one, other] = &two.limiters;
        let request = Request::new();
        two.cut(true);
        let reserved = one.reserve(&request.cost(40), MINUTE).await.unwrap();
        assert_eq!(reserved.decision().decided_by(), DecidedBy::Local);
        assert_eq!(remaining(one, &request).await, 10, "half, less forty");
        let id = reserved.id().unwrap();
        // It was closed by a seal that only this instance has.
        assert!(other.commit(id, 0).await.is_err());
        assert_eq!(one.commit(id, 10).await.unwrap().state(), Settled);
        assert_eq!(remaining(one, &request).await, 40, "{algorithm}");
        assert_eq!(one.commit(id, 0).await.unwrap().state(), Already);
        assert_eq!(remaining(one, &request).await, 40);
        two.cut(false);
        assert_eq!(
            remaining(one, &request).await,
            100,
            "no charge in the store"
        );
    }
}

#[tokio::test]
async fn another_instance_keeps_unreachable_charges() {
    let two = TwoInstances::new(HOURLY);
    let [one, other] = &two.limiters;
    let request = Request::new();
    // Both have agreed on a seal before the outage.
    for limiter in [one, other] {
        let id = reserve(limiter, &request).await;
        assert_eq!(limiter.refund(&id).await.unwrap().state(), Settled);
        let id = reserve(limiter, &request).await;
        assert_eq!(one.refund(&id).await.unwrap().state(), Settled);
    }
    two.cut(true);
    let id = reserve(one, &request.cost(30)).await;
    assert_eq!(other.commit(&id, 0).await.unwrap().state(), Kept);
    assert_eq!(remaining(one, &request).await, 20);
    two.cut(false);
    assert_eq!(other.commit(&id, 0).await.unwrap().state(), Kept);
    assert_eq!(remaining(one, &request).await, 100);
    assert_eq!(one.commit(&id, 0).await.unwrap().state(), Settled);
}

#[tokio::test]
async fn a_commit_during_an_outage_is_retried_and_counts_once() {
    let two = TwoInstances::new(HOURLY);
    let [one, other] = &two.limiters;
    let request = Request::new();
    let id = reserve(one, &request.cost(60)).await;
    two.cut(true);
    for _ in 0..3 {
        let error = one.commit(&id, 10).await.unwrap_err();
        assert!(matches!(&error, SettleError::Store { policy, .. } if policy == "llm"));
    }
    two.cut(false);
    assert_eq!(other.commit(&id, 10).await.unwrap().state(), Settled);
    assert_eq!(one.commit(&id, 10).await.unwrap().state(), Already);
    assert_eq!(remaining(one, &request).await, 90);
}

/// The bucket is `llm/tokens/`, its mark `llm/tokens~…`.
#[tokio::test]
async fn a_commit_that_was_answered_in_part_lost_or_doubled_the_excess() {
    for lost in ["tokens/", "~"] {
        let two = TwoInstances::new(HOURLY);
        let [one, other] = &two.limiters;
        let request = Request::new();
        let id = reserve(one, &request.cost(10)).await;
        two.lose(Some(lost));
        for _ in 0..2 {
            assert!(one.commit(&id, 30).await.is_err(), "{lost}");
        }
        two.lose(None);
        assert_eq!(
            other.commit(&id, 30).await.unwrap().state(),
            Settled,
            "{lost}"
        );
        assert_eq!(
            one.commit(&id, 30).await.unwrap().state(),
            Already,
            "{lost}"
        );
        assert_eq!(remaining(one, &request).await, 70, "{lost}");
    }
}

#[tokio::test]
async fn each_of_two_buckets_is_settled_once_after_any_failure() {
    let two = TwoInstances::new("{ name: left, rate: 100/h }, { name: right, rate: 100/h }");
    let [one, other] = &two.limiters;
    let request = Request::new();
    for (first, second) in [("left", "right"), ("right", "left")] {
        let id = reserve(one, &request.cost(50)).await;
        two.lose(Some(first));
        assert!(one.commit(&id, 0).await.is_err());
        two.lose(Some(second));
        assert!(
            other.commit(&id, 0).await.is_err(),
            "the first is settled now, the second was"
        );
        two.lose(None);
        assert_eq!(one.commit(&id, 0).await.unwrap().state(), Already);
        let looked = one.check(&request.cost(0)).await.unwrap();
        let left: Vec<u64> = looked.applied().map(|it| it.remaining()).collect();
        assert_eq!(left, [100, 100]);
    }
}

#[tokio::test]
async fn a_partly_local_reservation_is_settled_in_both_places() {
    let two = TwoInstances::new("{ name: left, rate: 100/h }, { name: right, rate: 100/h }");
    let [one, _] = &two.limiters;
    let request = Request::new();
    two.lose(Some("right"));
    let reserved = one.reserve(&request.cost(40), MINUTE).await.unwrap();
    assert_eq!(reserved.decision().decided_by(), DecidedBy::Local);
    let id = reserved.id().unwrap().to_owned();
    let left = async || -> Vec<u64> {
        let looked = one.check(&request.cost(0)).await.unwrap();
        looked.applied().map(|it| it.remaining()).collect()
    };
    assert_eq!(
        left().await,
        [60, 10],
        "the whole quota from the store, half of it locally"
    );
    assert_eq!(one.commit(&id, 30).await.unwrap().state(), Settled);
    assert_eq!(left().await, [70, 20]);
    assert_eq!(one.commit(&id, 0).await.unwrap().state(), Already);
    assert_eq!(left().await, [70, 20]);
}

#[tokio::test]
async fn without_the_store_each_limit_applies_its_failure_policy() {
    let request = Request::new();
    let two = TwoInstances::new("{ name: tokens, rate: 100/h, on_failure: allow }");
    two.cut(true);
    let id = reserve(&two.limiters[0], &request.cost(500)).await;
    assert_eq!(two.limiters[0].refund(&id).await.unwrap().state(), Settled);
    let two = TwoInstances::new("{ name: tokens, rate: 100/h, on_failure: deny }");
    two.cut(true);
    let refused = two.limiters[0].reserve(&request, MINUTE).await.unwrap();
    assert!(!refused.is_allowed());
    let two = TwoInstances::new("{ name: tokens, rate: 100/h, on_failure: error }");
    two.cut(true);
    let error = two.limiters[0].reserve(&request, MINUTE).await;
    assert!(matches!(error, Err(CheckError::Store(_))));
}

/// Charges of a request refused by the store are refunded there, and leave nothing to settle.
#[tokio::test]
async fn a_certain_refusal_leaves_no_local_charge() {
    let two = TwoInstances::new("{ name: left, rate: 10/h }, { name: right, rate: 100/h }");
    let [one, _] = &two.limiters;
    let request = Request::new();
    two.lose(Some("right"));
    let refused = one.reserve(&request.cost(40), MINUTE).await.unwrap();
    assert!(!refused.is_allowed() && refused.id().is_none());
    assert_eq!(refused.decision().limit(), Some("left"));
    two.lose(None);
    let looked = one.check(&request.cost(0)).await.unwrap();
    let left: Vec<u64> = looked.applied().map(|it| it.remaining()).collect();
    assert_eq!(left, [10, 100]);
}

/// If the store cannot be asked for the seal, ids are closed by the instance's own seal. They are still valid
/// when the store is back, and another seal is agreed on.
#[tokio::test(start_paused = true)]
async fn ids_sealed_before_the_shared_seal_stay_valid() {
    let two = TwoInstances::new(HOURLY);
    let [one, other] = &two.limiters;
    let request = Request::new();
    two.cut(true);
    let early = reserve(one, &request.cost(30)).await;
    two.cut(false);
    tokio::time::advance(Duration::from_secs(2)).await;
    let late = reserve(one, &request.cost(30)).await;
    assert_eq!(one.refund(&early).await.unwrap().state(), Settled);
    assert_eq!(other.refund(&late).await.unwrap().state(), Settled);
    assert!(matches!(
        other.refund(&early).await,
        Err(SettleError::Unknown)
    ));
}

/// A failover may lose the agreed seal.
#[tokio::test(start_paused = true)]
async fn a_seal_lost_by_the_store_is_restored() {
    let two = TwoInstances::new(HOURLY);
    let [one, other] = &two.limiters;
    let request = Request::new();
    let before = reserve(one, &request.cost(10)).await;
    two.store.shared.forget_secret();
    tokio::time::advance(Duration::from_secs(120)).await;
    let after = reserve(one, &request.cost(10)).await;
    assert_eq!(other.refund(&after).await.unwrap().state(), Settled);
    assert_eq!(other.refund(&before).await.unwrap().state(), Settled);
}

/// Forged ids do not cause a call to the store each.
#[tokio::test(start_paused = true)]
async fn forged_ids_cause_no_store_calls() {
    let two = TwoInstances::new(HOURLY);
    let [one, _] = &two.limiters;
    reserve(one, &Request::new()).await;
    let asked = two.store.shared.secrets_asked();
    for nth in 0..100 {
        let made_up = format!("r1{}", "A".repeat(100 + nth));
        assert!(matches!(
            one.refund(&made_up).await,
            Err(SettleError::Unknown)
        ));
    }
    assert!(two.store.shared.secrets_asked() <= asked + 1);
}

#[tokio::test]
async fn a_limiter_that_is_closed_settles_nothing() {
    let limiter = Limiter::from_yaml(&policy(HOURLY)).unwrap();
    let id = reserve(&limiter, &Request::new()).await;
    limiter.close();
    assert!(matches!(
        limiter.refund(&id).await,
        Err(SettleError::Closed)
    ));
    let closed = limiter.reserve(&Request::new(), MINUTE).await;
    assert!(matches!(closed, Err(CheckError::Closed)));
}
