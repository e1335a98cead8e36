use super::{ACME, ANN, BOB, TENANT, USER, ask, bringing, hits, limiter, of, policy, remaining};
use std::time::Duration;
use tidegate::{CheckError, DescriptorHits, LimitOverride, Request};

#[test]
fn a_call_is_atomic_and_changes_nothing_if_refused() {
    let (limiter, _) = limiter(&policy("all", &[USER, TENANT]));
    assert!(ask(&limiter, &[ANN, ACME]).is_allowed());
    assert!(ask(&limiter, &[ANN, ACME]).is_allowed());
    let refused = ask(&limiter, &[ANN, ACME]);
    assert!(!refused.is_allowed());
    assert!(
        refused.descriptor_allowed(0),
        "the descriptor was not refused"
    );
    assert!(!refused.descriptor_allowed(1));
    assert_eq!(refused.limit(), Some("tenant"));
    let told = refused
        .descriptor(0)
        .expect("the descriptor's limit applies");
    assert_eq!((told.limit(), told.remaining()), ("user", 3));
    assert_eq!(remaining(&limiter, &[ANN, ACME]), [Some(3), Some(0)]);
}

#[test]
fn the_same_descriptor_twice_counts_twice() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    let decision = ask(&limiter, &[ANN, ANN, BOB]);
    assert_eq!(remaining(&limiter, &[ANN, BOB]), [Some(3), Some(4)]);
    assert!((0..3).all(|nth| decision.descriptor_allowed(nth)));
    // Three times would be one too many.
    let refused = ask(&limiter, &[ANN, ANN, ANN, ANN]);
    let allowed: Vec<bool> = (0..4).map(|nth| refused.descriptor_allowed(nth)).collect();
    assert_eq!(allowed, [true, true, true, false]);
    assert_eq!(remaining(&limiter, &[ANN]), [Some(3)]);
    // A cost that fits alone does not fit behind one that does not.
    let refused = ask(&limiter, &[hits(ANN, DescriptorHits::Take(4)), ANN]);
    assert!(!refused.descriptor_allowed(0) && !refused.descriptor_allowed(1));
}

#[test]
fn hits_are_each_descriptors_own() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    let request = Request::new().cost(2);
    let described = [ANN, hits(BOB, DescriptorHits::Take(4))];
    let decision = limiter.check_now(&request.descriptors(&described));
    assert!(decision.expect("memory answers").is_allowed());
    assert_eq!(remaining(&limiter, &[ANN, BOB]), [Some(3), Some(1)]);
}

#[test]
fn zero_hits_take_nothing_and_are_refused_by_an_empty_bucket() {
    let (limiter, _) = limiter(&policy("all", &[USER, TENANT]));
    let none = [hits(ANN, DescriptorHits::Take(0))];
    for _ in 0..3 {
        assert!(ask(&limiter, &none).is_allowed());
    }
    assert_eq!(remaining(&limiter, &[ANN]), [Some(5)]);
    assert!(ask(&limiter, &[hits(ANN, DescriptorHits::Take(5))]).is_allowed());
    let refused = ask(&limiter, &[none[0], ACME]);
    assert!(!refused.is_allowed() && !refused.descriptor_allowed(0));
    assert_eq!(remaining(&limiter, &[ACME]), [Some(2)], "all or nothing");
    let wait = refused
        .descriptor(0)
        .expect("the descriptor's limit applies")
        .retry_after();
    assert_eq!(wait, Some(Duration::from_secs(3_600)));
    // A request with cost 0 only reads, as usual.
    let looked = limiter.check_now(&Request::new().cost(0).descriptors(&[ANN]));
    assert!(looked.expect("memory answers").is_allowed());
}

#[test]
fn refunds_take_effect_even_if_the_call_is_refused() {
    let (limiter, _) = limiter(&policy("all", &[USER, TENANT]));
    ask(
        &limiter,
        &[
            hits(ANN, DescriptorHits::Take(5)),
            hits(ACME, DescriptorHits::Take(2)),
        ],
    );
    let refused = ask(&limiter, &[hits(ANN, DescriptorHits::GiveBack(3)), ACME]);
    assert!(!refused.is_allowed() && refused.descriptor_allowed(0));
    assert_eq!(remaining(&limiter, &[ANN, ACME]), [Some(3), Some(0)]);
    // A refund is capped at the debt, and never refused.
    assert!(ask(&limiter, &[hits(ANN, DescriptorHits::GiveBack(u64::MAX))]).is_allowed());
    assert_eq!(remaining(&limiter, &[ANN]), [Some(5)]);
}

