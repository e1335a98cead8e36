//! Laws of requests over several buckets.

use tidegate_core::{Algorithm, Align, Ask, LimitMode, Op, Outcome, Quota, Receipt, Wait};

use super::{StoreUnderTest, every_kind};

/// The window of law 9, in microseconds.
const HOUR_US: u64 = 3_600_000_000;

fn remaining(subject: &impl StoreUnderTest, bucket: &[u8], quota: &Quota) -> u64 {
    subject.decide_one(Ask::look(bucket, quota)).remaining
}

/// Every kind of bucket in one request, and each of them as the one that refuses.
pub fn law_1_all_or_nothing(subject: &impl StoreUnderTest) {
    let kinds = every_kind();
    for (refusing, (name, quota)) in kinds.iter().enumerate() {
        let names: Vec<Vec<u8>> = (0..kinds.len())
            .map(|i| format!("all {refusing} {i}").into_bytes())
            .collect();
        let asks = |cost| -> Vec<Ask<'_>> {
            names
                .iter()
                .zip(&kinds)
                .map(|(bucket, (_, quota))| Ask::take(bucket, quota, cost))
                .collect()
        };
        assert!(subject.decide(&asks(1)).passed, "{name}: all have room");
        let used_up = names.get(refusing).expect("one name for each kind");
        assert!(
            subject
                .decide_one(Ask::take(used_up, quota, 2))
                .is_allowed()
        );

        let reply = subject.decide(&asks(1));
        assert!(!reply.passed, "{name} is used up");
        for (i, (outcome, bucket)) in reply.outcomes.iter().zip(&names).enumerate() {
            assert_eq!(outcome.is_allowed(), i != refusing, "{name}");
            assert_eq!(
                outcome.remaining,
                if i == refusing { 0 } else { 2 },
                "{name}"
            );
            let (_, quota) = kinds.get(i).expect("one kind for each name");
            assert_eq!(
                remaining(subject, bucket, quota),
                outcome.remaining,
                "{name}"
            );
        }
    }
}

/// A shadow never refuses, and is charged only with its whole limit.
pub fn law_8_shadows_are_silent(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = |which: &str| format!("shadow {name} {which}").into_bytes();
        let [plain, one, two] = ["plain", "one", "two"].map(bucket);
        let shadow = |bucket, limit, cost| Ask {
            mode: LimitMode::Shadow,
            limit,
            ..Ask::take(bucket, &quota, cost)
        };
        let left = |bucket: &[u8]| remaining(subject, bucket, &quota);

        // The second bucket of the shadow limit would refuse, so that the first is not charged.
        let asks = [
            Ask::take(&plain, &quota, 1),
            shadow(&one[..], 1, 1),
            shadow(&two[..], 1, 4),
        ];
        let reply = subject.decide(&asks);
        assert!(reply.passed, "{name}");
        let allowed: Vec<bool> = reply.outcomes.iter().map(Outcome::is_allowed).collect();
        assert_eq!(allowed, [true, true, false], "{name}");
        assert_eq!([left(&plain), left(&one), left(&two)], [2, 3, 3], "{name}");

        // Two limits: each is decided separately.
        let asks = [
            Ask::take(&plain, &quota, 1),
            shadow(&one[..], 1, 1),
            shadow(&two[..], 2, 4),
        ];
        assert!(subject.decide(&asks).passed, "{name}");
        assert_eq!([left(&plain), left(&one), left(&two)], [1, 2, 3], "{name}");

        // The request is refused: no shadow is charged.
        let asks = [Ask::take(&plain, &quota, 2), shadow(&one[..], 1, 1)];
        assert!(!subject.decide(&asks).passed, "{name}");
        assert_eq!([left(&plain), left(&one)], [1, 2], "{name}");

        // Alone, a shadow always passes.
        let reply = subject.decide(&[shadow(&one[..], 1, 3)]);
        assert!(
            reply.passed && !reply.outcomes.iter().any(Outcome::is_allowed),
            "{name}"
        );
        let forced = Ask {
            op: Op::Force(1),
            ..shadow(&one[..], 1, 0)
        };
        assert!(subject.decide(&[shadow(&one[..], 1, 2)]).passed, "{name}");
        assert!(subject.decide(&[forced]).passed, "{name}");
        assert_eq!(left(&one), 0, "{name}");
    }
}

