//! Random schedules over vectors of units, against a simple model: it lists the charges of each unit with
//! their times. Sliding logs are exact, so the units that are left have to agree to the last one: none over,
//! none leaked, and every unit or none.

use crate::stores::{self, Pair};
use crate::{MINUTE, micros, now_us};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate::redis::KeyTag;
use tidegate::{CostMap, Request, SettleState, Store};
use tidegate_testkit::redis::Server;
use tidegate_testkit::soak_cases;
use tokio::runtime::Runtime;

/// The name of a unit, the amount and the period in minutes of its limit, and its overdraft.
const UNITS: [(&str, u64, u64, u64); 3] = [
    ("requests", 12, 1, 0),
    ("tokens", 300, 3, 40),
    ("bytes", 90, 2, 10),
];

/// Amounts of each unit; `None` for one that is not named.
type Amounts = [Option<u64>; 3];

#[derive(Clone, Debug)]
enum Act {
    Check(Amounts),
    Reserve(Amounts),
    Report(Amounts),
    /// Settles an earlier reservation, perhaps once more.
    Commit(prop::sample::Index, Amounts),
    Refund(prop::sample::Index),
}

/// The instance, the milliseconds since the last step, and the action.
type Step = (usize, u64, Act);

fn amounts(most: u64) -> impl Strategy<Value = Amounts> {
    let amount = |most| prop::option::of(prop_oneof![1 => Just(0), 6 => 0..=most]);
    (amount(3), amount(most), amount(most / 3)).prop_map(|(a, b, c)| [a, b, c])
}

fn schedule() -> impl Strategy<Value = Vec<Step>> {
    let pause_ms = prop_oneof![
        3 => Just(0),
        4 => 1..5_000_u64,
        2 => 5_000..40_000_u64,
        1 => Just(60_000_u64),
        1 => 60_000..200_000_u64,
    ];
    let nth = any::<prop::sample::Index>;
    let act = prop_oneof![
        3 => amounts(120).prop_map(Act::Check),
        5 => amounts(120).prop_map(Act::Reserve),
        1 => amounts(60).prop_map(Act::Report),
        5 => (nth(), amounts(160)).prop_map(|(nth, actual)| Act::Commit(nth, actual)),
        1 => nth().prop_map(Act::Refund),
    ];
    prop::collection::vec((0..2_usize, pause_ms, act), 1..60)
}

fn limits() -> String {
    let limit = |(unit, amount, minutes, overdraft): (&str, u64, u64, u64)| {
        format!(
            "{{ name: {unit}, key: user, unit: {unit}, rate: {amount}/{minutes}min, \
             algorithm: sliding-log, overdraft: {overdraft} }}"
        )
    };
    UNITS.map(limit).join(", ")
}

/// The charges of one unit by their times, in microseconds.
#[derive(Default)]
struct Charges(BTreeMap<u64, u64>);

impl Charges {
    fn used(&self, unit: usize, now_us: u64) -> u64 {
        let period_us = UNITS[unit].2 * 60_000_000;
        let live = self.0.iter().filter(|(at, _)| *at + period_us > now_us);
        live.map(|(_, units)| units).sum()
    }

    /// Charges what fits above the overdraft.
    fn force(&mut self, unit: usize, now_us: u64, units: u64) {
        let most = UNITS[unit].1 + UNITS[unit].3;
        let room = most.saturating_sub(self.used(unit, now_us));
        *self.0.entry(now_us).or_default() += units.min(room);
    }
}

struct HeldReservation {
    id: String,
    at_us: u64,
    estimate: [u64; 3],
    is_settled: bool,
}

struct World<'p, S> {
    pair: &'p Pair<S>,
    user: String,
    model: [Charges; 3],
    held: Vec<HeldReservation>,
}

/// Returns the map that names these amounts.
fn map(amounts: &Amounts) -> CostMap<'static> {
    let named = UNITS.iter().zip(amounts);
    named
        .filter_map(|((unit, ..), amount)| Some((*unit, (*amount)?)))
        .collect()
}

/// Returns what a request with these amounts asks for.
fn asked([requests, tokens, bytes]: Amounts) -> [u64; 3] {
    [
        requests.unwrap_or(1),
        tokens.unwrap_or(0),
        bytes.unwrap_or(0),
    ]
}

impl<S: Store + 'static> World<'_, S> {
    fn now_us(&self) -> u64 {
        now_us(&self.pair.clock)
    }

    /// Charges all units if each of them fits.
    fn take(&mut self, amounts: [u64; 3]) -> bool {
        let now_us = self.now_us();
        let fits = amounts.iter().enumerate().all(|(unit, amount)| {
            let used = self.model[unit].used(unit, now_us);
            *amount == 0 || used + amount <= UNITS[unit].1
        });
        if fits {
            for (charges, amount) in self.model.iter_mut().zip(amounts) {
                *charges.0.entry(now_us).or_default() += amount;
            }
        }
        fits
    }