#[test]
fn a_limit_of_the_request_replaces_the_configured_ones() {
    let everybody = "name: everybody, rate: 9/h";
    let (limiter, clock) = limiter(&policy("all", &[everybody, USER]));
    let decision = ask(&limiter, &[bringing(ANN, 2), BOB]);
    let told = decision
        .descriptor(0)
        .expect("the descriptor carries a limit");
    assert_eq!(
        (told.limit(), told.capacity(), told.remaining()),
        ("override", 2, 1)
    );
    assert_eq!(told.period(), Duration::from_secs(3_600));
    assert!(told.header_names().is_some() && told.band().is_some());
    assert_eq!(
        decision.limit(),
        Some("override"),
        "it has the least remaining"
    );
    assert_eq!(remaining(&limiter, &[ANN]), [Some(5)], "a separate bucket");

    assert!(ask(&limiter, &[bringing(ANN, 2)]).is_allowed());
    assert!(!ask(&limiter, &[bringing(ANN, 2)]).is_allowed());
    assert!(
        ask(&limiter, &[bringing(BOB, 2)]).is_allowed(),
        "separate buckets"
    );
    assert!(ask(&limiter, &[bringing(of(&[("un", "known")]), 2)]).is_allowed());
    assert!(!ask(&limiter, &[bringing(of(&[("un", "known")]), 0)]).is_allowed());
    // Limits of the request as a whole apply all the same.
    let whole = limiter
        .check_now(&Request::new().cost(0))
        .expect("memory answers");
    assert_eq!(whole.binding().map(|band| band.remaining()), Some(5));
    clock.advance_micros(3_600_000_000);
    assert!(ask(&limiter, &[bringing(ANN, 2)]).is_allowed());
}

#[test]
fn two_limits_of_one_call_are_distinguished() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    let decision = ask(&limiter, &[bringing(ANN, 2), bringing(BOB, 7), ANN]);
    let told: Vec<(&str, u64)> = (0..3)
        .filter_map(|nth| decision.descriptor(nth))
        .map(|band| (band.limit(), band.capacity()))
        .collect();
    assert_eq!(told, [("override", 2), ("override", 7), ("user", 5)]);
    let by: Vec<Option<usize>> = decision.applied().map(|band| band.descriptor()).collect();
    assert_eq!(by, [Some(0), Some(1), Some(2)]);
}

#[test]
fn an_invalid_limit_of_the_request_is_an_error_and_charges_nothing() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    let mut bad = bringing(ANN, 5);
    bad.limit = Some(LimitOverride {
        amount: 5,
        period_us: 0,
    });
    let described = [BOB, bad];
    let request = Request::new().descriptors(&described);
    let error = limiter.check_now(&request).expect_err("no period");
    assert!(error.is_bad_request());
    assert!(matches!(error, CheckError::BadLimit { .. }), "{error}");
    assert!(limiter.rules().unwrap().accepts(&request).is_err());
    assert_eq!(remaining(&limiter, &[BOB]), [Some(5)]);
}

#[test]
fn unlimited_ends_the_search_without_a_store_call() {
    let free = "name: free, match: { descriptor: [user: root] }, rate: unlimited";
    let yaml = policy("all", &[USER]) + &format!("      - {{ {free} }}\n");
    let (limiter, _) = limiter(&yaml);
    let root = of(&[("user", "root")]);
    for _ in 0..20 {
        let decision = ask(&limiter, &[root]);
        assert!(decision.is_allowed() && decision.is_unlimited());
        assert!(decision.descriptor_unlimited(0) && decision.descriptor(0).is_none());
        let applied: Vec<(&str, Option<&str>)> = decision
            .applied()
            .map(|it| (it.limit(), it.band()))
            .collect();
        assert_eq!(applied, [("free", None)]);
    }
    let both = ask(&limiter, &[root, ANN]);
    assert!(!both.is_unlimited() && both.descriptor_unlimited(0));
    assert!(!both.descriptor_unlimited(1));
    assert_eq!(
        limiter.store().stats().buckets,
        1,
        "of the limited descriptors"
    );
}

#[test]
fn a_limit_that_is_replaced_neither_refuses_nor_counts() {
    let big = "name: big, match: { descriptor: [tenant: big] }, rate: 3/h, replaces: [user]";
    let (limiter, _) = limiter(&policy("all", &[USER, big]));
    let big = of(&[("tenant", "big")]);
    for _ in 0..3 {
        let decision = ask(&limiter, &[ANN, big]);
        assert!(decision.descriptor(0).is_none() && !decision.descriptor_unlimited(0));
        assert_eq!(decision.limit(), Some("big"));
    }
    assert!(!ask(&limiter, &[ANN, big]).is_allowed());
    assert_eq!(remaining(&limiter, &[ANN]), [Some(5)]);
}

#[test]
fn shadow_limits_are_not_reported_for_descriptors() {
    let watched = "name: watched, match: { descriptor: [user] }, rate: 1/h, mode: shadow";
    let (limiter, _) = limiter(&policy("all", &[watched]));
    for nth in 0..3 {
        let decision = ask(&limiter, &[ANN]);
        assert!(decision.is_allowed() && decision.descriptor_allowed(0));
        assert!(decision.descriptor(0).is_none());
        let would: Vec<bool> = decision.applied().map(|it| it.is_allowed()).collect();
        assert_eq!(would, [nth == 0]);
    }
}

