use super::{Instance, config};
use tidegate::{CheckError, DecidedBy, Request};
use tidegate_testkit::laws::block_on;

const WORDS: [&str; 4] = ["local", "allow", "deny", "error"];

/// Returns an instance with two limits on every request, each with its own `on_failure`; plenty of room
/// except for the local share.
fn two(first: &str, second: &str) -> Instance {
    Instance::new(&format!(
        "
policies:
  - name: api
    limits:
      - {{ name: first, key: user, rate: 4/h, on_failure: {first} }}
      - {{ name: second, rate: 100/h, on_failure: {second} }}
"
    ))
}

/// Returns the result by law 8 of two limits, both with unknown state.
fn expected(first: &str, second: &str) -> &'static str {
    let either = |word| first == word || second == word;
    match () {
        () if either("error") => "error",
        () if either("deny") => "deny",
        () if either("local") => "local",
        () => "allow",
    }
}

fn answer(instance: &Instance) -> (&'static str, Option<bool>) {
    let decided = block_on(instance.limiter.check(&Request::new().user("ann")));
    match decided {
        Err(CheckError::Store(_)) => ("error", None),
        Err(other) => panic!("{other}"),
        Ok(decision) => match (decision.decided_by(), decision.is_allowed()) {
            (DecidedBy::Local, allowed) => ("local", Some(allowed)),
            (DecidedBy::Failure, true) => ("allow", Some(true)),
            (DecidedBy::Failure, false) => ("deny", Some(false)),
            other => panic!("{other:?}"),
        },
    }
}

#[test]
fn every_failure_policy_next_to_every_other() {
    for first in WORDS {
        for second in WORDS {
            let instance = two(first, second);
            instance.store.cut();
            let (word, allowed) = answer(&instance);
            assert_eq!(word, expected(first, second), "{first} and {second}");
            assert_eq!(
                allowed,
                [Some(true), Some(true), Some(false), None]
                    [WORDS.iter().position(|it| *it == word).unwrap()]
            );
            instance.store.mend();
            assert_eq!(instance.ask().decided_by(), DecidedBy::Store);
        }
    }
}

#[test]
fn the_stores_failure_policy_is_the_default_of_limits() {
    let yaml = |word: &str| {
        format!(
            "{{store: {{on_failure: {word}}}, policies: [{{name: a, limits: [{{name: x, rate: 4/h}}]}}]}}"
        )
    };
    for word in WORDS {
        let instance = Instance::new(&yaml(word));
        instance.store.cut();
        assert_eq!(answer(&instance).0, word);
    }
    // A reload during an outage may change it.
    let instance = Instance::new(&yaml("deny"));
    instance.store.cut();
    assert_eq!(answer(&instance).0, "deny");
    instance.limiter.reload(config(&yaml("allow"))).unwrap();
    assert_eq!(answer(&instance).0, "allow");
}

#[test]
fn a_denial_names_its_limit_and_a_retry_time() {
    let instance = two("allow", "deny");
    instance.store.cut();
    let decision = instance.ask();
    let binding = decision.binding().unwrap();
    assert_eq!((binding.limit(), binding.band()), ("second", None));
    assert_eq!(binding.retry_after().map(|it| it.as_secs()), Some(1));
    assert!(!binding.wait().is_never());
}

#[test]
fn requests_allowed_without_the_store_report_no_limit() {
    let instance = two("allow", "allow");
    instance.store.cut();
    let decision = instance.ask();
    assert!(decision.is_allowed() && decision.binding().is_none());
    assert_eq!(decision.applied().count(), 0);
}

#[test]
fn local_limits_are_decided_together_or_not_at_all() {
    let instance = Instance::new(
        "
policies:
  - name: api
    limits:
      - { name: tight, key: user, rate: 4/h }
      - { name: wide, rate: 20/h }
      - { name: open, rate: 1/h, on_failure: allow }
",
    );
    instance.store.cut();
    assert_eq!(instance.admitted(), 2, "half of four");
    for _ in 0..20 {
        let refused = instance.ask();
        assert_eq!(refused.decided_by(), DecidedBy::Local);
        assert_eq!(refused.binding().unwrap().limit(), "tight");
    }
    let look = block_on(instance.limiter.check(&Request::new().user("bob").cost(0)));
    let look = look.unwrap();
    let wide = look.applied().find(|it| it.limit() == "wide").unwrap();
    assert_eq!(wide.remaining(), 8, "refusals cost nothing");
    assert!(look.applied().all(|it| it.limit() != "open"));
}

#[test]
fn a_group_with_a_reply_counts() {
    for word in WORDS {
        let instance = two("local", word);
        instance.store.lose("/second");
        let (said, allowed) = answer(&instance);
        assert_eq!(
            said, word,
            "the first is known, so only the second's counts"
        );
        let given_back = instance.store.given_back();
        match allowed {
            Some(true) => assert!(given_back.is_empty(), "{word}: it passed"),
            _ => assert_eq!(given_back, [("api/first/user:ann".to_owned(), 1)], "{word}"),
        }
        instance.store.mend();
        let left = instance.ask_for(0).applied().next().unwrap().remaining();
        assert_eq!(left, if allowed == Some(true) { 3 } else { 4 }, "{word}");
    }
}