    async fn act(&mut self, (nth, pause_ms, act): Step) {
        self.pair.clock.advance_micros(pause_ms * 1_000);
        let (limiter, now_us) = (self.pair.of(nth), self.now_us());
        let user = self.user.clone();
        let request = Request::new().user(&user);
        match act {
            Act::Check(amounts) => {
                let cost = map(&amounts);
                let decision = limiter.check(&request.cost(&cost)).await.unwrap();
                assert_eq!(decision.is_allowed(), self.take(asked(amounts)));
            }
            Act::Report(amounts) => {
                let cost = map(&amounts);
                limiter.report(&request.cost(&cost)).await.unwrap();
                for (unit, amount) in asked(amounts).into_iter().enumerate() {
                    self.model[unit].force(unit, now_us, amount);
                }
            }
            Act::Reserve(amounts) => {
                let cost = map(&amounts);
                let reserved = limiter.reserve(&request.cost(&cost), MINUTE).await;
                let reserved = reserved.unwrap();
                let estimate = asked(amounts);
                assert_eq!(reserved.is_allowed(), self.take(estimate));
                if let Some(id) = reserved.id() {
                    self.held.push(HeldReservation {
                        id: id.to_owned(),
                        at_us: now_us,
                        estimate,
                        is_settled: false,
                    });
                }
            }
            Act::Commit(which, amounts) if !self.held.is_empty() => {
                let which = which.index(self.held.len());
                let actual = map(&amounts);
                let settled = limiter.commit(&self.held[which].id, &actual).await.unwrap();
                self.settled(which, amounts, settled.state());
            }
            Act::Refund(which) if !self.held.is_empty() => {
                let which = which.index(self.held.len());
                let settled = limiter.refund(&self.held[which].id).await.unwrap();
                self.settled(which, [Some(0); 3], settled.state());
            }
            Act::Commit(..) | Act::Refund(_) => {}
        }
        let look = limiter.check(&request.cost(0)).await.unwrap();
        for (unit, band) in look.applied().enumerate() {
            let charged = self.model[unit].used(unit, now_us);
            let left = UNITS[unit].1.saturating_sub(charged);
            assert_eq!(band.remaining(), left, "{}", band.limit());
        }
    }

    fn settled(&mut self, which: usize, actual: Amounts, state: SettleState) {
        let now_us = self.now_us();
        let held = &mut self.held[which];
        let is_late = now_us > held.at_us + micros(MINUTE);
        match state {
            SettleState::Already => {
                assert!(held.is_settled, "no call has settled it");
                return;
            }
            SettleState::Expired => assert!(is_late),
            SettleState::Settled => assert!(!is_late && !held.is_settled),
            state => panic!("{state:?}"),
        }
        held.is_settled = true;
        for (unit, actual) in actual.into_iter().enumerate() {
            let estimate = held.estimate[unit];
            let actual = actual.unwrap_or(estimate);
            if let Some(unused) = estimate.checked_sub(actual) {
                if !is_late {
                    let charge = self.model[unit].0.get_mut(&held.at_us).unwrap();
                    *charge = charge.saturating_sub(unused);
                }
            } else {
                self.model[unit].force(unit, now_us, actual - estimate);
            }
        }
    }
}

async fn run<S: Store + 'static>(pair: &Pair<S>, user: String, schedule: Vec<Step>) {
    let (model, held) = (<[Charges; 3]>::default(), Vec::new());
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

fn run_over<S: Store + 'static>(runtime: &Runtime, cases: u32, pair: &Pair<S>) {
    let mut runner = TestRunner::new(Config::with_cases(cases));
    let users = AtomicU32::new(0);
    let ran = runner.run(&schedule(), |schedule| {
        let user = format!("user{}", users.fetch_add(1, Relaxed));
        let run = run(pair, user, schedule);
        let caught = std::panic::AssertUnwindSafe(|| runtime.block_on(run));
        std::panic::catch_unwind(caught).map_err(|panic| {
            let message = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(message.unwrap_or_default())
        })
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// Schedules of about 30 steps each in memory. `scripts/soak units` sets more of them.
fn schedules() -> u32 {
    soak_cases(500)
}

#[test]
fn in_memory_every_unit_agrees_with_the_model() {
    run_over(&runtime(), schedules(), &stores::in_memory(&limits()));
}

/// An eighth of them: each step is two calls.

#[test]
fn in_redis_every_unit_agrees_with_the_model() {
    let server = Server::start();
    let runtime = runtime();
    let settings = stores::standalone(&server);
    let limits = limits();
    let pair = stores::in_redis(&settings, KeyTag::Subject, &limits);
    let pair = runtime.block_on(pair);
    run_over(&runtime, schedules().div_ceil(8), &pair);
}