/// A forced charge is taken, down to the overdraft, unless a take of the same request refuses.
pub fn law_9_force_charges(subject: &impl StoreUnderTest) {
    let quota = Quota::new(1, 1_000_000)
        .burst(3)
        .overdraft(2)
        .build()
        .expect("a valid quota");
    let force = |bucket, cost| Ask {
        op: Op::Force(cost),
        ..Ask::look(bucket, &quota)
    };
    let first = subject.decide_one(force(b"forced", 4));
    assert!(first.is_allowed(), "something was left");
    assert_eq!((first.remaining, first.reset_us), (0, 4_000_000));
    let second = subject.decide_one(force(b"forced", 9));
    assert!(!second.is_allowed(), "nothing was left");
    assert_eq!(
        second.reset_us, 5_000_000,
        "charged all the same, to the overdraft"
    );
    assert_eq!(
        second.wait,
        Wait::from_micros(3_000_000),
        "until one is there again"
    );

    // With a take that is refused, it is not charged.
    let asks = [force(b"beside", 1), Ask::take(b"forced", &quota, 1)];
    assert!(!subject.decide(&asks).passed);
    assert_eq!(remaining(subject, b"beside", &quota), 3);
    // With a take that has room, it refuses the request, and is charged.
    let asks = [force(b"forced", 1), Ask::take(b"beside", &quota, 1)];
    subject.advance_micros(1_000_000);
    assert!(!subject.decide(&asks).passed);
    assert_eq!(remaining(subject, b"beside", &quota), 3);
    let again = subject.decide_one(Ask::take(b"forced", &quota, 1));
    assert_eq!(again.wait, Wait::from_micros(3_000_000));
}

/// A debit that does not fit is refused and charged, down to the overdraft, with any other debits.
/// A take or test of the same request that refuses prevents the charge.
pub fn law_9_debits_are_charged_though_refused(subject: &impl StoreUnderTest) {
    let quota = Quota::new(1_000, HOUR_US)
        .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
        .overdraft(500)
        .build()
        .expect("a valid quota");
    a_debit_alone_is_charged_to_the_overdraft(subject, &quota);
    debits_are_charged_unless_a_take_refuses(subject, &quota);
}

fn a_debit_alone_is_charged_to_the_overdraft(subject: &impl StoreUnderTest, quota: &Quota) {
    let ask = |op| Ask {
        op,
        ..Ask::look(b"debit", quota)
    };
    let debit = |cost| ask(Op::Debit(cost));
    let first = subject.decide_one(debit(600));
    assert_eq!((first.is_allowed(), first.remaining), (true, 400));
    let second = subject.decide_one(debit(600));
    assert_eq!((second.is_allowed(), second.remaining), (false, 0));
    assert_eq!(second.wait, Wait::from_micros(HOUR_US), "the window's end");
    for op in [Op::Debit(0), Op::Test(1), Op::Take(1)] {
        assert!(!subject.decide_one(ask(op)).is_allowed(), "{op:?}");
    }
    // 1,200 were used; the refund is limited to the units that were charged.
    let back = |cost| ask(Op::GiveBack(Receipt::latest(cost)));
    assert_eq!(subject.decide_one(back(250)).remaining, 50);
    // Never below the overdraft.
    let never = subject.decide_one(debit(9_000));
    assert!(never.wait.is_never(), "no wait helps");
    assert_eq!(subject.decide_one(back(501)).remaining, 1);
}

fn debits_are_charged_unless_a_take_refuses(subject: &impl StoreUnderTest, quota: &Quota) {
    let ask = |bucket, op| Ask {
        op,
        ..Ask::look(bucket, quota)
    };
    let debit = |bucket, cost| ask(bucket, Op::Debit(cost));
    let left = |bucket: &[u8]| remaining(subject, bucket, quota);
    // A request of several debits charges all of them, a debit of nothing included, which has none.
    for other in [debit(b"full", 700), debit(b"full", 0)] {
        subject.decide(&[debit(b"full", 1_200)]);
        let before = left(b"beside");
        assert!(!subject.decide(&[debit(b"beside", 100), other]).passed);
        assert_eq!(left(b"beside"), before - 100);
    }
    // A take or test that refuses keeps them from being charged.
    for op in [Op::Take(1), Op::Test(1)] {
        assert!(
            !subject
                .decide(&[debit(b"beside", 100), ask(b"full", op)])
                .passed
        );
        assert_eq!(left(b"beside"), 800, "{op:?}");
    }
    // Even a debit that does not fit. It reads as it does without the charge.
    let asks = [debit(b"beside", 900), ask(b"full", Op::Take(1))];
    let reply = subject.decide(&asks);
    assert_eq!(left(b"beside"), 800, "it was not charged");
    let [outcome, _] = reply.outcomes[..] else {
        panic!("one outcome for each ask");
    };
    assert_eq!((outcome.is_allowed(), outcome.remaining), (false, 800));
    // Only charged units are refunded: the overdraft leaves room for 1,300 of these 1,500.
    let half = debit(b"beside", 500);
    subject.decide(&[half, half, half, ask(b"full", Op::Take(1))]);
    assert!(left(b"beside") <= 800, "{} are left", left(b"beside"));
    subject.reset(b"beside", quota);
    subject.decide(&[debit(b"beside", 200)]);
    // A debit that fits passes like a take.
    let asks = [debit(b"beside", 800), ask(b"other", Op::Take(1))];
    assert!(subject.decide(&asks).passed);
    assert_eq!([left(b"beside"), left(b"other")], [0, 999]);
}

