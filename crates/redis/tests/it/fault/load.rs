//! Load that continues while a test changes the servers, and its results.

use crate::world;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tidegate_core::{Ask, Quota, Store};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;
use tidegate_testkit::history::History;
use tidegate_testkit::redis::until;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The timeout of a production limiter.
pub(crate) const DEADLINE: Duration = Duration::from_millis(20);

/// Maximum time until decisions succeed after a store has recovered.
pub(crate) const RECOVERY: Duration = Duration::from_secs(5);

/// Held by tests that need the whole machine, one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

/// Returns instances that share buckets, configured as in production.
pub(crate) fn instances(settings: &ConnectionSettings, count: usize) -> Vec<RedisBuckets> {
    instances_with(settings, RedisOptions::default(), count)
}

/// Returns instances without a deny cache: every request goes to Redis.
pub(crate) fn forgetful(settings: &ConnectionSettings, count: usize) -> Vec<RedisBuckets> {
    instances_with(settings, RedisOptions::default().deny_cache(0), count)
}

pub(crate) fn instances_with(
    settings: &ConnectionSettings,
    options: RedisOptions,
    count: usize,
) -> Vec<RedisBuckets> {
    let options = options.prefix(world::own_prefix());
    (0..count)
        .map(|_| connect(settings.clone(), options.clone()))
        .collect()
}

pub(crate) fn connect(settings: ConnectionSettings, options: RedisOptions) -> RedisBuckets {
    world::runtime()
        .block_on(RedisBuckets::connect(settings, options))
        .expect("the server is up")
}

/// The load: stores, subjects and quotas.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The bands of each bucket.
    pub(crate) quotas: Vec<Quota>,
    pub(crate) subjects: usize,
    /// Tasks per instance; each sends requests for all subjects in turn.
    pub(crate) tasks: usize,
}

/// Returns a token bucket of `burst` that refills `per_second` units per second.
pub(crate) fn tokens(per_second: u64, burst: u64) -> Quota {
    let spec = Quota::new(per_second, 1_000_000).burst(burst);
    spec.build().expect("a valid quota")
}

pub(crate) fn bucket(subject: usize) -> String {
    format!("p/limit/s{subject}")
}

/// The progress of a load.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    answered: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Waits for `more` replies. Returns how long that took.
    pub(crate) fn await_answers(&self, more: u64) -> Duration {
        await_more(&self.answered, more, "requests are answered")
    }

    /// Returns the number of errors so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failed.load(SeqCst)
    }

    /// Waits for `more` errors.
    pub(crate) fn await_failures(&self, more: u64) -> Duration {
        await_more(&self.failed, more, "requests fail")
    }
}

fn await_more(counter: &AtomicU64, more: u64, what: &str) -> Duration {
    let (began, target) = (Instant::now(), counter.load(SeqCst) + more);
    until(what, || counter.load(SeqCst) >= target);
    began.elapsed()
}

/// The results of a load.
#[derive(Debug, Default)]
pub(crate) struct LoadRecord {
    /// One history per subject.
    pub(crate) histories: Vec<History>,
    /// The duration of each call, and true if it was a decision.
    pub(crate) took: Vec<(Duration, bool)>,
    /// The maximum delay of a bare timer of [`DEADLINE`] during the load.
    pub(crate) timer_late: Duration,
}

impl LoadRecord {
    /// Returns the units over a subject's quotas, for the worst subject.
    pub(crate) fn over(&self, load: &Load) -> u64 {
        let over = |history: &History| load.quotas.iter().map(|quota| history.over(quota)).max();
        self.histories.iter().filter_map(over).max().unwrap_or(0)
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.histories.iter().map(History::admitted).sum()
    }

    pub(crate) fn unknown(&self) -> usize {
        self.histories.iter().map(|it| it.unknown().len()).sum()
    }

    /// Returns the slowest call, decision or error.
    pub(crate) fn slowest(&self) -> Duration {
        self.took
            .iter()
            .map(|(took, _)| *took)
            .max()
            .unwrap_or_default()
    }

