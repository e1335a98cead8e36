//! Laws about a single bucket.

use tidegate_core::{Ask, BucketState, Op, Quota, Receipt, Wait};

use super::{StoreUnderTest, every_kind};

/// A burst of 1 admits one request, and not the next: the minimum of a limiter.
pub fn law_2_burst_1_refuses(subject: &impl StoreUnderTest) {
    let quota = Quota::new(10, 1_000_000)
        .burst(1)
        .build()
        .expect("a valid quota");
    let take = || subject.decide_one(Ask::take(b"burst-1", &quota, 1));
    for _ in 0..3 {
        assert!(take().is_allowed());
        let refused = take();
        assert!(!refused.is_allowed());
        assert_eq!(refused.wait, Wait::from_micros(100_000));
        subject.advance_micros(99_999);
        assert_eq!(take().wait, Wait::from_micros(1));
        subject.advance_micros(1);
    }
}

/// Instants never run backwards, and follow the clock.
pub fn law_3_one_clock(subject: &impl StoreUnderTest) {
    let quota = Quota::new(10, 1_000_000).build().expect("a valid quota");
    let mut last = subject.decide(&[Ask::look(b"clock", &quota)]).at;
    for micros in [0, 1, 1_000, 60_000_000] {
        subject.advance_micros(micros);
        let now = subject.decide(&[Ask::look(b"clock", &quota)]).at;
        assert!(now >= last.plus(micros), "{now:?} after {last:?}");
        last = now;
    }
}

/// A bucket is stored from its first charge until the instant at which it is full again, and not
/// after that.
pub fn law_5_buckets_are_kept_while_they_matter(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("expiry {name}");
        let bucket = bucket.as_bytes();
        assert!(subject.inspect(bucket, &quota).is_none(), "{name}");
        subject.decide(&[Ask::look(bucket, &quota)]);
        subject.decide(&[Ask::take(bucket, &quota, 99)]);
        assert!(
            subject.inspect(bucket, &quota).is_none(),
            "{name}: looked at and refused"
        );

        let outcome = subject.decide_one(Ask::take(bucket, &quota, 2));
        let kept = subject.inspect(bucket, &quota).expect("it was charged");
        let fresh_at = kept.bucket.fresh_at(&quota);
        assert_eq!(fresh_at, kept.at.plus(outcome.reset_us), "{name}");

        subject.advance_micros(outcome.reset_us - 1);
        assert!(
            subject.inspect(bucket, &quota).is_some(),
            "{name}: a microsecond early"
        );
        assert!(
            !subject
                .decide_one(Ask::take(bucket, &quota, 3))
                .is_allowed(),
            "{name}"
        );
        subject.advance_micros(1);
        assert!(subject.inspect(bucket, &quota).is_none(), "{name}: full");
        assert!(
            subject
                .decide_one(Ask::take(bucket, &quota, 3))
                .is_allowed(),
            "{name}"
        );
    }
}

/// The wait is exact, and a cost that can never pass has the wait *never*.
pub fn law_6_honest_refusals(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("honest {name}");
        let take = |cost| subject.decide_one(Ask::take(bucket.as_bytes(), &quota, cost));
        assert_eq!(take(4).wait, Wait::NEVER, "{name}");
        assert!(take(2).is_allowed(), "{name}");
        subject.advance_micros(1_234);
        for cost in [2, 3] {
            let refused = take(cost);
            let Some(wait_us) = refused.wait.as_micros().filter(|_| !refused.is_allowed()) else {
                panic!("{name}: {cost} more do not fit yet: {refused:?}");
            };
            subject.advance_micros(wait_us - 1);
            assert_eq!(take(cost).wait, Wait::from_micros(1), "{name}");
            subject.advance_micros(1);
            assert!(take(cost).is_allowed(), "{name}");
        }
    }
}

/// Any number of refusals costs nothing.
pub fn law_7_free_refusals(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("free {name}");
        let ask = |cost| Ask::take(bucket.as_bytes(), &quota, cost);
        assert!(subject.decide_one(ask(3)).is_allowed(), "{name}");
        let before = subject.inspect(bucket.as_bytes(), &quota).expect("charged");
        let refused = subject.decide_one(ask(2));
        for _ in 0..20 {
            assert_eq!(subject.decide_one(ask(2)), refused, "{name}");
            assert!(!subject.decide_one(ask(9)).is_allowed(), "{name}");
        }
        let after = subject.inspect(bucket.as_bytes(), &quota).expect("charged");
        assert_eq!(before.bucket, after.bucket, "{name}");
    }
}

/// Refunded units can be taken again, once; units that were not taken cannot be refunded.
pub fn law_10_refunds_are_safe(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind()
        .into_iter()
        .filter(|(name, _)| *name != "large drain")
    {
        let bucket = format!("back {name}");
        let ask = |op| Ask {
            op,
            ..Ask::look(bucket.as_bytes(), &quota)
        };
        let reply = subject.decide(&[ask(Op::Take(2))]);
        assert!(reply.passed, "{name}");
        let back = Op::GiveBack(reply.receipt(0, Op::Take(2)).expect("it was charged"));
        let outcome = subject.decide_one(ask(back));
        assert!(outcome.is_allowed(), "{name}");
        assert_eq!(outcome.remaining, 3, "{name}: at once, it comes back whole");
        assert_eq!(
            subject.decide_one(ask(back)).remaining,
            3,
            "{name}: and no more than that"
        );
        assert!(subject.decide_one(ask(Op::Take(3))).is_allowed(), "{name}");
        assert!(!subject.decide_one(ask(Op::Take(1))).is_allowed(), "{name}");

        // Full since then: nothing is left to refund.
        subject.advance_micros(200_000_000);
        let reply = subject.decide(&[ask(Op::Take(3))]);
        assert!(reply.passed, "{name}");
        let long_ago = tidegate_core::Timestamp::from_micros(reply.at.as_micros() - 200_000_000);
        let stale = Receipt::by_the_clock(long_ago, 3);
        // Nor for a receipt with a larger credit count than the bucket's.
        let mut owed_since = stale;
        owed_since.until = reply.at.plus(200_000_000);
        for receipt in [stale, owed_since] {
            let back = Op::GiveBack(receipt);
            assert_eq!(subject.decide_one(ask(back)).remaining, 0, "{name}");
        }
    }
}

/// A reset forgets one bucket under one quota, and returns true if there was anything to forget.
pub fn a_reset_removes_a_bucket(subject: &impl StoreUnderTest) {
    let kinds = every_kind();
    for (_, quota) in &kinds {
        subject.decide_one(Ask::take(b"reset", quota, 3));
        subject.decide_one(Ask::take(b"other", quota, 3));
    }
    for (name, quota) in &kinds {
        assert!(subject.reset(b"reset", quota), "{name}");
        assert!(!subject.reset(b"reset", quota), "{name}: it was full");
        assert!(!subject.reset(b"never there", quota), "{name}");
        assert!(subject.inspect(b"reset", quota).is_none(), "{name}");
        assert_eq!(
            subject.decide_one(Ask::look(b"other", quota)).remaining,
            0,
            "{name}"
        );
        let outcome = subject.decide_one(Ask::take(b"reset", quota, 3));
        assert!(outcome.is_allowed(), "{name}");
    }
}
