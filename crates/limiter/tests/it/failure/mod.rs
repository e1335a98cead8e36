//! Decisions if the store does not answer.

/// Blocks while the store is unreachable.
mod blocks;
/// N instances cut off: the number they admit above the policy, and that flapping adds nothing.
mod bounds;
/// Joined policies.
mod joined;
/// The initial level of local buckets, and their later life.
mod local;
/// Warnings, recovery, counters.
mod visible;
/// Every combination of two `on_failure` values, with the store lost as a whole and in part; refunds.
mod words;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use tidegate::{
    Config, Decision, Limiter, ManualClock, MemoryStore, Request, Store, StoreError,
    StoreErrorKind, Timestamp,
};
use tidegate_core::{
    Ask, Atomicity, ChargedOutcome, Inspection, Op, Outcome, PartialAnswer, Quota, Reply, Wait,
};
use tidegate_testkit::laws::{Manual, StoreUnderTest, block_on, law_12_unknown_is_an_error};

/// An in-memory store behind a wire that can be cut, wholly or for buckets of one limit. Several
/// instances share the store, each with its own wire.
#[derive(Clone, Debug)]
pub(crate) struct CuttableStore {
    memory: Arc<MemoryStore<ManualClock>>,
    is_cut: Arc<AtomicBool>,
    /// Buckets whose name contains this do not answer; the others do.
    lost: Arc<Mutex<Option<&'static str>>>,
    /// The refunds.
    given_back: Arc<Mutex<Vec<(String, u64)>>>,
    /// Buckets whose name contains this hold corrupt values.
    corrupt: Arc<Mutex<Option<&'static str>>>,
    /// If true, refuses everything like a deny cache: by the last bucket asked, without knowing the others.
    remembers: Arc<AtomicBool>,
    atomicity: Atomicity,
    /// For each call, true if all asks were refundable.
    refundable: Arc<Mutex<Vec<bool>>>,
}

impl CuttableStore {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self {
            memory: Arc::new(MemoryStore::builder().clock(clock.clone()).build()),
            is_cut: Arc::default(),
            lost: Arc::default(),
            given_back: Arc::default(),
            corrupt: Arc::default(),
            remembers: Arc::default(),
            atomicity: Atomicity::WholeRequest,
            refundable: Arc::default(),
        }
    }

    /// Returns the same store over another wire.
    pub(crate) fn sharing_store(&self) -> Self {
        Self {
            is_cut: Arc::default(),
            lost: Arc::default(),
            given_back: Arc::default(),
            corrupt: Arc::default(),
            remembers: Arc::default(),
            refundable: Arc::default(),
            ..self.clone()
        }
    }

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Relaxed);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Relaxed);
        *self.lost.lock() = None;
    }

    /// Drops the answers of buckets whose name contains `part`.
    pub(crate) fn lose(&self, part: &'static str) {
        *self.lost.lock() = Some(part);
    }

    /// Makes the values of buckets whose name contains `part` corrupt.
    pub(crate) fn corrupt(&self, part: &'static str) {
        *self.corrupt.lock() = Some(part);
    }

    pub(crate) fn given_back(&self) -> Vec<(String, u64)> {
        self.given_back.lock().clone()
    }

    fn reach(&self) -> Result<&MemoryStore<ManualClock>, StoreError> {
        if self.is_cut.load(Relaxed) {
            let cause = std::io::Error::other("connection refused");
            return Err(StoreError::transient("the wire is cut")
                .with_kind(StoreErrorKind::Unreachable)
                .caused_by(cause));
        }
        Ok(&self.memory)
    }

    /// Decides each ask as a separate group, as far as it can be reached.
    fn decide_groups(&self, asks: &[Ask<'_>], lost: &str) -> Result<Reply, StoreError> {
        let is_lost = |ask: &Ask<'_>| String::from_utf8_lossy(ask.bucket).contains(lost);
        if !asks.iter().any(is_lost) {
            return Ok(self.memory.decide_now(asks));
        }
        let answer = |ask: &Ask<'_>| {
            let reply = self.memory.decide_now(std::slice::from_ref(ask));
            PartialAnswer {
                at: reply.at,
                answer: ChargedOutcome {
                    outcome: reply.outcomes[0],
                    units: reply.applied.units(0, ask.op),
                },
            }
        };
        let answers = asks.iter().map(|ask| (!is_lost(ask)).then(|| answer(ask)));
        Err(StoreError::transient("a group did not answer")
            .with_kind(StoreErrorKind::Timeout)
            .with_answers(answers.collect()))
    }

    /// Refuses by the last ask; the outcomes of the others are made up.
    fn refuse_by_memory(asks: &[Ask<'_>]) -> Reply {
        let made_up = asks
            .iter()
            .map(|ask| Outcome::new(ask.quota.capacity(), Wait::NONE, 0));
        let mut outcomes: tidegate_core::Outcomes = made_up.collect();
        if let Some(last) = outcomes.last_mut() {
            *last = Outcome::new(0, Wait::from_micros(1_000_000), 3_600_000_000);
        }
        Reply::unchanged(Timestamp::default(), false, outcomes)
    }
}

