//! Whole limiters on a real Redis with outages, for each `on_failure`.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking as tests do, and say what they measured"
)]

/// Windows of the calendar, of instances whose clocks differ.
mod calendar;
/// Counting requests by address, and banning addresses over the threshold.
mod counting;
/// Limits that are decided separately.
mod each;
/// Limits in code, with their buckets in Redis.
mod in_code;
/// Lists of guards, in sets.
mod lists;
/// `local`: the number of requests that instances admit while cut off.
mod local;
/// The names of keys after a reload.
mod names;
/// Rates from plans, in the layout of the documents.
mod plans;
/// A store whose callers have another clock.
#[path = "../common/skewed.rs"]
mod skewed;
/// Costs that are known only after the response.
mod spent;
/// Two versions of a configuration at the same time.
mod versions;
/// Warnings, over restarts and by several instances.
mod warned;
/// `deny`, `error` and `allow`.
mod words;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tidegate::redis::{Address, ConnectionSettings, RedisOptions, RedisStore, RedisTopology};
use tidegate::{DecidedBy, Decision, Limiter, LocalShare, OnFailure, Request};
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{FaultProxy, Server, until};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub(crate) const DEADLINE: Duration = Duration::from_millis(20);

/// A capacity of 100, fifty a second.
pub(crate) const POLICY: &str =
    "policies: [{name: api, limits: [{name: everyone, rate: 50/s burst 100}]}]";
pub(crate) const CAPACITY: u64 = 100;
pub(crate) const RATE: u64 = 50;

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

/// One instance, with its own wire to Redis.
pub(crate) struct Instance {
    pub(crate) limiter: Limiter<RedisStore>,
    pub(crate) wire: FaultProxy,
    pub(crate) counted: Arc<AtomicU32>,
}

impl Instance {
    pub(crate) fn start(server: &Server, on_failure: OnFailure, share: LocalShare) -> Self {
        let wire = FaultProxy::start(server.port());
        let address = Address::new("127.0.0.1", wire.port());
        let settings =
            ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(DEADLINE);
        let store = runtime().block_on(RedisStore::connect(settings, RedisOptions::default()));
        let counted = Arc::<AtomicU32>::default();
        let limiter = Limiter::builder()
            .yaml(POLICY)
            .expect("a valid config")
            .on_failure(on_failure)
            .local_share(share)
            .instances(Arc::clone(&counted))
            .max_keys(1_000)
            .build_with(store.expect("the server is up"));
        Self {
            limiter: limiter.expect("a limiter"),
            wire,
            counted,
        }
    }
}

/// The requests that one instance admitted, by the component that decided, and their latency.
#[derive(Default)]
pub(crate) struct AdmissionRecord {
    pub(crate) by_store: History,
    pub(crate) locally: History,
    pub(crate) without_either: u64,
    pub(crate) errors: u64,
    pub(crate) slowest: Duration,
    pub(crate) timer_late: Duration,
}

/// The progress of the load of each instance.
#[derive(Default)]
pub(crate) struct Progress {
    by_store: AtomicU64,
    otherwise: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Waits until the store has decided `more` times.
    pub(crate) fn await_store(&self, more: u64) {
        await_more(&self.by_store, more);
    }

    /// Waits until `more` decisions were made without the store.
    pub(crate) fn await_without(&self, more: u64) {
        await_more(&self.otherwise, more);
    }
}

fn await_more(counter: &AtomicU64, more: u64) {
    let target = counter.load(SeqCst) + more;
    until("requests are decided", || counter.load(SeqCst) >= target);
}

/// All instances send as many requests as pass while `during` runs. Returns the result of each instance.
pub(crate) fn under_load(
    instances: &[Instance],
    during: impl FnOnce(&[Arc<Progress>]),
) -> Vec<AdmissionRecord> {
    let progress: Vec<Arc<Progress>> = instances.iter().map(|_| Arc::default()).collect();
    let mut tasks = JoinSet::new();
    for (nth, instance) in instances.iter().enumerate() {
        let limiter = instance.limiter.clone();
        let task = ask(limiter, Arc::clone(&progress[nth]));
        tasks.spawn_on(async move { (nth, task.await) }, runtime().handle());
    }
    during(&progress);
    for progress in &progress {
        progress.stop.store(true, SeqCst);
    }
    let mut all = runtime().block_on(tasks.join_all());
    all.sort_by_key(|(nth, _)| *nth);
    all.into_iter().map(|(_, recorded)| recorded).collect()
}

async fn ask(limiter: Limiter<RedisStore>, progress: Arc<Progress>) -> AdmissionRecord {
    let mut recorded = AdmissionRecord::default();
    while !progress.stop.load(SeqCst) {
        let began = Instant::now();
        let decision = limiter.check(&Request::new()).await;
        recorded.slowest = recorded.slowest.max(began.elapsed());
        let by = decision
            .as_ref()
            .map_or(DecidedBy::Failure, Decision::decided_by);
        let allowed = decision.as_ref().ok().filter(|it| it.is_allowed());
        match (by, allowed) {
            (_, None) => recorded.errors += u64::from(decision.is_err()),
            (DecidedBy::Store, Some(it)) => recorded.by_store.admit(it.at().as_micros(), 1),
            (DecidedBy::Local, Some(it)) => recorded.locally.admit(it.at().as_micros(), 1),
            (_, Some(_)) => recorded.without_either += 1,
        }
        let counter = match by {
            DecidedBy::Store => &progress.by_store,
            _ => &progress.otherwise,
        };
        counter.fetch_add(1, SeqCst);
        // Measures how late timers are, as a reference for deadlines, and leaves CPU time for the servers.
        let due = Instant::now() + Duration::from_millis(1);
        tokio::time::sleep_until(due).await;
        recorded.timer_late = recorded.timer_late.max(due.elapsed());
    }
    recorded
}

/// Waits for `time` while the load continues.
pub(crate) fn pass(time: Duration) {
    runtime().block_on(async { sleep(time).await });
}
