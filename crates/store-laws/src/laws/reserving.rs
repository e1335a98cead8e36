//! Laws of the parts of a reservation: a test that takes nothing, a mark that only one can take,
//! and a return that waits for its turn.
//!
//! Buckets of one request are named as a limit's are, so that on a Cluster they share a slot.

use tidegate_core::{
    Algorithm, Align, Ask, Bucket, LimitMode, Op, Outcome, Quota, Receipt, Timestamp,
};

use super::{StoreUnderTest, every_kind};

const MINUTE_US: u64 = 60_000_000;

/// Returns the quota of a mark: only one can take it, for a minute.
fn mark() -> Quota {
    Quota::new(1, MINUTE_US)
        .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
        .label("mark")
        .build()
        .expect("a valid quota")
}

/// A bucket that was charged, with its mark.
struct ReservedBucket<'a, S> {
    subject: &'a S,
    bucket: Vec<u8>,
    mark: Vec<u8>,
    quota: Quota,
    receipt: Receipt,
}

impl<'a, S: StoreUnderTest> ReservedBucket<'a, S> {
    fn new(subject: &'a S, name: &str, quota: Quota, cost: u64) -> Self {
        let bucket = format!("law/{name}/x").into_bytes();
        let reply = subject.decide(&[Ask::take(&bucket, &quota, cost)]);
        assert!(reply.passed, "{name}");
        Self {
            subject,
            mark: format!("law/{name}~mark/x").into_bytes(),
            receipt: reply.receipt(0, Op::Take(cost)).expect("it was charged"),
            bucket,
            quota,
        }
    }

    fn returned(&self, cost: u64, by: Timestamp) -> Ask<'_> {
        let receipt = self.receipt.with_cost(cost);
        Ask {
            op: Op::Return { receipt, by },
            ..Ask::look(&self.bucket, &self.quota)
        }
    }

    fn kept(&self) -> Option<Bucket> {
        let inspection = self.subject.inspect(&self.bucket, &self.quota);
        inspection.map(|it| it.bucket)
    }

    fn remaining(&self) -> u64 {
        let look = Ask::look(&self.bucket, &self.quota);
        self.subject.decide_one(look).remaining
    }
}

fn long_after(at: Timestamp) -> Timestamp {
    at.plus(MINUTE_US)
}

/// A return with a mark happens once, for any number of attempts.
pub fn law_13_a_mark_is_taken_once(subject: &impl StoreUnderTest) {
    let mark = mark();
    for (name, quota) in every_kind() {
        let reserved = ReservedBucket::new(subject, &format!("once {name}"), quota, 3);
        let asks = [
            Ask::take(&reserved.mark, &mark, 1),
            reserved.returned(2, long_after(reserved.receipt.at)),
        ];
        let settled = subject.decide(&asks);
        assert!(settled.passed, "{name}");
        let remaining = settled.outcomes.last().map(|it| it.remaining);
        assert_eq!(remaining, Some(2), "{name}: a part, and at once all of it");
        let kept = reserved.kept();
        for _ in 0..3 {
            let again = subject.decide(&asks);
            assert!(!again.passed, "{name}: the mark is taken");
            let returned = again.outcomes.last().expect("one for each ask");
            assert!(returned.is_allowed(), "{name}");
            assert_eq!((returned.remaining, returned.mark), (2, 0), "{name}");
            assert_eq!(reserved.kept(), kept, "{name}: nothing has changed");
        }
        // The returned units can be taken, and no more than those.
        let take = |cost| Ask::take(&reserved.bucket, &quota, cost);
        assert!(!subject.decide_one(take(3)).is_allowed(), "{name}");
        assert!(subject.decide_one(take(2)).is_allowed(), "{name}");
    }
}

/// A return happens if nothing but forced charges refuses, and not after its time.
pub fn law_14_a_return_happens_in_time_if_nothing_refuses(subject: &impl StoreUnderTest) {
    let none = Quota::new(0, MINUTE_US).label("none").build();
    let none = none.expect("a valid quota");
    for (name, quota) in every_kind() {
        let reserved = ReservedBucket::new(subject, &format!("turn {name}"), quota, 3);
        let kept = reserved.kept();
        let by = reserved.receipt.at;
        let beside = |op, mode| Ask {
            op,
            mode,
            ..Ask::look(&reserved.mark, &none)
        };
        for refusing in [Op::Take(1), Op::Test(1)] {
            let asks = [
                reserved.returned(1, by),
                beside(refusing, LimitMode::Enforce),
            ];
            assert!(!subject.decide(&asks).passed, "{name} {refusing:?}");
            assert_eq!(reserved.kept(), kept, "{name} {refusing:?}");
        }
        // Neither a shadow nor a forced charge keeps it from coming back.
        for (op, mode, left) in [
            (Op::Take(1), LimitMode::Shadow, 1),
            (Op::Force(1), LimitMode::Enforce, 2),
        ] {
            let reply = subject.decide(&[reserved.returned(1, by), beside(op, mode)]);
            assert_eq!(reply.passed, mode == LimitMode::Shadow, "{name} {op:?}");
            assert_eq!(reserved.remaining(), left, "{name} {op:?}");
        }
        // At `by` it was in time; then it is not.
        subject.advance_micros(1);
        let before = reserved.kept();
        let late = subject.decide(&[reserved.returned(1, by)]);
        assert!(late.passed, "{name}: it is no refusal");
        assert_eq!(reserved.kept(), before, "{name}: too late");
        let in_time = subject.decide(&[reserved.returned(1, late.at)]);
        assert!(in_time.passed && reserved.remaining() == 3, "{name}");
    }
}

