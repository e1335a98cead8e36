//! Requests that wait instead of being refused, on a clock that only moves when all tasks wait.

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
/// Refunds of allowed requests.
mod giving_back;
/// Requests that leave while waiting.
mod gone;
/// Permits of requests in flight.
mod in_flight;
/// Limits in joined policies.
mod joined;
/// Waiting by a key alone.
mod keyed;
/// Several limits at once, reloads, and callers that do not wait.
mod mixed;
/// Requests behind one that leaves move up, and nothing overtakes them.
mod moving_up;
/// One line for all instances that share a Redis.
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

/// The clock of the runtime, for a store: both move together.
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

/// Returns a policy with these limits.
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

/// Sends a request of one unit.
pub(crate) fn ask(limiter: &InMemory) -> JoinHandle<Decision> {
    ask_for(limiter, 1)
}

/// Sends a request.
pub(crate) fn ask_for(limiter: &InMemory, cost: u64) -> JoinHandle<Decision> {
    let limiter = limiter.clone();
    tokio::spawn(async move {
        let decided = limiter.check(&Request::new().cost(cost)).await;
        decided.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Lets all tasks run until they all wait.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Returns the number of requests that wait for the first limit.
pub(crate) fn waiting(limiter: &InMemory) -> u32 {
    limiter.waiting()[0].count
}

/// Requests in order, each of which reports when it passed.
pub(crate) struct Crowd {
    pub(crate) tasks: Vec<JoinHandle<(Decision, Duration)>>,
}

impl Crowd {
    /// Sends this many requests, in order.
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

    /// Returns the result of each.
    pub(crate) async fn end(self) -> Vec<(Decision, Duration)> {
        let mut all = Vec::new();
        for task in self.tasks {
            all.push(task.await.unwrap());
        }
        all
    }
}
