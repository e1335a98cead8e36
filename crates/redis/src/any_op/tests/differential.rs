//! Random traces: the script's answers and stored bytes equal the engine's.

use super::kit::{Bench, new_key};
use super::reference::Reference;
use super::world::{ALL, Act, AskSpec, CallSpec, Cost, Pause, RequestSpec, USUAL, WINDOWS};
use super::world::{band, block, blocking_trace, lending_band, lending_trace};
use super::world::{start_us, trace, usual_trace};
use crate::any_op::{answer, encode};
use crate::record;
use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use crate::script::ScriptClock;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use tidegate_core::{
    Algorithm, BucketState, LimitMode, Op, Outcome, Quota, Receipt, Reply, Timestamp,
};
use tidegate_redis_client::protocol::{self, Value};

/// A trace that is generated while it is walked: later requests depend on earlier answers.
struct Walk {
    bands: Vec<[Quota; 2]>,
    keys: Vec<RedisKey>,
    now_us: u64,
    last: Option<(Quota, Outcome)>,
    taken: Vec<Receipt>,
    reference: Reference,
    /// Calls that used the cheap program.
    plain: usize,
}

/// One call: its instant, its asks and the expected result.
struct ExpectedCall {
    now_us: u64,
    requests: Vec<SlotAsks>,
    replies: Vec<Reply>,
    values: Vec<Option<Vec<u8>>>,
}

impl Walk {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_us)
    }

    fn pause(&mut self, pause: Pause) {
        let (quota, outcome) = match &self.last {
            Some((quota, outcome)) => (quota, Some(outcome)),
            None => (&self.bands[0][0], None),
        };
        let scale = |us: u64, parts: u64| u64::try_from(u128::from(us) * u128::from(parts) / 256);
        let period = quota.period_us().min(1 << 47);
        let wait_us = outcome
            .and_then(|it| it.wait.as_micros())
            .unwrap_or(0)
            .min(1 << 48);
        let reset_us = outcome.map_or(0, |it| it.reset_us).min(1 << 48);
        let ahead = match pause {
            Pause::None | Pause::BackMicros(_) | Pause::BackPeriod(_) => 0,
            Pause::Micros(n) => n,
            Pause::Period(n) => scale(period, n).expect("small"),
            Pause::Unit(n) => scale(period / quota.amount().max(1), n).expect("a valid quota"),
            Pause::Wait(less) => wait_us.saturating_sub(less),
            Pause::Reset(less) => reset_us.saturating_sub(less),
        };
        let back = match pause {
            Pause::BackMicros(n) => n,
            Pause::BackPeriod(n) => scale(period, n).expect("small"),
            _ => 0,
        };
        self.now_us = (self.now_us + ahead).saturating_sub(back).min(END_US);
    }

    fn cost(&self, cost: Cost, key: &RedisKey, quota: &Quota) -> u64 {
        match cost {
            Cost::Exactly(units) => units,
            Cost::Remaining(more) => {
                let bucket = self.reference.bucket(key, quota, self.now());
                bucket
                    .reading(quota, self.now())
                    .remaining
                    .saturating_add(more)
            }
            Cost::Capacity(more) => quota.capacity().saturating_add(more),
        }
    }

    fn op(&mut self, spec: &AskSpec, quota: &Quota) -> RequestOp {
        let key = &self.keys[spec.key % self.keys.len()];
        RequestOp::Engine(match spec.act {
            Act::Look => Op::Look,
            Act::Take(cost) => Op::Take(self.cost(cost, key, quota)),
            Act::Force(cost) => Op::Force(self.cost(cost, key, quota)),
            Act::Debit(cost) => Op::Debit(self.cost(cost, key, quota)),
            Act::Test(cost) => Op::Test(self.cost(cost, key, quota)),
            Act::Block => Op::Block,
            Act::GiveBack(pick) => match self.taken.len() {
                0 => Op::Look,
                len => Op::GiveBack(self.taken[pick % len]),
            },
            Act::Return(pick, part, by) => match self.taken.len() {
                0 => Op::Look,
                len => {
                    let receipt = self.taken[pick % len];
                    let cost = u128::from(receipt.cost) * u128::from(part) / 256;
                    let cost = u64::try_from(cost).expect("a part of a cost");
                    let by = self.now_us.saturating_add_signed(by);
                    Op::Return {
                        receipt: receipt.with_cost(cost),
                        by: Timestamp::from_micros(by),
                    }
                }
            },
            Act::Latest(cost) => Op::GiveBack(Receipt::latest(self.cost(cost, key, quota))),
            Act::Invent(ago, mut receipt) => {
                receipt.at = Timestamp::from_micros(self.now_us.saturating_sub(ago));
                receipt.until = receipt.at.plus(receipt.until.as_micros());
                Op::GiveBack(receipt)
            }
            Act::Drop => return RequestOp::Drop,
        })
    }

    fn request(&mut self, spec: &RequestSpec) -> SlotAsks {
        let mut request = SlotAsks::default();
        let dates = self.now_us / 7 + self.taken.len() as u64;
        for ask in &spec.asks {
            let quota = self.bands[ask.band % self.bands.len()][spec.version];
            let quota = dated(&quota, self.now_us, dates);
            let op = self.op(ask, &quota);
            if op == RequestOp::Drop && !request.asks.is_empty() {
                continue;
            }
            let key = self.keys[ask.key % self.keys.len()].clone();
            let place = request.keys.iter().position(|known| *known == key);
            if place.is_none() {
                request.keys.push(key);
            }
            let place = place.unwrap_or(request.keys.len() - 1);
            let is_it = |it: &OwnedAsk| usize::from(it.key) == place && it.quota.id() == quota.id();
            if spec.distinct && request.asks.iter().any(is_it) {
                continue;
            }
            request.asks.push(OwnedAsk {
                key: u8::try_from(place).expect("a small count"),
                quota,
                op,
                limit: ask.limit,
                mode: if ask.shadow {
                    LimitMode::Shadow
                } else {
                    LimitMode::Enforce
                },
            });
            if op == RequestOp::Drop {
                break;
            }
        }
        request
    }

    fn call(&mut self, (pause, requests): &CallSpec) -> ExpectedCall {
        self.pause(*pause);
        let mut expected = ExpectedCall {
            now_us: self.now_us,
            requests: Vec::new(),
            replies: Vec::new(),
            values: Vec::new(),
        };
        for spec in requests {
            let request = self.request(spec);
            for _ in 0..spec.times {
                let reply = self.reference.decide(&request, self.now());
                self.remember(&request, &reply);
                expected.replies.push(reply);
                expected.requests.push(request.clone());
            }
        }
        let values = self
            .keys
            .iter()
            .map(|key| self.reference.value(key).cloned());
        expected.values = values.collect();
        expected
    }

    fn remember(&mut self, request: &SlotAsks, reply: &Reply) {
        for (ask, outcome) in request.asks.iter().zip(reply.outcomes.iter()) {
            self.last = Some((ask.quota, *outcome));
            if let RequestOp::Engine(Op::Take(cost) | Op::Force(cost) | Op::Debit(cost)) = ask.op
                && cost > 0
                && (reply.passed || ask.op.is_forced())
            {
                // Receipts of refused asks are included: made-up receipts must not differ either.
                self.taken.push(outcome.receipt(reply.at, cost));
            }
        }
    }
}

