//! Requests that wait instead of being refused, in a time that only moves when everybody waits.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unchecked_time_subtraction,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well, and a crowd is many tasks"
)]

/// Token buckets: places, their order, their bounds.
mod buckets;
/// Giving back what was allowed.
mod giving_back;
/// Who goes while waiting.
mod gone;
/// Limits that a route carries together with others.
mod joined;
/// Several limits at once, reloads, and doors that do not wait.
mod mixed;
/// Those behind who goes move up, and nothing passes beside them.
mod moving_up;
/// One line for all who share a Redis.
mod redis;
/// A store that does not answer.
mod store;
/// Windows: lines of this process.
mod windows;

use std::sync::Arc;
use std::time::Duration;
use tidegate::{Clock, Config, Decision, Limiter, MemoryStore, Request, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The time of the runtime, for a store: both move together.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeClock(Instant);

impl RuntimeClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let micros = u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_millis(1_700_000_000_000).plus(micros)
    }
}

pub(crate) type InMemory = Limiter<MemoryStore<RuntimeClock>>;

/// One policy with these limits.
pub(crate) fn policy(limits: &str) -> String {
    format!("policies: [{{ name: api, limits: [{limits}] }}]")
}

pub(crate) fn config(limits: &str) -> Config {
    Config::from_yaml(&policy(limits)).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn limiter(limits: &str) -> InMemory {
    let builder = Limiter::builder().config(config(limits));
    let built = builder.clock(RuntimeClock::start()).build();
    built.unwrap_or_else(|error| panic!("{error}"))
}

/// A request that is on its way, for one unit.
pub(crate) fn ask(limiter: &InMemory) -> JoinHandle<Decision> {
    ask_for(limiter, 1)
}

/// A request that is on its way.
pub(crate) fn ask_for(limiter: &InMemory, cost: u64) -> JoinHandle<Decision> {
    let limiter = limiter.clone();
    tokio::spawn(async move {
        let decided = limiter.check(&Request::new().cost(cost)).await;
        decided.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Lets everybody go on until they all wait.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// How many requests wait for the first limit.
pub(crate) fn waiting(limiter: &InMemory) -> u32 {
    limiter.waiting()[0].count
}

/// Requests, one after the other, that each tell when they passed and where in the order.
pub(crate) struct Crowd {
    pub(crate) tasks: Vec<JoinHandle<(Decision, Duration)>>,
}

impl Crowd {
    /// As many requests as this, in order.
    pub(crate) async fn of(limiter: &InMemory, count: usize) -> Self {
        let began = Instant::now();
        let limiter = Arc::new(limiter.clone());
        let mut tasks = Vec::new();
        for _ in 0..count {
            let limiter = Arc::clone(&limiter);
            tasks.push(tokio::spawn(async move {
                let decision = limiter.check(&Request::new()).await.unwrap();
                (decision, began.elapsed())
            }));
        }
        settle().await;
        Self { tasks }
    }

    /// What came of each.
    pub(crate) async fn end(self) -> Vec<(Decision, Duration)> {
        let mut all = Vec::new();
        for task in self.tasks {
            all.push(task.await.unwrap());
        }
        all
    }
}
