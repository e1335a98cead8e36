use super::{ACME, ANN, BOB, TENANT, USER, ask, hits, limiter, policy, remaining};
use tidegate::{AskPurpose, Attempt, Decision, DescriptorHits, Request};
use tidegate_testkit::laws::block_on;

#[test]
fn a_test_reports_the_decision_and_takes_nothing() {
    for evaluate in ["all", "each"] {
        let (limiter, _) = limiter(&policy(evaluate, &[USER, TENANT]));
        let test = |cost: u64| -> Decision {
            let described = [ANN, ACME];
            let request = Request::new().cost(cost).descriptors(&described);
            block_on(limiter.test(&request)).expect("memory answers")
        };
        for _ in 0..3 {
            assert!(test(2).is_allowed());
            let refused = test(3);
            assert!(!refused.is_allowed() && refused.descriptor_allowed(0));
            assert!(!refused.descriptor_allowed(1));
        }
        assert_eq!(remaining(&limiter, &[ANN, ACME]), [Some(5), Some(2)]);
        ask(&limiter, &[hits(ACME, DescriptorHits::Take(2))]);
        assert!(!test(0).is_allowed(), "no quota allows it");
    }
}

#[test]
fn a_test_uses_each_descriptors_hits_and_refunds_nothing() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    ask(&limiter, &[hits(ANN, DescriptorHits::Take(5))]);
    let described = [
        hits(ANN, DescriptorHits::GiveBack(3)),
        hits(BOB, DescriptorHits::Take(6)),
    ];
    let request = Request::new().descriptors(&described);
    let tested = block_on(limiter.test(&request)).expect("memory answers");
    assert!(tested.descriptor_allowed(0) && !tested.descriptor_allowed(1));
    assert_eq!(remaining(&limiter, &[ANN, BOB]), [Some(0), Some(5)]);
}

#[test]
fn reported_usage_is_charged_even_if_it_does_not_fit() {
    for evaluate in ["all", "each"] {
        let (limiter, _) = limiter(&policy(evaluate, &[USER, TENANT]));
        let report = |cost: u64| -> Decision {
            let described = [ANN, ACME];
            let request = Request::new().cost(cost).descriptors(&described);
            block_on(limiter.report(&request)).expect("memory answers")
        };
        assert!(report(0).is_allowed());
        assert!(report(3).is_allowed(), "something was left");
        assert_eq!(remaining(&limiter, &[ANN, ACME]), [Some(2), Some(0)]);
        let refused = report(1);
        assert!(!refused.is_allowed(), "nothing was left of one");
        assert!(refused.descriptor_allowed(0) && !refused.descriptor_allowed(1));
        assert_eq!(
            remaining(&limiter, &[ANN, ACME]),
            [Some(1), Some(0)],
            "charged all the same"
        );
    }
}

#[test]
fn tests_and_reports_work_without_descriptors() {
    let (limiter, _) = limiter(&policy("all", &["name: everybody, rate: 3/h"]));
    let rules = limiter.rules().expect("it is open");
    let is_allowed = |cost: u64, purpose: AskPurpose| match limiter.attempt(
        &rules,
        &Request::new().cost(cost),
        purpose,
    ) {
        Ok(Attempt::Done(decision)) => decision.is_allowed(),
        other => panic!("{other:?}"),
    };
    assert!(is_allowed(3, AskPurpose::Test));
    assert!(!is_allowed(4, AskPurpose::Test));
    assert!(is_allowed(9, AskPurpose::Report));
    assert!(!is_allowed(0, AskPurpose::Test));
}

#[test]
fn tests_and_reports_never_wait() {
    let waiting = "
policies:
  - name: edge
    limits:
      - { name: everybody, rate: 1/min burst 1, on_refusal: wait, max_wait: 1h }
";
    let (limiter, _) = limiter(waiting);
    let request = Request::new();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().expect("a runtime");
    runtime.block_on(async {
        assert!(
            limiter
                .report(&request)
                .await
                .is_ok_and(|it| it.is_allowed())
        );
        assert!(
            limiter
                .test(&request)
                .await
                .is_ok_and(|it| !it.is_allowed())
        );
        assert!(
            limiter
                .report(&request)
                .await
                .is_ok_and(|it| !it.is_allowed())
        );
    });
}
