//! Units: limits that count different things in one policy.

use std::collections::BTreeMap;
use tidegate::{
    BuildError, CheckError, Config, Cost, Decision, Descriptor, DescriptorHits, HitResult, KeyPart,
    LimitSpec, Limiter, ManualClock, MemoryStore, Request, Timestamp,
};
use tidegate_testkit::laws::block_on;

const LLM: &str = "
policies:
  - name: llm
    limits:
      - { name: calls, key: user, rate: 10/min }
      - { name: tokens, key: user, unit: tokens, rate: 1000/h }
      - { name: upload, key: user, unit: bytes, match: { path: /upload }, rate: 500/min }
  - name: tokens-only
    limits: [{ name: tokens, key: user, unit: tokens, rate: 400/h }]
";

fn limiter(yaml: &str) -> Limiter<MemoryStore<ManualClock>> {
    let config = Config::from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}"));
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    Limiter::builder()
        .config(config)
        .clock(clock)
        .build()
        .expect("a limiter in memory")
}

/// Returns what is left by limit, without consuming anything.
fn left(decision: &Decision) -> BTreeMap<String, u64> {
    let applied = decision.applied();
    applied
        .map(|band| (band.limit().to_owned(), band.remaining()))
        .collect()
}

fn shown(decision: &Decision) -> (bool, &str, Option<&str>, u64) {
    let binding = decision.binding().expect("a limit applied");
    let (unit, remaining) = (binding.unit(), binding.remaining());
    (decision.is_allowed(), binding.limit(), unit, remaining)
}

#[test]
fn each_limit_is_charged_the_amount_of_its_own_unit() {
    let limiter = limiter(LLM);
    let ann = Request::new().user("ann").path("/upload");
    let check = |cost| limiter.check_now(&ann.cost(cost)).unwrap();
    let costs = [("tokens", 800), ("bytes", 20)];
    let decision = check(Cost::from(&costs));
    assert_eq!(shown(&decision), (true, "tokens", Some("tokens"), 200));
    let all = left(&decision);
    assert_eq!([all["calls"], all["tokens"], all["upload"]], [9, 200, 480]);

    // Refused by one unit: no other is charged.
    let decision = check((&[("tokens", 201)]).into());
    assert_eq!(shown(&decision), (false, "tokens", Some("tokens"), 200));
    assert_eq!(left(&decision)["calls"], 9);
    // The next request asks for no tokens, and passes.
    assert_eq!(shown(&check(Cost::default())), (true, "calls", None, 8));
}

#[test]
fn a_number_is_of_the_only_unit_or_of_requests() {
    let limiter = limiter(LLM);
    let check = |policy, cost| {
        let request = Request::new().user("ann").policy(policy).cost(cost);
        shown(&limiter.check_now(&request).unwrap()).3
    };
    assert_eq!(check("llm", Cost::from(3)), 7);
    assert_eq!(check("tokens-only", Cost::from(30)), 370);
    assert_eq!(
        check("tokens-only", Cost::default()),
        370,
        "one request, no token"
    );
    assert_eq!(check("tokens-only", (&[]).into()), 370);
    assert_eq!(check("tokens-only", (&[("tokens", 40)]).into()), 330);
}

#[test]
fn an_unknown_unit_is_an_error_that_charges_nothing() {
    let limiter = limiter(LLM);
    let ann = Request::new().user("ann");
    let error = |policy, cost: Cost<'_>| {
        let error = limiter
            .check_now(&ann.policy(policy).cost(cost))
            .unwrap_err();
        assert!(matches!(error, CheckError::BadCost { .. }) && error.is_bad_request());
        error.to_string()
    };
    assert_eq!(
        error("llm", (&[("tokens", 1), ("tokenz", 1)]).into()),
        "policy `llm`: unknown unit `tokenz`; expected `requests`, `tokens`, `bytes`"
    );
    assert_eq!(
        error("tokens-only", (&[("requests", 1)]).into()),
        "policy `tokens-only`: unknown unit `requests`; expected `tokens`"
    );
    let names: Vec<String> = (0..1_000).map(|nth| format!("u{nth}")).collect();
    let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let expected = "policy `llm`: a cost has at most 16 units";
    assert_eq!(error("llm", many[..].into()), expected);

    let hits = [("tokenz", 1)];
    let described = [Descriptor {
        entries: &[("user", "ann")],
        hits: DescriptorHits::Units(Cost::from(&hits)),
        limit: None,
    }];
    assert!(limiter.check_now(&ann.descriptors(&described)).is_err());

    let all = left(&limiter.check_now(&ann.cost(0)).unwrap());
    assert_eq!([all["calls"], all["tokens"]], [10, 1_000]);
}

#[test]
fn a_unit_of_a_limit_that_does_not_match_is_no_mistake() {
    let limiter = limiter(LLM);
    let cost = [("bytes", 100_000)];
    let request = Request::new().user("ann").path("/chat").cost(&cost);
    assert_eq!(
        shown(&limiter.check_now(&request).unwrap()),
        (true, "calls", None, 9)
    );
}

#[test]
fn the_largest_amounts_are_refused_and_charge_nothing() {
    let limiter = limiter(LLM);
    let ann = Request::new().user("ann");
    let cost = [("tokens", u64::MAX), ("requests", 1)];
    let decision = limiter.check_now(&ann.cost(&cost)).unwrap();
    assert!(decision.binding().unwrap().wait().is_never());
    assert_eq!(shown(&decision), (false, "tokens", Some("tokens"), 1_000));
}

