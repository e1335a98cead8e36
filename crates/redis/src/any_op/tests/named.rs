//! Regressions and edge cases, one by one.

use super::kit::{Bench, ask_of, new_key, request, take_each};
use super::reference::Reference;
use crate::any_op::{encode, inspection};
use crate::record;
use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use crate::script::ScriptClock;
use tidegate_core::{
    Algorithm, Align, Bucket, BucketState, LimitMode, Op, Quota, Receipt, StoreErrorKind,
    Timestamp, step,
};
use tidegate_redis_client::protocol::{self, Value};
use tidegate_testkit::redis::Server;

const NOW: u64 = 1_750_000_000_000_000;
const SECOND: u64 = 1_000_000;

fn bench() -> Bench {
    Bench::new(ScriptClock::Argument)
}

fn per_second(label: &str) -> Quota {
    Quota::new(10, SECOND).label(label).build().unwrap()
}

/// Returns one quota of each kind, all with the same label.
fn every_kind() -> Vec<Quota> {
    let of = |algorithm| Quota::new(10, SECOND).algorithm(algorithm);
    vec![
        Quota::new(10, SECOND).build().unwrap(),
        Quota::new(10, SECOND).refundable(true).build().unwrap(),
        of(Algorithm::FixedWindow(Align::FirstRequest))
            .build()
            .unwrap(),
        of(Algorithm::FixedWindow(Align::Clock)).build().unwrap(),
        of(Algorithm::SlidingWindow).build().unwrap(),
        of(Algorithm::SlidingLog).build().unwrap(),
        of(Algorithm::BucketedWindow).build().unwrap(),
    ]
}

/// Returns a read and a take of a bucket, which use different code in the script.
fn both_ways(key: &RedisKey, quota: &Quota) -> [SlotAsks; 2] {
    let mut look = request(key, quota, Op::Take(1));
    look.asks.push(ask_of(quota, Op::Look));
    [request(key, quota, Op::Take(1)), look]
}

#[test]
fn foreign_values_are_kept_and_fail_only_their_own_requests() {
    let mut bench = bench();
    let quota = per_second("a");
    let mut good = record::begin();
    let mut bucket = Bucket::new(&quota);
    step::decide_one(
        &quota,
        &mut bucket,
        Op::Take(1),
        Timestamp::from_micros(NOW),
    );
    record::push(&mut good, &bucket, &quota);
    let mut other_version = good.clone();
    other_version[0] = 2;
    let mut too_long = good.clone();
    too_long.push(0);
    let mut wrong_length = good.clone();
    wrong_length[14] = 13;
    wrong_length.pop();
    let bad = [
        b"".to_vec(),
        b"hello".to_vec(),
        b"1750000000".to_vec(),
        good[..good.len() - 1].to_vec(),
        good[..20].to_vec(),
        other_version,
        too_long,
        wrong_length,
        vec![1; 40],
    ];
    for value in bad {
        let (key, fine) = (new_key(), new_key());
        bench.set(&key, &value);
        for (bad, fine) in both_ways(&key, &quota)
            .iter()
            .zip(&both_ways(&fine, &quota))
        {
            let answers = bench.ask(&[fine, bad, fine], NOW);
            assert!(answers[0].is_ok() && answers[2].is_ok(), "{value:?}");
            let error = answers[1].as_ref().unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{value:?}");
            assert!(!error.is_transient());
        }
        assert_eq!(bench.get(&key), Some(value));
    }
}

#[test]
fn a_key_of_another_type_is_unchanged() {
    let mut bench = bench();
    let (list, fine) = (new_key(), new_key());
    let quota = per_second("a");
    protocol::cmd("RPUSH")
        .arg(list.as_slice())
        .arg("x")
        .exec(&mut bench.connection)
        .unwrap();
    for (bad, fine) in both_ways(&list, &quota)
        .iter()
        .zip(&both_ways(&fine, &quota))
    {
        let answers = bench.ask(&[bad, fine], NOW);
        assert_eq!(
            answers[0].as_ref().unwrap_err().kind(),
            StoreErrorKind::Corrupt
        );
        assert!(answers[1].as_ref().unwrap().reply.passed);
    }
    let kept: Vec<String> = protocol::cmd("LRANGE")
        .arg(list.as_slice())
        .arg(0)
        .arg(-1)
        .query(&mut bench.connection)
        .unwrap();
    assert_eq!(kept, ["x"]);
}