    /// Prints a summary line for the test log.
    pub(crate) fn report(&self, name: &str, load: &Load) {
        let mut took: Vec<_> = self.took.iter().map(|(took, _)| *took).collect();
        took.sort_unstable();
        let at = |percent: usize| took.get((took.len() * percent / 1000).min(took.len() - 1));
        let refused: u64 = self.histories.iter().map(History::refused).sum();
        println!(
            "{name}: {} admitted, {refused} refused, {} unknown, over {}; p50 {:?} p99 {:?} \
             max {:?}; a bare timer was late by {:?} at worst",
            self.admitted(),
            self.unknown(),
            self.over(load),
            at(500).copied().unwrap_or_default(),
            at(990).copied().unwrap_or_default(),
            self.slowest(),
            self.timer_late,
        );
    }
}

impl Load {
    /// Runs the load on all `stores` until `during` ends. Returns the results of both.
    pub(crate) fn run<T>(
        &self,
        stores: &[RedisBuckets],
        during: impl FnOnce(&Progress) -> T,
    ) -> (LoadRecord, T) {
        let progress = Arc::new(Progress::default());
        let mut tasks = JoinSet::new();
        let handle = world::runtime().handle();
        for store in stores {
            for nth in 0..self.tasks {
                let task = ask(store.clone(), self.clone(), Arc::clone(&progress), nth);
                tasks.spawn_on(task, handle);
            }
        }
        tasks.spawn_on(bare_timer(Arc::clone(&progress), self.subjects), handle);
        let stop = StopAtEnd(&progress);
        let result = during(&progress);
        drop(stop);
        let all = world::runtime().block_on(tasks.join_all());
        (all.into_iter().fold(self.nothing(), merged), result)
    }

    fn nothing(&self) -> LoadRecord {
        LoadRecord {
            histories: vec![History::default(); self.subjects],
            ..LoadRecord::default()
        }
    }
}

/// Ends the load even if the test fails.
struct StopAtEnd<'a>(&'a Progress);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, SeqCst);
    }
}

fn merged(mut all: LoadRecord, one: LoadRecord) -> LoadRecord {
    for (history, other) in all.histories.iter_mut().zip(one.histories) {
        history.merge(other);
    }
    all.took.extend(one.took);
    all.timer_late = all.timer_late.max(one.timer_late);
    all
}

async fn ask(store: RedisBuckets, load: Load, progress: Arc<Progress>, nth: usize) -> LoadRecord {
    let mut recorded = load.nothing();
    let names: Vec<String> = (0..load.subjects).map(bucket).collect();
    let mut turn = nth;
    while !progress.stop.load(SeqCst) {
        turn = (turn + 1) % load.subjects;
        let name = names[turn].as_bytes();
        let asks: Vec<_> = load
            .quotas
            .iter()
            .map(|it| Ask::take(name, it, 1))
            .collect();
        let began = Instant::now();
        let answer = store.decide(&asks).await;
        recorded.took.push((began.elapsed(), answer.is_ok()));
        recorded.histories[turn].record(1, &answer);
        let counter = if answer.is_ok() {
            &progress.answered
        } else {
            &progress.failed
        };
        counter.fetch_add(1, SeqCst);
        // Leaves CPU time for the servers.
        sleep(Duration::from_millis(1)).await;
    }
    recorded
}

/// A reference for deadlines: a bare timer on the same runtime.
async fn bare_timer(progress: Arc<Progress>, subjects: usize) -> LoadRecord {
    let mut timer_late = Duration::ZERO;
    while !progress.stop.load(SeqCst) {
        let due = Instant::now() + DEADLINE;
        tokio::time::sleep_until(due).await;
        timer_late = timer_late.max(due.elapsed());
    }
    LoadRecord {
        histories: vec![History::default(); subjects],
        timer_late,
        ..LoadRecord::default()
    }
}