impl Store for CuttableStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        let memory = self.reach()?;
        let refundable = asks.iter().all(|ask| ask.quota.is_refundable());
        self.refundable.lock().push(refundable);
        if let Some(part) = *self.corrupt.lock() {
            let is_corrupt = |ask: &Ask<'_>| String::from_utf8_lossy(ask.bucket).contains(part);
            if asks.iter().any(is_corrupt) {
                return Err(StoreError::permanent("a value that is not ours")
                    .with_kind(StoreErrorKind::Corrupt));
            }
        }
        if self.remembers.load(Relaxed) {
            return Ok(Self::refuse_by_memory(asks));
        }
        let lost = *self.lost.lock();
        match lost {
            Some(lost) => self.decide_groups(asks, lost),
            None => Ok(memory.decide_now(asks)),
        }
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        Ok(self.reach()?.inspect_now(bucket, quota))
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        Ok(self.reach()?.reset_now(bucket, quota))
    }

    fn atomicity(&self) -> Atomicity {
        self.atomicity
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        for ask in asks {
            let Op::GiveBack(receipt) = ask.op else {
                panic!("refunds give back");
            };
            let name = String::from_utf8_lossy(ask.bucket).into_owned();
            self.given_back.lock().push((name, receipt.cost));
        }
        self.memory.decide_now(asks);
    }
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_millis(1_700_000_000_000))
}

pub(crate) fn config(yaml: &str) -> Config {
    Config::from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}"))
}

/// One instance, its store and its clock.
pub(crate) struct Instance {
    pub(crate) limiter: Limiter<CuttableStore>,
    pub(crate) store: CuttableStore,
    pub(crate) clock: ManualClock,
    pub(crate) instances: Arc<AtomicU32>,
}

impl Instance {
    pub(crate) fn new(yaml: &str) -> Self {
        let clock = clock();
        Self::over(CuttableStore::new(&clock), clock, yaml)
    }

    /// Returns another instance of the same store.
    pub(crate) fn sharing_store(&self, yaml: &str) -> Self {
        Self::over(self.store.sharing_store(), self.clock.clone(), yaml)
    }

    fn over(store: CuttableStore, clock: ManualClock, yaml: &str) -> Self {
        let instances = Arc::<AtomicU32>::default();
        let limiter = Limiter::builder()
            .config(config(yaml))
            .clock(clock.clone())
            .instances(Arc::clone(&instances))
            .max_keys(1_000)
            .build_with(store.clone())
            .expect("a limiter");
        Self {
            limiter,
            store,
            clock,
            instances,
        }
    }

    pub(crate) fn ask(&self) -> Decision {
        self.ask_for(1)
    }

    pub(crate) fn ask_for(&self, cost: u64) -> Decision {
        block_on(self.limiter.check(&Request::new().user("ann").cost(cost))).expect("a decision")
    }

    /// Returns the number of requests that pass until one does not.
    pub(crate) fn admitted(&self) -> u64 {
        let mut admitted = 0;
        while admitted < 10_000 && self.ask().is_allowed() {
            admitted += 1;
        }
        admitted
    }
}

#[test]
fn the_store_of_these_tests_obeys_the_law() {
    let clock = clock();
    let store = CuttableStore::new(&clock);
    let subject = Manual::new(store.clone(), clock);
    assert!(subject.store().can_fail());
    law_12_unknown_is_an_error(&subject, || store.cut());
}

#[test]
fn a_non_atomic_store_refunds_charges_of_several_groups() {
    let apart =
        "policies: [{name: a, limits: [{name: x, key: user, rate: 9/h}, {name: y, rate: 9/h}]}]";
    let together = "policies: [{name: a, limits: [{name: x, key: user, rate: 9/h}]}]";
    let (whole, steps) = (Atomicity::WholeRequest, Atomicity::PerSubject);
    for (atomicity, yaml, reloaded, expected) in [
        (whole, apart, apart, [false, false]),
        (steps, apart, together, [true, false]),
        (steps, together, apart, [false, true]),
    ] {
        let clock = clock();
        let mut store = CuttableStore::new(&clock);
        store.atomicity = atomicity;
        let instance = Instance::over(store, clock, yaml);
        instance.ask();
        instance.limiter.reload(config(reloaded)).unwrap();
        instance.ask();
        assert_eq!(*instance.store.refundable.lock(), expected, "{atomicity:?}");
    }
}

#[test]
fn a_memory_store_has_no_health_to_probe() {
    let limiter = Limiter::from_yaml("policies: [{name: a, limits: [{name: x, rate: 1/s}]}]");
    let limiter = limiter.unwrap();
    assert!(limiter.store_health().is_none());
    assert!(block_on(limiter.probe_store()).is_none());
    assert!(
        block_on(limiter.check(&Request::new()))
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test]
async fn connect_and_start_build_a_memory_store_if_configured() {
    let yaml = "policies: [{name: a, limits: [{name: x, rate: 1/h}]}]";
    let connected = Limiter::builder().yaml(yaml).unwrap().connect().await;
    let started = Limiter::builder().yaml(yaml).unwrap().start().await;
    for limiter in [connected.unwrap(), started.unwrap()] {
        let allowed = |decision: Decision| decision.is_allowed();
        assert!(limiter.check(&Request::new()).await.is_ok_and(allowed));
        assert!(!limiter.check(&Request::new()).await.is_ok_and(allowed));
        assert!(limiter.store_health().is_none());
    }
}
