//! For any value under a key, the script and the engine read the same state, or both report a
//! foreign value.

use crate::open_kit::{Dice, Engine, Open, add, built, layout};
use crate::open_traces::quotas;
use crate::world;
use tidegate_core::{Algorithm, Align, Bucket, Clock, Op, Quota, Store, StoreErrorKind};
use tidegate_testkit::redis::BlockingClient;

const SECOND: u64 = 1_000_000;

/// Texts in place of a number.
const ODD: [&str; 30] = [
    "0",
    "-0",
    "7",
    "14.5",
    "3.",
    ".5",
    "-2.25",
    "1e-05",
    "1e+300",
    "1E5",
    "0x10",
    "inf",
    "nan",
    "1700000000",
    "1700000000000",
    "1700000000000.7",
    "1700000000123456789",
    "1.7000000001e+18",
    "9007199254740993",
    "99999999999999999999",
    " 1",
    "1 ",
    "-",
    ":",
    "5:",
    "1699999990:5",
    "1700000001:2:3",
    "01700000000:02",
    "9007199254:1",
    "9007199255:1",
];

/// Returns a documented text, an odd one, or a random one.
fn text(dice: &mut Dice, usual: &str) -> String {
    match dice.roll(3) {
        0 => usual.to_owned(),
        1 => dice.pick(&ODD).to_owned(),
        _ => (0..dice.roll(20))
            .map(|_| char::from(dice.pick(b"0123456789.:-+e ")))
            .collect(),
    }
}

/// Writes a hash with fields of any kind.
fn write_tokens(
    client: &mut BlockingClient,
    key: &str,
    dice: &mut Dice,
    (name, usual): (&str, &str),
) {
    let (tokens, last) = (text(dice, "2.5"), text(dice, usual));
    let exact = text(dice, "1 1500000 0 0 5 -");
    let exact = format!("{tokens} {last} {exact}");
    let words = ["HSET", key, "tokens", &tokens, name, &last, "tg", &exact];
    client.command(&words).done();
}

#[test]
fn values_of_any_kind_are_read_alike() {
    let layout = layout("p/a", "a:{key}", &[]);
    let layout = add(layout, "p/b", "b:{key}:{band}", &[]);
    let layout = add(layout, "p/c", "c:{key}", &[]);
    let open = Open::new(add(layout, "p/d", "rate_limits", &[]));
    let (mut dice, mut client) = (Dice(5), open.server.client());
    let (logs, tokens): (Vec<Quota>, Vec<Quota>) = quotas()
        .into_iter()
        .map(|(_, quota)| quota)
        .partition(|quota| quota.algorithm() == Algorithm::SlidingLog);
    let spec = Quota::new(9, 60 * SECOND);
    let fixed = built(spec.algorithm(Algorithm::FixedWindow(Align::FirstRequest)));
    let mut read = 0;
    for i in 0..3_000 {
        open.advance(dice.roll(1_000));
        let (limit, quota) = match i % 4 {
            0 => ("a", dice.pick(&tokens)),
            1 => ("b", dice.pick(&tokens)),
            2 => ("c", dice.pick(&logs)),
            _ => ("d", fixed),
        };
        let bucket = format!("p/{limit}/user:{i}");
        let (key, _) = open.world.store.place(bucket.as_bytes(), &quota);
        let key = String::from_utf8(key).expect("text");
        match limit {
            "a" => {
                let last = ("lastRefill", "1700000000001");
                write_tokens(&mut client, &key, &mut dice, last);
            }
            "b" => {
                let last = ("last_refill_nanos", "1700000000000123000");
                write_tokens(&mut client, &key, &mut dice, last);
            }
            "c" => {
                for _ in 0..3 {
                    let member = text(&mut dice, "1700000000000001234");
                    // An invalid score is no member either.
                    client.command(&["ZADD", &key, &member, &member]);
                }
            }
            _ => {
                let (field, value) = (i.to_string(), text(&mut dice, "1700000000:3"));
                client.command(&["HSET", &key, &field, &value]).done();
            }
        }
        read += u64::from(is_read_alike(&open, &bucket, quota));
    }
    assert!(read > 500, "{read} could be read");
}

/// Takes one unit, and compares the stored state with the engine's result for the previous state.
fn is_read_alike(open: &Open, bucket: &str, quota: Quota) -> bool {
    let inspect = || world::runtime().block_on(open.world.store.inspect(bucket.as_bytes(), &quota));
    let Ok(before) = inspect() else {
        let error = open.try_take(bucket, &quota).expect_err(bucket);
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{bucket}: {error}");
        return false;
    };
    let now = open.world.clock.now();
    let mut engine = Engine {
        quota,
        bucket: before.map_or_else(|| Bucket::new(&quota), |it| it.bucket),
    };
    let outcome = open.try_take(bucket, &quota).expect(bucket);
    let expected = engine.decide(Op::Take(1), now);
    if let Algorithm::FixedWindow(_) = quota.algorithm() {
        // The window begins on a whole second.
        assert_eq!(outcome.is_allowed(), expected.passed, "{bucket}");
        return true;
    }
    assert_eq!(Some(&outcome), expected.outcomes.first(), "{bucket}");
    if expected.passed {
        let after = inspect().expect(bucket).map(|it| it.bucket);
        assert_eq!(after, engine.kept(now), "{bucket}");
    }
    true
}