#[test]
fn a_request_with_one_broken_key_charges_none_of_its_keys() {
    let mut bench = bench();
    let (bad, fine) = (new_key(), new_key());
    let quota = per_second("a");
    bench.set(&bad, b"broken");
    for extra in [None, Some(Op::Look)] {
        let mut both = request(&fine, &quota, Op::Take(1));
        both.keys.push(bad.clone());
        both.asks.push(OwnedAsk {
            key: 1,
            ..ask_of(&quota, Op::Take(1))
        });
        both.asks.extend(extra.map(|op| ask_of(&quota, op)));
        assert!(bench.ask(&[&both], NOW)[0].is_err());
        assert_eq!(bench.get(&fine), None);
    }
}

#[test]
fn a_server_out_of_memory_writes_nothing_at_all() {
    let server = Server::start();
    let mut bench = Bench::on(&server, ScriptClock::Argument);
    let (old, new) = (new_key(), new_key());
    let quota = Quota::new(10, SECOND).refundable(true).build().unwrap();
    let plain = per_second("a");
    bench.ask(&[&request(&old, &quota, Op::Take(3))], NOW);
    let before = bench.get(&old);
    let limit = |bench: &mut Bench, bytes: u64| {
        protocol::cmd("CONFIG")
            .arg("SET")
            .arg("maxmemory")
            .arg(bytes)
            .exec(&mut bench.connection)
            .unwrap();
    };
    limit(&mut bench, 1);
    // The request empties one bucket, whose key is then deleted (always allowed), and fills
    // another.
    let forget = SlotAsks {
        asks: [OwnedAsk {
            op: RequestOp::Drop,
            ..ask_of(&quota, Op::Look)
        }]
        .into_iter()
        .collect(),
        ..request(&old, &quota, Op::Look)
    };
    let take = request(&new, &quota, Op::Take(1));
    for requests in [
        vec![&forget, &take],
        vec![&take],
        vec![&request(&new, &plain, Op::Take(1))],
    ] {
        let error = bench.try_ask(&requests, NOW).unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
        assert_eq!(bench.get(&old), before);
        assert_eq!(bench.get(&new), None);
    }
    // A refusal needs no memory.
    limit(&mut bench, 0);
    bench.ask(&[&request(&new, &plain, Op::Take(10))], NOW);
    limit(&mut bench, 1);
    let refused = &bench.ask(&[&request(&new, &plain, Op::Take(1))], NOW)[0];
    assert!(!refused.as_ref().unwrap().reply.passed);
}

#[test]
fn a_refusal_changes_neither_value_nor_expiry() {
    let mut bench = bench();
    for quota in every_kind() {
        let key = new_key();
        bench.ask(&[&request(&key, &quota, Op::Take(10))], NOW);
        let before = bench.get(&key);
        let ttl = |bench: &mut Bench| -> i64 {
            protocol::cmd("PEXPIRETIME")
                .arg(key.as_slice())
                .query(&mut bench.connection)
                .unwrap()
        };
        let expires = ttl(&mut bench);
        for request in both_ways(&key, &quota) {
            let answers = bench.ask(&[&request, &request], NOW + 5);
            assert!(answers.iter().all(|it| !it.as_ref().unwrap().reply.passed));
        }
        assert_eq!(bench.get(&key), before);
        assert_eq!(ttl(&mut bench), expires);
    }
}

#[test]
fn unused_bands_are_kept_while_they_matter() {
    let mut bench = bench();
    let (short, long) = (
        per_second("short"),
        Quota::new(1, 60 * SECOND).build().unwrap(),
    );
    let mut known: Vec<Quota> = every_kind();
    known.push(short);
    for quota in &known {
        let key = new_key();
        bench.ask(&[&take_each(&key, &[short, long])], NOW);
        // The short record has expired by now, the long one has not.
        let later = NOW + 2 * SECOND;
        bench.ask(&[&request(&key, quota, Op::Take(1))], later);
        let value = bench.get(&key).unwrap();
        let ids: Vec<u64> = record::records(&value).map(|it| it.unwrap().id).collect();
        let wanted = [quota, &long].map(crate::script::record_id);
        assert_eq!(ids.len(), 2, "{quota:?}");
        assert!(wanted.iter().all(|id| ids.contains(id)));
    }
}

#[test]
fn a_key_is_removed_when_all_its_bands_are_full() {
    let mut bench = bench();
    for quota in every_kind() {
        let key = new_key();
        bench.ask(&[&request(&key, &quota, Op::Take(1))], NOW);
        assert!(bench.get(&key).is_some());
        let receipt = Receipt::by_the_clock(Timestamp::from_micros(NOW), 1);
        bench.ask(&[&request(&key, &quota, Op::GiveBack(receipt))], NOW);
        assert_eq!(bench.get(&key), None, "{quota:?}");
    }
}

