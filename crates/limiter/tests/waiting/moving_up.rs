//! A request that leaves makes no gap: those behind move up, newcomers come after them. No interval admits
//! more than the policy allows, by the times at which requests really pass.

use crate::{InMemory, limiter, settle};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::Request;
use tidegate_core::Quota;
use tidegate_testkit::history::History;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);

/// A timer fires up to a millisecond late.
const SKEW_US: u64 = 1_000;

const ONE: &str =
    "{ name: all, rate: 100/s burst 10, on_refusal: wait, max_wait: 4s, max_waiting: 5000 }";

/// Selects the waiting requests that leave: by the number of arrival, and the position in the line.
type LeaverRule = fn(nth: usize, position: usize, of: usize) -> bool;

const GOERS: [(&str, LeaverRule); 5] = [
    ("every second", |_, position, _| position % 2 == 1),
    ("all but every third", |_, position, _| position % 3 != 0),
    ("some", |nth, position, _| is_picked(nth * 1_000 + position)),
    ("the front", |_, position, of| position < of / 2),
    ("the back", |_, position, of| position >= of / 2),
];

/// Selects one half of all numbers, without a pattern.
fn is_picked(number: usize) -> bool {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 63 == 1
}

/// Requests of a few clients, in order of arrival, and when each passed.
struct Scene {
    limiter: InMemory,
    clients: usize,
    /// The time after which every second request is refunded, once it has passed.
    returns_after: Option<Duration>,
    began: Instant,
    tasks: Vec<JoinHandle<()>>,
    /// By the number of arrival.
    passed: Arc<Mutex<BTreeMap<usize, Duration>>>,
}

impl Scene {
    fn new(limits: &str, clients: usize) -> Self {
        Self {
            limiter: limiter(limits),
            clients,
            returns_after: None,
            began: Instant::now(),
            tasks: Vec::new(),
            passed: Arc::default(),
        }
    }

    fn client(&self, nth: usize) -> usize {
        // In pairs, so that it is not always the same client that leaves.
        nth / 2 % self.clients
    }

    async fn come(&mut self, count: usize) {
        for _ in 0..count {
            let nth = self.tasks.len();
            let user = self.client(nth).to_string();
            let (limiter, passed) = (self.limiter.clone(), Arc::clone(&self.passed));
            let (began, returns_after) = (self.began, self.returns_after);
            self.tasks.push(tokio::spawn(async move {
                let request = Request::new().user(&user);
                let decision = limiter.check(&request).await.unwrap();
                assert!(decision.is_allowed(), "{nth} has no place");
                match returns_after.filter(|_| nth % 2 == 1) {
                    Some(after) => {
                        sleep(after).await;
                        assert!(limiter.refund_decision(&decision).await.unwrap());
                    }
                    None => {
                        passed.lock().insert(nth, began.elapsed());
                    }
                }
            }));
        }
        settle().await;
    }

    /// Returns the requests that wait, in order of arrival.
    fn waiting(&self) -> Vec<usize> {
        let tasks = self.tasks.iter().enumerate();
        let waiting = tasks.filter(|(_, task)| !task.is_finished());
        waiting.map(|(nth, _)| nth).collect()
    }

    /// Makes some requests leave, and returns their number.
    async fn go(&mut self, goes: LeaverRule) -> usize {
        let waiting = self.waiting();
        let of = waiting.len();
        let positions = waiting.into_iter().enumerate();
        let gone: Vec<usize> = positions
            .filter(|(position, nth)| goes(*nth, *position, of))
            .map(|(_, nth)| nth)
            .collect();
        for nth in &gone {
            self.tasks[*nth].abort();
        }
        settle().await;
        gone.len()
    }

    async fn end(&mut self) {
        for task in &mut self.tasks {
            if let Err(error) = task.await {
                assert!(error.is_cancelled(), "{error}");
            }
        }
    }

    /// Returns the history of one client or of all.
    fn history(&self, client: Option<usize>) -> History {
        let mut history = History::default();
        for (nth, at) in &*self.passed.lock() {
            if client.is_none_or(|client| client == self.client(*nth)) {
                history.admit(u64::try_from(at.as_micros()).unwrap(), 1);
            }
        }
        history
    }

    fn assert_in_order(&self, of: &str) {
        let mut last = Duration::ZERO;
        for (nth, at) in &*self.passed.lock() {
            assert!(*at >= last, "{of}: {nth} at {at:?} before {last:?}");
            last = *at;
        }
    }

    fn last(&self) -> Duration {
        self.passed.lock().values().copied().max().unwrap()
    }
}

fn quota(rate: u64, burst: u64) -> Quota {
    Quota::new(rate, 1_000_000).burst(burst).build().unwrap()
}

