use super::{ACME, ANN, Local, TENANT, USER, ask, hits, limiter, of, policy, remaining};
use tidegate::{Decision, Descriptor, DescriptorHits, Request};
use tidegate_testkit::laws::block_on;

const POOL_A: &str = "name: a, match: { descriptor: [pool: a] }, rate: 2/h, combine: any";
const POOL_B: &str = "name: b, match: { descriptor: [pool: b] }, rate: 4/d, combine: any";
const A: Descriptor<'_> = of(&[("pool", "a")]);
const B: Descriptor<'_> = of(&[("pool", "b")]);

fn statuses(decision: &Decision) -> Vec<bool> {
    let all = 0..decision.descriptors();
    all.map(|nth| decision.descriptor_allowed(nth)).collect()
}

#[test]
fn a_limit_counts_though_another_refuses() {
    let (limiter, _) = limiter(&policy("each", &[USER, TENANT]));
    for expected in [true, true, false, false, false] {
        let decision = ask(&limiter, &[ANN, ACME]);
        assert_eq!(decision.is_allowed(), expected);
        assert_eq!(statuses(&decision), [true, expected]);
    }
    assert_eq!(remaining(&limiter, &[ANN, ACME]), [Some(0), Some(0)]);
    let refused = ask(&limiter, &[ANN, ACME]);
    assert_eq!(statuses(&refused), [false, false]);
}

#[test]
fn steps_are_ordered_even_on_one_bucket() {
    let (limiter, _) = limiter(&policy("each", &[USER]));
    let described = [
        hits(ANN, DescriptorHits::Take(4)),
        hits(ANN, DescriptorHits::Take(4)),
        ANN,
        hits(ANN, DescriptorHits::GiveBack(3)),
        hits(ANN, DescriptorHits::Take(3)),
    ];
    let decision = ask(&limiter, &described);
    assert!(!decision.is_allowed());
    assert_eq!(statuses(&decision), [true, false, true, true, true]);
    let left = (0..5).map(|nth| decision.descriptor(nth).map(|band| band.remaining()));
    let left: Vec<Option<u64>> = left.collect();
    assert_eq!(left, [Some(1), Some(1), Some(0), Some(3), Some(0)]);
}

#[test]
fn of_quotas_one_that_allows_is_enough() {
    let (limiter, _) = limiter(&policy("each", &[POOL_A, POOL_B, USER]));
    for nth in 0..6 {
        let decision = ask(&limiter, &[A, B, ANN]);
        assert_eq!(statuses(&decision), [nth < 2, nth < 4, nth < 5]);
        assert_eq!(decision.is_allowed(), nth < 4, "{nth}");
        if decision.is_allowed() {
            assert!(decision.binding().is_some_and(|band| band.is_allowed()));
        }
    }
    // Any other limit that refuses still refuses.
    let refused = ask(&limiter, &[of(&[("pool", "c")]), ANN]);
    assert_eq!(refused.limit(), Some("user"));
}

#[test]
fn of_quotas_that_all_refuse_the_one_is_reported_that_allows_first() {
    let (limiter, _) = limiter(&policy("each", &[POOL_A, POOL_B]));
    ask(
        &limiter,
        &[
            hits(A, DescriptorHits::Take(2)),
            hits(B, DescriptorHits::Take(4)),
        ],
    );
    let refused = ask(&limiter, &[B, A]);
    assert!(!refused.is_allowed());
    assert_eq!(
        refused.limit(),
        Some("a"),
        "it waits an hour, and the other a day"
    );
    // Next to a limit that must allow and waits longer, that wait is reported.
    let day = "name: day, match: { descriptor: [user] }, rate: 1/d";
    let (limiter, _) = super::limiter(&policy("each", &[POOL_A, day]));
    ask(&limiter, &[hits(A, DescriptorHits::Take(2)), ANN]);
    assert_eq!(ask(&limiter, &[A, ANN]).limit(), Some("day"));
}

#[test]
fn charges_of_an_allowed_call_are_refundable_and_no_more() {
    let limits = [
        "name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 5/h, refundable: true",
        "name: a, match: { descriptor: [pool: a] }, rate: 2/h, combine: any, refundable: true",
        "name: b, match: { descriptor: [pool: b] }, rate: 4/d, combine: any, refundable: true",
        "name: watched, match: { descriptor: [watch] }, rate: 1/h, mode: shadow, refundable: true",
    ];
    let (limiter, _) = limiter(&policy("each", &limits));
    let watched = of(&[("watch", "x")]);
    let all = [ANN, A, B, watched];
    ask(&limiter, &[hits(A, DescriptorHits::Take(2)), watched]);
    let allowed = ask(&limiter, &all);
    assert!(allowed.is_allowed());
    let left = |limiter: &Local| remaining(limiter, &[ANN, A, B]);
    assert_eq!(left(&limiter), [Some(4), Some(0), Some(3)]);
    assert_eq!(limiter.refund_decision_at_once(&allowed), Some(true));
    assert_eq!(
        left(&limiter),
        [Some(5), Some(0), Some(4)],
        "only what it took"
    );
    let looked = ask(&limiter, &[hits(watched, DescriptorHits::Take(0))]);
    let watched_left: Vec<u64> = looked.applied().map(|band| band.remaining()).collect();
    assert_eq!(watched_left, [0], "the shadow that refused was not charged");
}

#[test]
fn batched_and_single_calls_give_the_same_results() {
    let (limiter, _) = limiter(&policy("each", &[USER, TENANT]));
    let described = [ANN, ACME];
    let request = Request::new().descriptors(&described);
    assert!(
        limiter
            .check_now(&request)
            .is_ok_and(|decision| decision.is_allowed())
    );
    assert!(block_on(limiter.check(&request)).is_ok_and(|decision| decision.is_allowed()));
    assert!(block_on(limiter.check(&request)).is_ok_and(|decision| !decision.is_allowed()));
}