#[test]
fn an_unknown_descriptor_is_allowed_and_reports_nothing() {
    let (limiter, _) = limiter(&policy("all", &[USER]));
    let decision = ask(&limiter, &[of(&[("who", "knows")]), ANN]);
    assert!(decision.descriptor_allowed(0) && decision.descriptor(0).is_none());
    assert!(!decision.descriptor_unlimited(0));
    // A descriptor that does not exist reports nothing either.
    assert_eq!(decision.descriptors(), 2);
    assert!(decision.descriptor_allowed(9) && decision.descriptor(9).is_none());
    assert!(decision.descriptor(usize::from(u16::MAX)).is_none());
}

#[test]
fn a_limit_of_the_whole_request_refuses_it_though_all_descriptors_are_allowed() {
    let (limiter, _) = limiter(&policy("all", &["name: everybody, rate: 1/h", USER]));
    ask(&limiter, &[ANN]);
    let refused = ask(&limiter, &[ANN]);
    assert!(!refused.is_allowed() && refused.descriptor_allowed(0));
    assert_eq!(refused.limit(), Some("everybody"));
    assert_eq!(refused.binding().and_then(|band| band.descriptor()), None);
}

#[test]
fn policies_are_found_by_name_and_by_domain() {
    let names: Vec<String> = (0..40).map(|nth| format!("p{nth}")).collect();
    let policy = |name: &String| {
        format!("{{ name: {name}, domain: 'a/{name}', limits: [{{ name: all, rate: 9/h }}] }}")
    };
    let policies: Vec<String> = names.iter().map(policy).collect();
    let (limiter, _) = limiter(&format!("policies: [{}]", policies.join(", ")));
    let rules = limiter.rules().expect("it is open");
    for (nth, name) in names.iter().enumerate() {
        let policy = rules.policy(Some(name)).expect("the server is up");
        let meant = rules.policy_of_domain(&format!("a/{name}"));
        assert!(meant.is_some_and(|meant| std::ptr::eq(meant, policy)));
        assert!(rules.policy_of_domain(name).is_none());
        let decision = limiter.check_now(&Request::new().policy(name));
        assert_eq!(decision.expect("memory answers").policy_index(), nth);
    }
    assert!(rules.policy(Some("p40")).is_none() && rules.policy(Some("")).is_none());
    assert_eq!(rules.policy(None).map(|it| it.name.as_str()), Some("p0"));
}

#[test]
fn a_missing_identity_is_reported_for_its_descriptor() {
    let keyed =
        "name: keyed, match: { descriptor: [tenant] }, key: user, missing: refuse, rate: 2/h";
    for evaluate in ["all", "first", "each"] {
        let (limiter, _) = limiter(&policy(evaluate, &[USER, keyed]));
        let refused = ask(&limiter, &[ANN, ACME]);
        assert!(!refused.is_allowed());
        assert_eq!(refused.limit(), Some("keyed"));
        let allowed: Vec<bool> = (0..2).map(|nth| refused.descriptor_allowed(nth)).collect();
        assert_eq!(allowed, [true, false], "{evaluate}");
        let told = refused.descriptor(1).expect("its limit refuses");
        assert_eq!(
            (told.limit(), told.band(), told.retry_after()),
            ("keyed", None, None)
        );
        assert!(
            refused.descriptor(0).is_none(),
            "no test of this descriptor"
        );
        assert_eq!(remaining(&limiter, &[ANN]), [Some(5)]);
    }
    // A limit of the request as a whole refuses no descriptor.
    let whole = "name: whole, key: user, missing: refuse, rate: 2/h";
    let (limiter, _) = limiter(&policy("all", &[USER, whole]));
    let refused = ask(&limiter, &[ANN, ACME]);
    assert!(!refused.is_allowed());
    assert!((0..2).all(|nth| refused.descriptor_allowed(nth)));
}

#[test]
fn a_replaced_unlimited_limit_is_not_reported() {
    let (limiter, _) = limiter(
        "
policies:
  - name: edge
    limits:
      - { name: staff, match: { descriptor: [user: root] }, rate: unlimited }
      - { name: tenant, match: { descriptor: [tenant] }, rate: 2/h, replaces: [staff] }
",
    );
    let root = of(&[("user", "root")]);
    assert!(ask(&limiter, &[root]).descriptor_unlimited(0));
    let replaced = ask(&limiter, &[root, ACME]);
    assert!(replaced.descriptor_allowed(0) && !replaced.descriptor_unlimited(0));
    assert!(replaced.descriptor(0).is_none());
}