#[test]
fn a_refusing_group_refuses_regardless_of_the_others() {
    for word in WORDS {
        let instance = two("local", word);
        assert!(instance.ask_for(4).is_allowed());
        instance.store.lose("/second");
        let refused = instance.ask();
        assert!(!refused.is_allowed(), "{word}");
        assert_eq!(refused.decided_by(), DecidedBy::Store, "{word}");
        assert_eq!(refused.binding().unwrap().limit(), "first");
        assert_eq!(instance.store.given_back(), [], "{word}: it took nothing");
    }
}

#[test]
fn a_local_refusal_refunds_the_store_charges_once() {
    let instance = two("error", "local");
    instance.store.lose("/second");
    instance
        .limiter
        .reload(config(
            "
policies:
  - name: api
    limits:
      - { name: first, key: user, rate: 1000/h, on_failure: error }
      - { name: second, rate: 100/h, on_failure: local }
",
        ))
        .unwrap();
    assert!(instance.ask_for(50).is_allowed());
    assert_eq!(instance.store.given_back(), []);
    let refused = instance.ask_for(7);
    assert!(!refused.is_allowed());
    assert_eq!(refused.decided_by(), DecidedBy::Local);
    assert_eq!(refused.binding().unwrap().limit(), "second");
    assert_eq!(
        instance.store.given_back(),
        [("api/first/user:ann".to_owned(), 7)]
    );
    instance.store.mend();
    let left = instance.ask_for(0).applied().next().unwrap().remaining();
    assert_eq!(left, 950);
}

#[test]
fn charges_are_refunded_once_per_request() {
    let instance = two("local", "deny");
    instance.store.lose("/");
    assert_eq!(answer(&instance).0, "deny");
    assert_eq!(instance.store.given_back(), [], "nothing was charged");

    let instance = two("local", "deny");
    instance.store.lose("/second");
    for _ in 0..3 {
        assert_eq!(answer(&instance).0, "deny");
    }
    assert_eq!(instance.store.given_back().len(), 3);
}

#[test]
fn charges_are_refunded_while_the_error_is_still_held() {
    let instance = two("local", "error");
    instance.store.lose("/second");
    let decided = block_on(instance.limiter.check(&Request::new().user("ann")));
    assert_eq!(instance.store.given_back().len(), 1);
    let Err(CheckError::Store(error)) = decided else {
        panic!("{decided:?}");
    };
    assert_eq!(error.to_string(), "a group did not answer");
    drop(error);
    assert_eq!(instance.store.given_back().len(), 1, "and not again");
}

#[test]
fn shadow_limits_without_a_reply_change_nothing() {
    for word in WORDS {
        let instance = Instance::new(&format!(
            "
policies:
  - name: api
    limits:
      - {{ name: real, rate: 100/h }}
      - {{ name: watched, rate: 2/h, mode: shadow, on_failure: {word} }}
"
        ));
        instance.store.lose("/watched");
        for _ in 0..4 {
            let decision = instance.ask();
            assert!(decision.is_allowed(), "{word}");
            assert_eq!(decision.decided_by(), DecidedBy::Store, "{word}");
            assert_eq!(decision.binding().unwrap().limit(), "real");
        }
        instance.store.cut();
        let decision = instance.ask();
        assert!(decision.is_allowed(), "{word}");
        assert_eq!(decision.decided_by(), DecidedBy::Local, "{word}");
        assert_eq!(instance.store.given_back(), []);
    }
}

#[test]
fn a_cost_above_only_the_share_is_not_reported_as_never() {
    let instance = two("local", "local");
    instance.store.cut();
    let refused = instance.ask_for(3);
    assert!(!refused.is_allowed());
    assert!(!refused.binding().unwrap().wait().is_never());
    assert!(instance.ask_for(5).binding().unwrap().wait().is_never());
}

#[test]
fn the_limits_decide_if_requests_continue_without_the_store() {
    for (first, second, goes_on) in [
        ("deny", "error", false),
        ("deny", "local", true),
        ("allow", "error", true),
        ("local", "local", true),
    ] {
        let instance = two(first, second);
        assert_eq!(instance.limiter.can_pass_without_store(), goes_on);
    }
}

#[test]
fn a_warning_named_the_limit_after_the_one_that_warned_if_one_before_was_skipped() {
    let instance = Instance::new(
        "
store: { local_share: 1 }
policies:
  - name: api
    limits:
      - { name: skipped, rate: 10/h, on_failure: allow }
      - { name: warns, rate: 10/h, warn: 50% }
      - { name: innocent, rate: 1000/h }
",
    );
    instance.store.cut();
    let decision = instance.ask_for(6);
    let warned: Vec<&str> = decision.warnings().map(|it| it.limit()).collect();
    assert_eq!(warned, ["warns"]);
}

/// A local bucket holds a share of the limit's amount, and seemed used up by the rest from the beginning.
#[test]
fn a_local_bucket_warned_by_the_capacity_of_the_whole_limit() {
    let instance = Instance::new(
        "
store: { local_share: 0.5 }
policies: [{ name: api, limits: [{ name: all, rate: 20/h, algorithm: fixed-window, warn: 80% }] }]
",
    );
    instance.store.cut();
    let warned: Vec<u64> = (1..=10)
        .filter(|_| instance.ask_for(1).warnings().next().is_some())
        .collect();
    assert_eq!(warned, [8], "of the ten that this instance may admit");
}