#[test]
fn a_test_and_a_report_read_the_map() {
    let limiter = limiter(LLM);
    let ann = Request::new().user("ann");
    let (fits, over) = ([("tokens", 1_000)], [("tokens", 1_001)]);
    block_on(async {
        assert!(limiter.test(&ann.cost(&fits)).await.unwrap().is_allowed());
        assert!(!limiter.test(&ann.cost(&over)).await.unwrap().is_allowed());
        let reported = limiter.report(&ann.cost(&over)).await.unwrap();
        let all = left(&reported);
        assert_eq!([all["calls"], all["tokens"]], [9, 0]);
        // Nothing is left of the tokens; a request without any passes.
        assert!(limiter.check(&ann).await.unwrap().is_allowed());
        let one = [("tokens", 1)];
        assert!(!limiter.check(&ann.cost(&one)).await.unwrap().is_allowed());
    });
}

#[test]
fn the_reported_band_is_the_scarcest_for_the_request() {
    let limiter = limiter(LLM);
    let ann = Request::new().user("ann");
    let check = |cost: Cost<'_>| limiter.check_now(&ann.cost(cost)).unwrap();
    // 9 requests are left, and 990 of a thousand tokens: 9 ÷ 1 is less than 990 ÷ 10.
    assert_eq!(shown(&check((&[("tokens", 10)]).into())).1, "calls");
    // 8 ÷ 1 against 870 ÷ 120.
    assert_eq!(shown(&check((&[("tokens", 120)]).into())).1, "tokens");
    // Of no unit anything: the fewest remaining.
    let nothing = [("requests", 0)];
    assert_eq!(shown(&check((&nothing).into())), (true, "calls", None, 8));
}

#[test]
fn hits_are_in_the_limits_own_unit() {
    let limiter = limiter(LLM);
    let cost = [("tokens", 300), ("requests", 2)];
    let request = Request::new().user("ann").cost(&cost);
    let decision = limiter.check_now(&request).unwrap();
    let hits: Vec<_> = decision
        .limit_hits(&request)
        .map(|it| (it.limit, it.hits, it.result))
        .collect();
    let allowed = HitResult::Allowed;
    assert_eq!(hits, [("calls", 2, allowed), ("tokens", 300, allowed)]);
}

#[test]
fn hits_of_a_descriptor_may_be_a_map() {
    let limiter = limiter(
        "
policies:
  - name: edge
    limits:
      - { name: calls, match: { descriptor: [user] }, key: descriptor:user, rate: 10/min }
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 100/min }
",
    );
    let hits = [("tokens", 70)];
    let descriptor = |hits| {
        [Descriptor {
            entries: &[("user", "ann")],
            hits,
            limit: None,
        }]
    };
    let units = descriptor(DescriptorHits::Units(Cost::from(&hits)));
    let decision = limiter
        .check_now(&Request::new().descriptors(&units))
        .unwrap();
    let all = left(&decision);
    assert_eq!([all["calls"], all["tokens"]], [9, 30]);
    let band = decision.descriptor(0).unwrap();
    assert_eq!((band.unit(), band.remaining()), (Some("tokens"), 30));
    // A number of hits is of requests here.
    let number = descriptor(DescriptorHits::Take(4));
    let all = left(
        &limiter
            .check_now(&Request::new().descriptors(&number))
            .unwrap(),
    );
    assert_eq!([all["calls"], all["tokens"]], [5, 30]);
    let refund = descriptor(DescriptorHits::GiveBack(4));
    let all = left(
        &limiter
            .check_now(&Request::new().descriptors(&refund))
            .unwrap(),
    );
    assert_eq!([all["calls"], all["tokens"]], [9, 30]);
}

#[test]
fn overdraft_and_charge_always_are_by_unit() {
    let limiter = limiter(
        "
policies:
  - name: llm
    limits:
      - { name: calls, rate: 3/min }
      - { name: tokens, unit: tokens, rate: 100/min, charge: always, overdraft: 50 }
",
    );
    let check = |cost: &[(&str, u64)]| {
        let decision = limiter.check_now(&Request::new().cost(cost)).unwrap();
        (decision.is_allowed(), left(&decision)["calls"])
    };
    assert_eq!(check(&[("tokens", 140)]), (true, 2));
    assert_eq!(check(&[("tokens", 1)]), (false, 2), "40 below empty");
    assert_eq!(check(&[]), (true, 1), "a request without tokens passes");
}

#[test]
fn units_of_limits_in_code_are_validated() {
    let calls = LimitSpec::new("calls").key(KeyPart::User).band("10/min");
    let tokens = LimitSpec::new("tokens")
        .key(KeyPart::User)
        .unit("tokens")
        .band("100/h");
    let limiter = Limiter::builder()
        .limit(calls)
        .limit(tokens)
        .build()
        .unwrap();
    let cost = [("tokens", 60)];
    let request = Request::new().user("ann").cost(&cost);
    assert!(limiter.check_now(&request).unwrap().is_allowed());
    assert!(!limiter.check_now(&request).unwrap().is_allowed());

    let wrong = LimitSpec::new("tokens").unit("Tokens").band("100/h");
    let error = Limiter::builder().limit(wrong).build().unwrap_err();
    assert!(matches!(&error, BuildError::Limit { name, .. } if name == "tokens"));
    assert!(
        error.to_string().contains("`Tokens` cannot be a unit"),
        "{error}"
    );
}