/// One outcome for each ask, in order, for any number of asks.
pub fn law_11_in_order(subject: &impl StoreUnderTest) {
    let kinds = every_kind();
    for len in [1, 2, 4, 5, 9, 33] {
        let names: Vec<Vec<u8>> = (0..len)
            .map(|i| format!("order {len} {i}").into_bytes())
            .collect();
        let asks: Vec<Ask<'_>> = names
            .iter()
            .zip(kinds.iter().cycle())
            .enumerate()
            .map(|(i, (bucket, (_, quota)))| {
                Ask::take(bucket, quota, u64::try_from(i % 4).unwrap_or(0))
            })
            .collect();
        let reply = subject.decide(&asks);
        assert!(reply.passed);
        let remaining: Vec<u64> = reply.outcomes.iter().map(|it| it.remaining).collect();
        let expected: Vec<u64> = (0..len).map(|i| 3 - i % 4).collect();
        assert_eq!(remaining, expected);
    }
    assert!(subject.decide(&[]).passed, "a request of nothing passes");
}

/// The reply has a receipt for each ask that was charged, with the units taken, and for no other.
pub fn law_11_the_reply_lists_the_charges(subject: &impl StoreUnderTest) {
    let charged = |asks: &[Ask<'_>]| -> Vec<u64> {
        let reply = subject.decide(asks);
        let units = |(nth, ask): (usize, &Ask<'_>)| {
            let receipt = reply.receipt(nth, ask.op);
            receipt.map_or(0, |receipt| receipt.cost)
        };
        asks.iter().enumerate().map(units).collect()
    };
    for (name, quota) in every_kind() {
        let [one, two] = ["one", "two"].map(|it| format!("charged {name} {it}").into_bytes());
        let ask = |bucket, op| Ask {
            op,
            ..Ask::look(bucket, &quota)
        };
        let shadow = |bucket, cost| Ask {
            mode: LimitMode::Shadow,
            limit: 1,
            ..Ask::take(bucket, &quota, cost)
        };
        let free = [Op::Look, Op::Test(1), Op::Take(0)].map(|op| ask(&two[..], op));
        let asks = [&[ask(&one[..], Op::Take(2))], &free[..]].concat();
        assert_eq!(charged(&asks), [2, 0, 0, 0], "{name}");
        let asks = [ask(&two[..], Op::Take(1)), ask(&one[..], Op::Take(2))];
        assert_eq!(charged(&asks), [0, 0], "{name}: one refuses");
        let asks = [ask(&two[..], Op::Take(1)), shadow(&one[..], 2)];
        assert_eq!(charged(&asks), [1, 0], "{name}: the shadow would refuse");
        let asks = [ask(&two[..], Op::Take(1)), shadow(&one[..], 1)];
        assert_eq!(charged(&asks), [1, 1], "{name}");
    }
    let spec = Quota::new(1, 1_000_000).burst(3).overdraft(2);
    let quota = spec.build().expect("a valid quota");
    for (cost, units) in [(4, 4), (9, 1), (1, 0)] {
        let force = Ask {
            op: Op::Force(cost),
            ..Ask::look(b"cut", &quota)
        };
        assert_eq!(charged(&[force]), [units], "down to the overdraft");
    }
}

/// A bucket asked for twice is charged twice, or not at all.
pub fn law_11_a_bucket_named_twice_is_charged_twice(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("twice {name}");
        let take = |cost| Ask::take(bucket.as_bytes(), &quota, cost);
        let reply = subject.decide(&[take(2), take(2)]);
        assert!(!reply.passed, "{name}");
        let allowed: Vec<bool> = reply.outcomes.iter().map(Outcome::is_allowed).collect();
        assert_eq!(allowed, [true, false], "{name}");
        assert_eq!(remaining(subject, bucket.as_bytes(), &quota), 3, "{name}");

        let reply = subject.decide(&[take(1), take(2)]);
        assert!(reply.passed, "{name}");
        for outcome in reply.outcomes.iter() {
            assert_eq!(
                outcome.remaining, 0,
                "{name}: both read the bucket as it is left"
            );
        }
    }
}
