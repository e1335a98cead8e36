//! Any order of reserving, settling, settling again, letting expire and checking in between, at two
//! instances. The result is never more than the model allows, which replays history exactly and is
//! independent of the implementation of refunds.

use crate::stores::{self, Pair};
use crate::{MINUTE, micros, now_us};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::redis::KeyTag;
use tidegate::{Request, SettleState, Store};
use tidegate_testkit::model::{ModelAlgorithm, ModelBucket, ModelQuota};
use tidegate_testkit::redis::{Cluster, Server};
use tokio::runtime::Runtime;

const AMOUNT: u64 = 60;
const OVERDRAFT: u64 = 20;

#[derive(Clone, Debug)]
enum Act {
    Reserve(u64),
    Check(u64),
    /// Settles an earlier reservation, perhaps once more.
    Commit(prop::sample::Index, u64),
    /// Starts to settle it, and is dropped before it is done.
    Abandon(prop::sample::Index, u64),
}

/// The instance, the milliseconds since the last step, and the action.
type Step = (usize, u64, Act);

fn schedule() -> impl Strategy<Value = Vec<Step>> {
    let pause_ms = prop_oneof![
        3 => Just(0),
        4 => 1..3_000_u64,
        1 => 3_000..50_000_u64,
        1 => Just(60_000_u64),
        1 => 60_000..200_000_u64,
    ];
    let nth = || any::<prop::sample::Index>();
    let act = prop_oneof![
        4 => (1..=40_u64).prop_map(Act::Reserve),
        2 => (1..=30_u64).prop_map(Act::Check),
        5 => (nth(), 0..=50_u64).prop_map(|(nth, actual)| Act::Commit(nth, actual)),
        1 => (nth(), 0..=50_u64).prop_map(|(nth, actual)| Act::Abandon(nth, actual)),
    ];
    prop::collection::vec((0..2_usize, pause_ms, act), 1..40)
}

/// The algorithms by their names in a configuration; all of them sixty a minute.
fn kinds() -> [(&'static str, ModelAlgorithm); 4] {
    [
        ("token-bucket", ModelAlgorithm::TokenBucket),
        ("sliding-log", ModelAlgorithm::SlidingLog),
        (
            "bucketed-window",
            ModelAlgorithm::BucketedWindow { parts: 32 },
        ),
        ("sliding-window", ModelAlgorithm::SlidingWindow),
    ]
}

fn limits(algorithm: &str) -> String {
    format!(
        "{{ name: tokens, key: user, algorithm: {algorithm}, rate: {AMOUNT}/min, overdraft: {OVERDRAFT} }}"
    )
}

/// A reservation, and its state.
struct HeldReservation {
    id: String,
    at_us: u64,
    estimate: u64,
    is_settled: bool,
}

struct World<'p, S> {
    pair: &'p Pair<S>,
    user: String,
    model: ModelBucket,
    held: Vec<HeldReservation>,
}

impl<S: Store + 'static> World<'_, S> {
    fn now_us(&self) -> u64 {
        now_us(&self.pair.clock)
    }

    async fn act(&mut self, (nth, pause_ms, act): Step) {
        self.pair.clock.advance_micros(pause_ms * 1_000);
        let (limiter, now_us) = (self.pair.of(nth), self.now_us());
        let user = self.user.clone();
        let request = Request::new().user(&user);
        match act {
            Act::Reserve(estimate) => {
                let reserved = limiter
                    .reserve(&request.cost(estimate), MINUTE)
                    .await
                    .unwrap();
                if let Some(id) = reserved.id() {
                    assert!(self.model.take(now_us, estimate).allowed, "over");
                    self.held.push(HeldReservation {
                        id: id.to_owned(),
                        at_us: now_us,
                        estimate,
                        is_settled: false,
                    });
                }
            }
            Act::Check(cost) => {
                let decision = limiter.check(&request.cost(cost)).await.unwrap();
                if decision.is_allowed() {
                    assert!(self.model.take(now_us, cost).allowed, "over");
                }
            }
            Act::Commit(which, actual) if !self.held.is_empty() => {
                let which = which.index(self.held.len());
                let settled = limiter.commit(&self.held[which].id, actual).await.unwrap();
                self.settled(which, actual, settled.state());
            }
            Act::Abandon(which, actual) if !self.held.is_empty() => {
                let which = which.index(self.held.len());
                abandon(limiter.commit(&self.held[which].id, actual));
                // The caller repeats the dropped call; `Already` is then a success.
                let settled = limiter.commit(&self.held[which].id, actual).await.unwrap();
                let is_first = !self.held[which].is_settled;
                let state = match settled.state() {
                    SettleState::Already if is_first => self.expected(which),
                    state => state,
                };
                self.settled(which, actual, state);
            }
            Act::Commit(..) | Act::Abandon(..) => {}
        }
        let left = crate::remaining(self.pair.of(nth + 1), &request).await;
        let exact = self.model.would(now_us, 0).remaining;
        assert!(left <= exact, "{left} > {exact}");
    }