#[test]
fn a_reset_removes_one_band_and_reports_if_it_existed() {
    let mut bench = bench();
    let (a, b) = (per_second("a"), per_second("b"));
    let key = new_key();
    bench.ask(&[&take_each(&key, &[a, b])], NOW);
    let forget = SlotAsks {
        asks: [OwnedAsk {
            op: RequestOp::Drop,
            ..ask_of(&a, Op::Look)
        }]
        .into_iter()
        .collect(),
        ..request(&key, &a, Op::Look)
    };
    for was_there in [true, false] {
        let call = encode(&[&forget]);
        let command = bench.command(&call, NOW);
        let reply: Value = command.query(&mut bench.connection).unwrap();
        assert_eq!(inspection(&call, &reply).unwrap().is_some(), was_there);
    }
    let look = encode(&[&request(&key, &b, Op::Look)]);
    let command = bench.command(&look, NOW + 1);
    let reply: Value = command.query(&mut bench.connection).unwrap();
    let kept = inspection(&look, &reply).unwrap().unwrap();
    assert_eq!(kept.at, Timestamp::from_micros(NOW + 1));
    assert_eq!(kept.bucket.reading(&b, kept.at).remaining, 9);
}

#[test]
fn a_key_expires_on_the_servers_clock_when_its_bucket_is_full() {
    let mut bench = Bench::new(ScriptClock::Server);
    for quota in every_kind() {
        for quota in [
            quota,
            Quota::new(1_000_000, SECOND).burst(5).build().unwrap(),
        ] {
            let key = new_key();
            let asked = request(&key, &quota, Op::Take(1));
            let call = encode(&[&asked]);
            let mut pipeline = protocol::pipe();
            pipeline
                .atomic()
                .add_command(bench.command(&call, 0))
                .cmd("PEXPIRETIME")
                .arg(key.as_slice());
            let (reply, expires): (Value, u64) = pipeline.query(&mut bench.connection).unwrap();
            let Value::Array(parts) = &reply else {
                panic!("{reply:?}");
            };
            let Value::Int(now) = parts[0] else {
                panic!("{reply:?}");
            };
            let now = u64::try_from(now).unwrap();
            let mut bucket = Bucket::new(&quota);
            let at = Timestamp::from_micros(now);
            step::decide_one(&quota, &mut bucket, Op::Take(1), at);
            let fresh = bucket.fresh_at(&quota).as_micros();
            assert_eq!(expires, (fresh / 1_000).max(now / 1_000 + 1), "{quota:?}");
        }
    }
}

#[test]
fn a_clamped_state_is_stored() {
    let mut bench = bench();
    for quota in every_kind() {
        let key = new_key();
        let take = request(&key, &quota, Op::Take(10));
        assert!(bench.ask(&[&take], NOW).remove(0).unwrap().reply.passed);
        // The clock goes back by an hour: the bucket refuses for at most the time of a full debt.
        let back = NOW - 3_600 * SECOND;
        let refused = bench.ask(&[&take], back).remove(0).unwrap().reply;
        assert!(!refused.passed);
        let wait = refused.outcomes[0].wait.as_micros().unwrap();
        assert!(wait <= 2 * SECOND, "{quota:?}: {wait}");
        let early = bench.ask(&[&take], back + wait - 1).remove(0).unwrap();
        assert!(!early.reply.passed, "{quota:?}");
        let then = bench.ask(&[&take], back + wait).remove(0).unwrap();
        assert!(then.reply.passed, "{quota:?}");
    }
}

#[test]
fn a_policy_may_change_between_two_requests_of_a_call() {
    let mut bench = bench();
    let key = new_key();
    let [old, new] = [5, 3].map(|amount| {
        Quota::new(amount, SECOND)
            .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
            .build()
            .unwrap()
    });
    let take = |quota| request(&key, quota, Op::Take(1));
    let (before, after) = (take(&old), take(&new));
    let answers = bench.ask(&[&before, &before, &after, &after, &before], NOW);
    let passed: Vec<bool> = answers
        .iter()
        .map(|it| it.as_ref().unwrap().reply.passed)
        .collect();
    assert_eq!(passed, [true, true, true, false, true]);
}