/// Asserts that a history is never over the limit, in two independent ways.
fn assert_never_over(history: &History, (rate, burst): (u64, u64), of: &str) {
    assert_eq!(
        history.over_with_skew(&quota(rate, burst), SKEW_US),
        0,
        "{of}"
    );
    let mut instants: Vec<u64> = history.instants_us().collect();
    instants.sort_unstable();
    for (i, from) in instants.iter().enumerate() {
        for (count, to) in (1..).zip(&instants[i..]) {
            let most = burst * 1_000_000 + rate * (to - from + SKEW_US);
            assert!(count * 1_000_000 <= most, "{of}: {count} in {from}..={to}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_with_leavers_and_joiners_is_never_exceeded_or_idle() {
    for (of, goes) in GOERS {
        let mut scene = Scene::new(ONE, 1);
        scene.come(410).await;
        for pause in [0, 3, 205, 1_000] {
            sleep(pause * MS).await;
            settle().await;
            let gone = scene.go(goes).await;
            assert!(gone > 100, "{of}: {gone}");
            scene.come(400 - scene.waiting().len()).await;
            assert_eq!(scene.waiting().len(), 400, "{of}: all find a place");
        }
        scene.end().await;
        assert_never_over(&scene.history(None), (100, 10), of);
        scene.assert_in_order(of);
        // No time is lost: nothing but the burst passes for free.
        let passed = u32::try_from(scene.passed.lock().len()).unwrap();
        let exact = 10 * MS * (passed - 10);
        assert!(scene.last() <= exact + 2 * MS, "{of}: {:?}", scene.last());
        assert!(scene.last() >= exact, "{of}: {:?}", scene.last());
    }
}

#[tokio::test(start_paused = true)]
async fn remaining_waiters_pass_as_if_leavers_had_never_come() {
    for (of, goes) in GOERS {
        let mut scene = Scene::new(ONE, 1);
        scene.come(410).await;
        scene.go(goes).await;
        scene.end().await;
        scene.assert_in_order(of);
        for (nth, at) in (0..).zip(scene.passed.lock().values()) {
            let turn = 10 * MS * u32::saturating_sub(nth, 9);
            assert!(*at >= turn && *at <= turn + MS, "{of}: {nth} at {at:?}");
        }
    }
}

/// A request passes when all of its turns have come. So its passing is exact only for the limit that it waits
/// for longest: once that for all, and once that for each.
#[tokio::test(start_paused = true)]
async fn of_two_waiting_limits_the_slower_is_never_exceeded_or_idle() {
    for each_holds_back in [false, true] {
        let (all, each, clients) = if each_holds_back {
            ((2_000, 100), (25, 10), 4)
        } else {
            ((100, 10), (50, 10), 5)
        };
        let waits = "on_refusal: wait, max_wait: 20s, max_waiting: 5000";
        let limits = format!(
            "{{ name: each, key: user, rate: {}/s burst {}, {waits} }},
             {{ name: all, rate: {}/s burst {}, {waits} }}",
            each.0, each.1, all.0, all.1
        );
        for (of, goes) in GOERS {
            let mut scene = Scene::new(&limits, clients);
            scene.come(400).await;
            for pause in [0, 3, 205, 1_000] {
                sleep(pause * MS).await;
                settle().await;
                scene.go(goes).await;
                scene.come(400 - scene.waiting().len()).await;
            }
            scene.end().await;
            assert_never_over(&scene.history(None), all, &format!("{of}: all"));
            let holds_back: Vec<History> = if each_holds_back {
                (0..clients).map(|it| scene.history(Some(it))).collect()
            } else {
                vec![scene.history(None)]
            };
            let (rate, burst) = if each_holds_back { each } else { all };
            for history in holds_back {
                assert_never_over(&history, (rate, burst), of);
                let (_, last_us) = history.span_us().unwrap();
                let exact_us = (history.admitted() - burst) * 1_000_000 / rate;
                assert!(last_us <= exact_us + 2_000, "{of}: {last_us} {exact_us}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_of_a_passed_request_moves_all_waiters_up() {
    for after in [0, 20, 50] {
        let of = format!("given back after {after} ms");
        let mut scene = Scene::new(ONE, 1);
        scene.returns_after = Some(after * MS);
        scene.come(410).await;
        for _ in 0..4 {
            sleep(405 * MS).await;
            settle().await;
            scene.come(40).await;
        }
        scene.end().await;
        assert_never_over(&scene.history(None), (100, 10), &of);
        scene.assert_in_order(&of);
        let kept = u32::try_from(scene.passed.lock().len()).unwrap();
        assert_eq!(kept, 285);
        let exact = 10 * MS * (kept - 10);
        let most = exact + 2 * after * MS + 20 * MS;
        assert!(scene.last() <= most, "{of}: {:?}", scene.last());
    }
}
