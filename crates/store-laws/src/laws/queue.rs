//! The queue of a token bucket, in every store.

use super::StoreUnderTest;
use tidegate_core::{Ask, Op, Quota, Receipt};

/// Places are taken in order, and a request that leaves makes room for one more: law 10 for queues.
pub fn law_10_places_can_be_released(subject: &impl StoreUnderTest) {
    let quota = Quota::new(1, 1_000_000).queue(3).label("queue").build();
    let quota = quota.expect("a valid quota");
    let queueing = quota.queueing();
    let ask = |op| Ask {
        op,
        ..Ask::look(b"queue", &queueing)
    };
    let come = || {
        let reply = subject.decide(&[ask(Op::Take(1))]);
        let outcome = reply.outcomes.first().filter(|_| reply.passed)?;
        Some((quota.place(outcome).wait_us, reply.receipt(0, Op::Take(1))?))
    };
    let mut receipts: Vec<Receipt> = Vec::new();
    for expected_us in [0, 1_000_000, 2_000_000, 3_000_000] {
        let (wait_us, receipt) = come().expect("there is a place");
        assert_eq!(wait_us, expected_us);
        receipts.push(receipt);
    }
    assert!(come().is_none(), "all places are taken");
    let now = subject.decide_one(Ask::take(b"queue", &quota, 1));
    assert_eq!(now.wait.as_micros(), Some(4_000_000), "without a wait");

    subject.advance_micros(500_000);
    let [_, second, third, fourth] = receipts[..] else {
        panic!("four came");
    };
    // The last but one leaves, then the one before it, with the newer credit count; the last moves
    // up.
    let left = subject.decide_one(ask(Op::GiveBack(third)));
    assert_eq!(quota.sooner_us(left.mark), 1_000_000);
    let mut aware = second;
    aware.behind = left.mark;
    let left = subject.decide_one(ask(Op::GiveBack(aware)));
    assert_eq!(quota.sooner_us(left.mark), 1_000_000);
    assert_eq!(left.reset_us, 1_500_000, "of four, two are left");
    for expected_us in [1_500_000, 2_500_000] {
        assert_eq!(come().expect("places are free").0, expected_us);
    }
    assert!(come().is_none(), "no more than the turns that were left");

    // The turn of the last, which has moved up, comes at one second; then its charge is as any other.
    subject.advance_micros(fourth.until.since(fourth.at));
    let late = subject.decide_one(ask(Op::GiveBack(fourth)));
    assert_eq!(late.mark, 0, "the clock has paid it off");
}