    /// Returns the expected state of a reservation that is settled for the first time.
    fn expected(&self, which: usize) -> SettleState {
        let held = &self.held[which];
        let is_late = self.now_us() > held.at_us + micros(MINUTE);
        if is_late {
            SettleState::Expired
        } else {
            SettleState::Settled
        }
    }

    fn settled(&mut self, which: usize, actual: u64, state: SettleState) {
        let now_us = self.now_us();
        let first = self.expected(which);
        let held = &mut self.held[which];
        let is_late = now_us > held.at_us + micros(MINUTE);
        match state {
            SettleState::Already => assert!(held.is_settled, "nobody has settled it"),
            // A mark is kept as long as the reservation can matter, and no longer.
            SettleState::Expired if held.is_settled => assert!(is_late),
            SettleState::Settled if held.is_settled => panic!("settled twice"),
            state => assert_eq!(state, first),
        }
        if state == SettleState::Already {
            return;
        }
        if let Some(excess) = actual.checked_sub(held.estimate) {
            self.model.force(now_us, excess);
        } else if !is_late {
            let unused = held.estimate - actual;
            self.model.give_back(now_us, held.at_us, unused);
        }
        held.is_settled = true;
    }
}

/// Polls a future once, and drops it at its first wait.
fn abandon<F: Future>(future: F) {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    drop(future.as_mut().poll(&mut context));
}

async fn run<S: Store + 'static>(
    pair: &Pair<S>,
    user: String,
    algorithm: ModelAlgorithm,
    schedule: Vec<Step>,
) {
    let model = ModelBucket::new(ModelQuota {
        algorithm,
        amount: AMOUNT,
        period_us: micros(MINUTE),
        burst: AMOUNT,
        overdraft: OVERDRAFT,
    });
    let held = Vec::new();
    let mut world = World {
        pair,
        user,
        model,
        held,
    };
    for step in schedule {
        world.act(step).await;
    }
}