#[test]
fn many_requests_on_one_key_are_one_run() {
    let mut bench = bench();
    for quota in every_kind() {
        let key = new_key();
        let take = request(&key, &quota, Op::Take(3));
        let many = vec![&take; 1_000];
        let call = encode(&many);
        assert!(call.program.len() < 200, "{}", call.program.len());
        let answers = bench.ask(&many, NOW);
        let passed =
            |it: &Result<crate::any_op::ReplayedRequest, _>| it.as_ref().unwrap().reply.passed;
        let count = answers.iter().take_while(|it| passed(it)).count();
        assert_eq!(count, 3, "{quota:?}");
        assert!(answers.iter().skip(3).all(|it| !passed(it)));
    }
}

#[test]
fn the_previous_state_is_returned_on_request() {
    let mut bench = bench();
    let (a, b) = (per_second("a"), per_second("b"));
    let key = new_key();
    let take = take_each(&key, &[a, b]);
    let requests = [&take, &take];
    let call = encode(&requests);
    let command = bench.command(&call, NOW);
    let reply: Value = command.query(&mut bench.connection).unwrap();
    let answers = crate::any_op::answer(&requests, &call, &reply, |nth| nth == 1).unwrap();
    assert!(answers[0].as_ref().unwrap().before.is_none());
    let second = answers[1].as_ref().unwrap();
    let before = second.before.as_ref().unwrap();
    assert_eq!(
        before.iter().map(|it| it.remaining).collect::<Vec<_>>(),
        [9, 9]
    );
    assert!(
        before
            .iter()
            .all(|it| it.is_allowed() && it.reset_us == 100_000)
    );
    assert_eq!(second.reply.outcomes[1].remaining, 8);
}

#[test]
fn a_reply_of_another_form_is_an_error_and_no_panic() {
    let key = new_key();
    let quota = per_second("a");
    let take = request(&key, &quota, Op::Take(1));
    let call = encode(&[&take]);
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    for reply in [
        Value::Nil,
        Value::Int(1),
        Value::Array(vec![]),
        Value::Array(vec![Value::Int(1), text("1")]),
        Value::Array(vec![Value::Int(-1), text("1"), Value::Nil]),
        Value::Array(vec![Value::Int(1), Value::Int(1), Value::Nil]),
    ] {
        assert!(crate::any_op::answer(&[&take], &call, &reply, |_| false).is_err());
    }
    // The form is correct, but the script decided differently from the engine.
    for marks in ["0", "x", ""] {
        let reply = Value::Array(vec![Value::Int(1), text(marks), Value::Nil]);
        let answers = crate::any_op::answer(&[&take], &call, &reply, |_| false).unwrap();
        assert!(
            answers[0]
                .as_ref()
                .is_err_and(|error| !error.is_transient())
        );
    }
}

#[test]
fn shadows_are_charged_with_their_limit_or_not_at_all() {
    let mut bench = bench();
    let (a, b, c) = (per_second("a"), per_second("b"), per_second("c"));
    let key = new_key();
    let mut shadowed = take_each(&key, &[a, b, c]);
    for ask in shadowed.asks.iter_mut().skip(1) {
        ask.mode = LimitMode::Shadow;
        ask.limit = 7;
    }
    bench.ask(&[&request(&key, &c, Op::Take(10))], NOW);
    let answer = bench.ask(&[&shadowed], NOW).remove(0).unwrap().reply;
    assert!(answer.passed);
    let remaining: Vec<u64> = answer.outcomes.iter().map(|it| it.remaining).collect();
    assert_eq!(remaining, [9, 10, 0]);
}

#[test]
fn a_lending_bucket_that_a_smaller_rate_empties_forgets_its_lows() {
    // 18 ticks ahead is as far as the second quota goes. A fraction of a tick that it cannot have left
    // rounds the state up to 19: the script emptied the bucket, but kept the lows.
    let of = |amount, burst| {
        let quota = Quota::new(amount, 1_000).burst(burst).overdraft(8);
        quota.build().unwrap().with_lending(true)
    };
    let (large, small) = (of(997, 21), of(889, 8));
    let mut bench = bench();
    let mut reference = Reference::default();
    let key = new_key();
    for (at, quota, cost) in [
        (7, &small, 1),
        (0, &large, 4),
        (0, &large, 4),
        (0, &large, 2),
        (0, &large, 2),
        (0, &small, 1),
        (1, &large, 4),
        (1, &large, 4),
        (1, &large, 3),
        (1, &small, 1),
    ] {
        let request = request(&key, quota, Op::Take(cost));
        let expected = reference.decide(&request, Timestamp::from_micros(NOW + at));
        let answer = bench.ask(&[&request], NOW + at).remove(0).unwrap();
        assert_eq!(&answer.reply.outcomes[..], &expected.outcomes[..]);
        assert_eq!(bench.get(&key).as_ref(), reference.value(&key));
    }
}