/// Gives a quota that follows a calendar starts around an instant: multiples of its period, moved by up to a third;
/// seldom such that the instant is outside.
fn dated(quota: &Quota, now_us: u64, dates: u64) -> Quota {
    let period = quota.period_us();
    if quota.algorithm() != Algorithm::CalendarWindow
        || quota.calendar().is_none()
        || period > 1 << 46
    {
        return *quota;
    }
    let late = period / 9 * (dates % 4);
    let now_us = if dates.is_multiple_of(11) {
        now_us / 2
    } else {
        now_us
    };
    let start = now_us.saturating_sub(late) / period * period + late;
    let start = if start > now_us { 0 } else { start };
    quota.with_starts([
        start.saturating_sub(period),
        start,
        start + period,
        start + 2 * period,
    ])
}

/// No trace goes beyond 2^52, so that twice as much is still exact.
const END_US: u64 = 1 << 52;

fn check(bench: &mut Bench, walk: &mut Walk, trace: &[CallSpec]) -> Result<(), TestCaseError> {
    let expected: Vec<ExpectedCall> = trace.iter().map(|call| walk.call(call)).collect();
    let mut pipeline = protocol::pipe();
    let mut calls = Vec::new();
    for it in &expected {
        let requests: Vec<&SlotAsks> = it.requests.iter().collect();
        let call = encode(&requests);
        walk.plain += usize::from(call.program.starts_with(&[0, 0]));
        pipeline.add_command(bench.command(&call, it.now_us));
        for key in &walk.keys {
            pipeline.cmd("GET").arg(key.as_slice());
        }
        calls.push((requests, call));
    }
    let replies = bench.run(&pipeline);
    let each = replies.chunks(1 + walk.keys.len());
    for (nth, ((it, (requests, call)), reply)) in expected.iter().zip(&calls).zip(each).enumerate()
    {
        let answers = answer(requests, call, &reply[0], |_| false);
        prop_assert!(answers.is_ok(), "call {nth}: {:?}", reply[0]);
        for (n, (answer, reply)) in answers.unwrap().iter().zip(&it.replies).enumerate() {
            let Ok(answer) = answer else {
                return Err(TestCaseError::fail(format!(
                    "call {nth} at {}, request {n} {:?}: {answer:?}, expected {reply:?}",
                    it.now_us, requests[n]
                )));
            };
            prop_assert_eq!(answer.reply.passed, reply.passed);
            prop_assert_eq!(&answer.reply.outcomes[..], &reply.outcomes[..]);
            prop_assert_eq!(answer.reply.at, reply.at);
        }
        for (n, (value, expected)) in reply[1..].iter().zip(&it.values).enumerate() {
            let value = match value {
                Value::BulkString(bytes) => Some(bytes.clone()),
                _ => None,
            };
            // The order of records has no meaning, and may vary.
            prop_assert_eq!(
                sorted(value.as_ref()),
                sorted(expected.as_ref()),
                "call {}, key {}",
                nth,
                n
            );
        }
    }
    Ok(())
}