/// Runs schedules over a pair, each with its own user.
fn run_over<S: Store + 'static>(
    runtime: &Runtime,
    cases: u32,
    (pair, algorithm): (&Pair<S>, ModelAlgorithm),
) {
    let mut runner = TestRunner::new(Config::with_cases(cases));
    let users = AtomicU32::new(0);
    let ran = runner.run(&schedule(), |schedule| {
        let user = format!("user{}", users.fetch_add(1, Relaxed));
        let run = run(pair, user, algorithm, schedule);
        let caught = std::panic::AssertUnwindSafe(|| runtime.block_on(run));
        std::panic::catch_unwind(caught).map_err(|panic| {
            let message = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(message.unwrap_or_default())
        })
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn in_memory_no_interleaving_admits_more_than_the_model() {
    for (name, algorithm) in kinds() {
        let pair = stores::in_memory(&limits(name));
        run_over(&runtime(), 300, (&pair, algorithm));
    }
}

#[test]
fn in_redis_no_interleaving_admits_more_than_the_model() {
    let server = Server::start();
    let runtime = runtime();
    for (name, algorithm) in kinds() {
        let settings = stores::standalone(&server);
        let limits = limits(name);
        let pair = stores::in_redis(&settings, KeyTag::Subject, &limits);
        let pair = runtime.block_on(pair);
        run_over(&runtime, 40, (&pair, algorithm));
    }
}

#[test]
fn on_a_cluster_no_interleaving_admits_more_than_the_model() {
    let cluster = Cluster::start(3, 0);
    let runtime = runtime();
    for tag in [KeyTag::Subject, KeyTag::Policy] {
        for (name, algorithm) in kinds() {
            let settings = stores::cluster(&cluster);
            let limits = limits(name);
            let pair = stores::in_redis(&settings, tag, &limits);
            let pair = runtime.block_on(pair);
            run_over(&runtime, 15, (&pair, algorithm));
        }
    }
}

/// Counted from outside, without a model: usage in any interval is at most the burst, the refill in it, and
/// the overdraft.
#[test]
fn usage_never_exceeds_the_envelope() {
    let runtime = runtime();
    let mut runner = TestRunner::new(Config::with_cases(200));
    let ran = runner.run(&schedule(), |schedule| {
        let pair = stores::in_memory(&limits("token-bucket"));
        let used = runtime.block_on(used(&pair, schedule));
        for (i, (from, _)) in used.iter().enumerate() {
            let mut sum = 0;
            for (to, units) in &used[i..] {
                sum += units;
                let comes_back = u128::from(AMOUNT) * u128::from(to - from) / 60_000_000;
                let most = u128::from(AMOUNT + OVERDRAFT) + comes_back;
                prop_assert!(u128::from(sum) <= most, "{} > {}", sum, most);
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a schedule. Returns the usage and the time of its charge, in order. Usage beyond an estimate counts
/// only as far as there was room for it.
async fn used<S: Store + 'static>(pair: &Pair<S>, schedule: Vec<Step>) -> Vec<(u64, u64)> {
    let request = Request::new().user("ann");
    let mut used: Vec<(u64, u64)> = Vec::new();
    let mut held: Vec<(String, usize, u64)> = Vec::new();
    for (nth, pause_ms, act) in schedule {
        pair.clock.advance_micros(pause_ms * 1_000);
        let (limiter, now_us) = (pair.of(nth), now_us(&pair.clock));
        match act {
            Act::Reserve(estimate) => {
                let reserved = limiter
                    .reserve(&request.cost(estimate), MINUTE)
                    .await
                    .unwrap();
                if let Some(id) = reserved.id() {
                    held.push((id.to_owned(), used.len(), estimate));
                    used.push((now_us, estimate));
                }
            }
            Act::Check(cost) => {
                if limiter
                    .check(&request.cost(cost))
                    .await
                    .unwrap()
                    .is_allowed()
                {
                    used.push((now_us, cost));
                }
            }
            Act::Commit(which, actual) | Act::Abandon(which, actual) if !held.is_empty() => {
                let (id, place, estimate) = &held[which.index(held.len())];
                let settled = limiter.commit(id, actual.min(*estimate)).await.unwrap();
                if settled.state() == SettleState::Settled {
                    used[*place].1 = actual.min(*estimate);
                }
            }
            Act::Commit(..) | Act::Abandon(..) => {}
        }
    }
    used
}

/// Alone, the bucket would have been full after half a second. But other requests have kept it in debt all
/// along, so the reserved units are still owed, and are refunded.
async fn comes_back_after_seconds<S: Store + 'static>(pair: &Pair<S>) {
    let (one, other) = (pair.of(0), pair.of(1));
    let request = Request::new();
    let id = crate::reserve(one, &request.cost(50)).await;
    for _ in 0..50 {
        let pause = Duration::from_millis(100);
        pair.clock.advance_micros(micros(pause));
        let decision = other.check(&request.cost(10)).await.unwrap();
        assert!(decision.is_allowed());
    }
    let before = crate::remaining(one, &request).await;
    other.commit(&id, 10).await.unwrap();
    let back = crate::remaining(one, &request).await - before;
    assert!((39..=40).contains(&back), "{back}");
}

const BUSY: &str = "{ name: tokens, rate: 100/s burst 100 }";

#[tokio::test]
async fn in_memory_a_reservation_is_refunded_after_use_by_others() {
    comes_back_after_seconds(&stores::in_memory(BUSY)).await;
}

#[tokio::test]
async fn in_redis_a_reservation_is_refunded_after_use_by_others() {
    let server = Server::start();
    let settings = stores::standalone(&server);
    let pair = stores::in_redis(&settings, KeyTag::Subject, BUSY).await;
    comes_back_after_seconds(&pair).await;
}
