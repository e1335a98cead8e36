use super::{ACME, ANN, BOB, TENANT, USER, bringing, hits, of, policy};
use crate::failure::Instance;
use tidegate::{CheckError, DecidedBy, Decision, Descriptor, DescriptorHits, Request};
use tidegate_testkit::laws::block_on;

fn put(instance: &Instance, descriptors: &[Descriptor<'_>]) -> Result<Decision, CheckError> {
    block_on(
        instance
            .limiter
            .check(&Request::new().descriptors(descriptors)),
    )
}

fn ask(instance: &Instance, descriptors: &[Descriptor<'_>]) -> Decision {
    put(instance, descriptors).expect("a decision")
}

fn statuses(decision: &Decision) -> Vec<bool> {
    let all = 0..decision.descriptors();
    all.map(|nth| decision.descriptor_allowed(nth)).collect()
}

fn limits(evaluate: &str, [user, tenant]: [&str; 2]) -> Instance {
    let user = format!("{USER}, on_failure: {user}");
    let tenant = format!("{TENANT}, on_failure: {tenant}");
    Instance::new(&policy(evaluate, &[&user, &tenant]))
}

const BOTH: [&str; 2] = ["all", "each"];

#[test]
fn deny_refuses_the_descriptors_whose_limits_are_set_to_it() {
    for evaluate in BOTH {
        let instance = limits(evaluate, ["deny", "allow"]);
        instance.store.cut();
        let decision = ask(&instance, &[ACME, ANN, of(&[("un", "known")]), BOB]);
        assert!(!decision.is_allowed());
        assert_eq!(decision.decided_by(), DecidedBy::Failure);
        assert_eq!(
            statuses(&decision),
            [true, false, true, false],
            "{evaluate}"
        );
        assert_eq!(decision.limit(), Some("user"));
        let told = decision.descriptor(1).expect("it refused");
        assert_eq!(
            (told.limit(), told.band(), told.remaining()),
            ("user", None, 0)
        );
        assert!(decision.descriptor(0).is_none(), "the store is not called");
    }
}

#[test]
fn without_the_store_allow_passes_and_error_fails() {
    for evaluate in BOTH {
        let instance = limits(evaluate, ["allow", "error"]);
        instance.store.cut();
        let decision = ask(&instance, &[ANN, BOB]);
        assert!(decision.is_allowed() && decision.is_unlimited());
        assert_eq!(decision.decided_by(), DecidedBy::Failure);
        let error = put(&instance, &[ANN, ACME]).expect_err("one wants an error");
        assert!(matches!(error, CheckError::Store(_)));
    }
}

#[test]
fn local_decides_in_memory_with_a_share_and_separately_if_configured() {
    for evaluate in BOTH {
        let instance = limits(evaluate, ["local", "local"]);
        instance.store.cut();
        // Half of five and half of two.
        let decision = ask(&instance, &[ANN, ACME]);
        assert!(decision.is_allowed());
        assert_eq!(decision.decided_by(), DecidedBy::Local);
        assert_eq!(decision.descriptor(0).map(|band| band.remaining()), Some(1));
        let refused = ask(&instance, &[ANN, ACME]);
        assert!(!refused.is_allowed());
        assert_eq!(statuses(&refused), [true, false]);
        let left = refused.descriptor(0).map(|band| band.remaining());
        let expected = u64::from(evaluate != "each");
        assert_eq!(left, Some(expected), "{evaluate}: what another refuses");
        // A cost that exceeds the share may fit the limit.
        let large = ask(&instance, &[hits(BOB, DescriptorHits::Take(4))]);
        let wait = large.descriptor(0).and_then(|band| band.retry_after());
        assert!(wait.is_some() && !large.is_allowed());
    }
}

#[test]
fn a_certain_refusal_takes_precedence_over_errors() {
    for evaluate in BOTH {
        let instance = limits(evaluate, ["error", "local"]);
        ask(&instance, &[hits(ACME, DescriptorHits::Take(2))]);
        instance.store.lose("/user/");
        let refused = ask(&instance, &[ANN, ACME]);
        assert!(!refused.is_allowed(), "{evaluate}");
        assert_eq!(refused.decided_by(), DecidedBy::Store);
        assert_eq!(statuses(&refused), [true, false]);
        assert!(put(&instance, &[ANN]).is_err());
    }
}

#[test]
fn separate_limits_stay_charged_if_another_one_fails() {
    let instance = limits("each", ["local", "deny"]);
    instance.store.lose("/tenant/");
    let refused = ask(&instance, &[ANN, ACME]);
    assert!(!refused.is_allowed());
    assert_eq!(refused.decided_by(), DecidedBy::Failure);
    instance.store.mend();
    let decision = ask(&instance, &[ANN]);
    assert_eq!(decision.descriptor(0).map(|band| band.remaining()), Some(3));
    assert_eq!(instance.store.given_back(), []);
    // Together, nothing stays charged.
    let instance = limits("all", ["local", "deny"]);
    instance.store.lose("/tenant/");
    assert!(!ask(&instance, &[ANN, ACME]).is_allowed());
    instance.store.mend();
    let decision = ask(&instance, &[ANN]);
    assert_eq!(decision.descriptor(0).map(|band| band.remaining()), Some(4));
}

#[test]
fn one_allowing_quota_hides_the_failure_of_the_others() {
    let quota = |name: &str, on_failure: &str| {
        format!(
            "name: {name}, match: {{ descriptor: [pool: {name}] }}, rate: 1/h, combine: any, \
             on_failure: {on_failure}"
        )
    };
    let [a, b] = [of(&[("pool", "a")]), of(&[("pool", "b")])];
    for (word, spent) in [("error", None), ("deny", Some(DecidedBy::Failure))] {
        let instance = Instance::new(&policy("each", &[&quota("a", word), &quota("b", "local")]));
        instance.store.lose("/a/");
        let decision = ask(&instance, &[a, b]);
        assert!(decision.is_allowed(), "{word}");
        assert_eq!(statuses(&decision), [word == "error", true]);
        assert_eq!(decision.limit(), Some("b"));
        // Now it is used up, and the result depends on the limit whose state is unknown.
        let decided = put(&instance, &[a, b]);
        let by = decided.ok().map(|decision| {
            assert!(!decision.is_allowed());
            assert_eq!(statuses(&decision), [false, false]);
            decision.decided_by()
        });
        assert_eq!(by, spent);
    }
}

#[test]
fn refunds_are_never_refused() {
    for evaluate in BOTH {
        let instance = limits(evaluate, ["deny", "local"]);
        instance.store.cut();
        let decision = ask(&instance, &[hits(ANN, DescriptorHits::GiveBack(1))]);
        assert!(
            decision.is_allowed() && decision.descriptor_allowed(0),
            "{evaluate}"
        );
        assert_eq!(decision.decided_by(), DecidedBy::Failure);
    }
}

#[test]
fn a_limit_of_the_request_uses_the_failure_policy_of_the_store() {
    let yaml = "store: { on_failure: local }\n".to_owned() + &policy("all", &[USER]);
    let instance = Instance::new(&yaml);
    instance.store.cut();
    let decision = ask(&instance, &[bringing(ANN, 4)]);
    assert!(decision.is_allowed());
    let told = decision.descriptor(0).expect("decided locally");
    assert_eq!((told.limit(), told.remaining()), ("override", 1));
}

#[test]
fn tests_and_reports_work_without_the_store() {
    let instance = limits("all", ["local", "deny"]);
    instance.store.cut();
    let described = [ANN];
    let request = Request::new().descriptors(&described);
    for _ in 0..3 {
        let tested = block_on(instance.limiter.test(&request.cost(2))).expect("a local decision");
        assert!(tested.is_allowed());
        assert_eq!(tested.decided_by(), DecidedBy::Local);
    }
    let reported = block_on(instance.limiter.report(&request.cost(2))).expect("a local decision");
    assert!(reported.is_allowed());
    assert!(block_on(instance.limiter.test(&request)).is_ok_and(|it| !it.is_allowed()));
}