/// A test answers as a take would, and takes nothing.
pub fn law_15_a_test_takes_nothing(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("law/test {name}/x").into_bytes();
        let test = |cost| Ask {
            op: Op::Test(cost),
            ..Ask::look(&bucket, &quota)
        };
        let take = |cost| Ask::take(&bucket, &quota, cost);
        assert!(subject.decide_one(test(3)).is_allowed(), "{name}");
        assert!(subject.inspect(&bucket, &quota).is_none(), "{name}");
        assert!(subject.decide_one(take(2)).is_allowed(), "{name}");
        let kept = subject.inspect(&bucket, &quota).map(|it| it.bucket);
        for cost in [2, 3, 4] {
            let (tested, taken) = (test(cost), take(cost));
            let expected = subject.decide_one(taken);
            assert!(!expected.is_allowed(), "{name} {cost}");
            assert_eq!(subject.decide_one(tested), expected, "{name} {cost}");
        }
        for cost in [0, 1] {
            let outcome = subject.decide_one(test(cost));
            assert!(outcome.is_allowed() && outcome.remaining == 1, "{name}");
        }
        let unchanged = subject.inspect(&bucket, &quota).map(|it| it.bucket);
        assert_eq!(unchanged, kept, "{name}");

        // Next to takes it refuses as they do, and counts their cost first.
        let reply = subject.decide(&[take(1), test(1)]);
        let allowed: Vec<bool> = reply.outcomes.iter().map(Outcome::is_allowed).collect();
        assert_eq!(
            (reply.passed, &allowed[..]),
            (false, &[true, false][..]),
            "{name}"
        );
        assert!(subject.decide(&[test(1), take(1)]).passed, "{name}");
        assert!(
            !subject.decide_one(test(0)).is_allowed(),
            "{name}: 0 asks for one"
        );
        let shadow = Ask {
            mode: LimitMode::Shadow,
            ..test(1)
        };
        let silent = subject.decide(&[shadow]);
        assert!(silent.passed, "{name}");
        assert!(!silent.outcomes.iter().any(Outcome::is_allowed), "{name}");
    }
}

/// The unused part of an estimate is refunded seconds later if other clients kept the bucket in
/// debt, and not otherwise.
pub fn law_10_loans_are_refunded(subject: &impl StoreUnderTest) {
    let quota = Quota::new(100, 1_000_000).label("loans").build();
    let quota = quota.expect("a valid quota").with_lending(true);
    for (name, others, expected) in [("busy", 10, 40), ("idle", 1, 0)] {
        let reserved = ReservedBucket::new(subject, &format!("loan {name}"), quota, 50);
        for _ in 0..49 {
            subject.advance_micros(100_000);
            let take = Ask::take(&reserved.bucket, &quota, others);
            assert!(subject.decide_one(take).is_allowed(), "{name}");
        }
        let before = reserved.remaining();
        let mark = mark();
        let reply = subject.decide(&[
            Ask::take(&reserved.mark, &mark, 1),
            reserved.returned(40, long_after(reserved.receipt.at)),
        ]);
        assert!(reply.passed, "{name}");
        assert_eq!(reserved.remaining() - before, expected, "{name}");
    }
}

/// A receipt with units and no time refunds the units taken last, up to all that is owed.
pub fn law_10_the_last_units_are_refunded(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let bucket = format!("last {name}").into_bytes();
        let ask = |op| Ask {
            op,
            ..Ask::look(&bucket, &quota)
        };
        let back = |cost| ask(Op::GiveBack(Receipt::latest(cost)));
        assert_eq!(subject.decide_one(back(1)).remaining, 3, "{name}");
        assert!(subject.inspect(&bucket, &quota).is_none(), "{name}");
        // A millisecond between them, so that a log has two runs.
        assert!(subject.decide_one(ask(Op::Take(1))).is_allowed(), "{name}");
        subject.advance_micros(1_000);
        assert!(subject.decide_one(ask(Op::Take(2))).is_allowed(), "{name}");
        subject.advance_micros(1_000);
        assert_eq!(subject.decide_one(back(1)).remaining, 1, "{name}");
        let before = subject.decide_one(ask(Op::Look));
        let outcome = subject.decide_one(back(1));
        assert_eq!(outcome.remaining, 2, "{name}");
        assert!(outcome.reset_us <= before.reset_us, "{name}");
        assert_eq!(subject.decide_one(back(u64::MAX)).remaining, 3, "{name}");
        assert!(subject.inspect(&bucket, &quota).is_none(), "{name}: as new");
    }
}