/// Returns the records of a value, sorted by id.
fn sorted(value: Option<&Vec<u8>>) -> Vec<Vec<u8>> {
    let Some(value) = value else {
        return Vec::new();
    };
    let mut rest = &value[1..];
    let mut all = Vec::new();
    for record in record::records(value) {
        let record = record.expect("a valid record");
        let (bytes, after) = rest.split_at(record.len());
        all.push((record.id, bytes.to_vec()));
        rest = after;
    }
    all.sort();
    all.into_iter().map(|(_, bytes)| bytes).collect()
}

/// A bucket that takes longer than this to refill (142 years) cannot be counted exactly: its state
/// is an instant beyond 2^53 µs.
const LIFETIME_US_MAX: u64 = 1 << 52;

/// Checks this many traces; returns the number of calls to the cheap program.
fn run(
    cases: u32,
    (algorithms, lifetime_us_max): (&'static [Algorithm], u64),
    trace: impl Strategy<Value = Vec<CallSpec>>,
) -> usize {
    let bands = (
        band("a", algorithms, lifetime_us_max),
        band("b", algorithms, lifetime_us_max),
        band("c", algorithms, lifetime_us_max),
    );
    let bands = (bands, 1..=3_usize).prop_map(|((a, b, c), bands)| {
        let all = [a, b, c].into_iter();
        all.take(bands).collect::<Vec<_>>()
    });
    run_over(cases, bands, trace)
}

/// Runs [`run`] over these bands.
fn run_over(
    cases: u32,
    bands: impl Strategy<Value = Vec<[Quota; 2]>>,
    trace: impl Strategy<Value = Vec<CallSpec>>,
) -> usize {
    let mut bench = Bench::new(ScriptClock::Argument);
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let bench = RefCell::new(&mut bench);
    let plain = RefCell::new(0);
    let strategy = (bands, 1..=3_usize, start_us(), trace);
    let outcome = runner.run(&strategy, |(bands, keys, start, trace)| {
        let mut walk = Walk {
            bands,
            keys: (0..keys).map(|_| new_key()).collect(),
            now_us: start,
            last: None,
            taken: Vec::new(),
            reference: Reference::default(),
            plain: 0,
        };
        check(&mut bench.borrow_mut(), &mut walk, &trace)?;
        *plain.borrow_mut() += walk.plain;
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    plain.into_inner()
}

#[test]
fn random_traces_get_equal_replies_and_states() {
    run(2_500, (&ALL, LIFETIME_US_MAX), trace(12, 5));
}

#[test]
fn single_requests_get_equal_replies_and_states() {
    run(1_500, (&ALL, LIFETIME_US_MAX), trace(30, 1));
}

#[test]
fn common_requests_get_equal_replies_and_states() {
    let plain = run(2_500, (&USUAL, LIFETIME_US_MAX), usual_trace(12));
    assert!(plain > 1_000, "only {plain} calls used the cheap program");
}

#[test]
fn lending_buckets_get_equal_replies_and_states() {
    let bands = lending_band().prop_map(|band| vec![band]);
    run_over(1_500, bands, lending_trace(60));
}

#[test]
fn blocking_limits_get_equal_replies_and_states() {
    let bands = (
        band("a", &ALL, LIFETIME_US_MAX),
        band("b", &USUAL, LIFETIME_US_MAX),
        block(),
    );
    let bands = bands.prop_map(|(a, b, block)| vec![a, b, block]);
    run_over(2_500, bands, blocking_trace(12));
}

#[test]
fn windows_of_any_length_are_counted_exactly() {
    run(1_500, (&WINDOWS, u64::MAX), trace(12, 3));
}
