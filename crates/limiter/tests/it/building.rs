use tidegate::{BuildError, Config, KeyPart, LimitSpec, Limiter, NoEnvironment, Request};

#[test]
fn a_mistake_in_code_is_named() {
    let error = |limit: LimitSpec| {
        Limiter::builder()
            .limit(limit)
            .build()
            .unwrap_err()
            .to_string()
    };
    assert!(error(LimitSpec::new("x")).starts_with("limit `x`: it has no band"));
    assert!(error(LimitSpec::new("x").band("ten a second")).contains("is not a rate"));
    assert!(error(LimitSpec::new("x").band("1/s").band("2/s")).contains("two bands"));
    assert!(error(LimitSpec::new("x").band("1/s").path("no-slash")).starts_with("limit `x`:"));
}

#[test]
fn two_limits_of_one_name_would_share_buckets_and_are_refused() {
    let limit = || LimitSpec::new("x").band("1/s");
    let error = Limiter::builder().limit(limit()).limit(limit()).build();
    assert!(error.unwrap_err().to_string().contains("duplicate name"));
}

#[test]
fn a_limiter_without_limits_is_rejected() {
    assert!(matches!(
        Limiter::builder().build(),
        Err(BuildError::NoPolicy)
    ));
}

#[test]
fn an_unreachable_store_is_rejected_by_name() {
    let yaml = "
store: { url: 'redis://:hunter2@localhost' }
policies: [{ name: api, limits: [{ name: x, rate: 1/s }] }]";
    let error = Limiter::from_yaml(yaml).unwrap_err().to_string();
    assert!(
        error.contains("redis://") && !error.contains("hunter2"),
        "{error}"
    );
    let how = if cfg!(feature = "redis") {
        "use `Limiter::builder()` and, at the end, `.start()` or `.connect()`"
    } else {
        "needs the feature `redis`"
    };
    assert!(error.contains(how), "{error}");
}

#[test]
fn a_policy_named_default_conflicts_with_limits_in_code() {
    let yaml =
        |name: &str| format!("policies: [{{ name: {name}, limits: [{{ name: x, rate: 1/s }}] }}]");
    let limit = || LimitSpec::new("in-code").band("1/s");
    let built = |name| {
        let builder = Limiter::builder().yaml(&yaml(name)).unwrap();
        builder.limit(limit()).build()
    };
    let error = built("default").unwrap_err();
    assert!(matches!(error, BuildError::TwoDefaults));
    assert!(error.to_string().contains("never be reached"), "{error}");

    let request = Request::new().policy("default");
    let decision = built("api").unwrap().check_now(&request).unwrap();
    assert_eq!(decision.binding().unwrap().limit(), "in-code");
    // Without limits in code, a policy of this name is valid.
    assert!(Limiter::from_yaml(&yaml("default")).is_ok());
}

#[test]
fn limits_in_code_have_conditions_of_all_kinds() {
    let limiter = Limiter::builder()
        .limit(
            LimitSpec::new("x")
                .method("post")
                .method("PUT")
                .host("*.example.com")
                .header("X-Tier", "Gold")
                .path("/a")
                .path("/b$")
                .band("100/s"),
        )
        .limit(LimitSpec::new("deletes").method("DELETE").band("100/s"))
        .build()
        .unwrap();
    let met = |method: &str, host: &str, tier: &str, path: &str| {
        let headers = [("x-tier", tier)];
        let request = Request::new().method(method).host(host).path(path);
        let decision = limiter.check_now(&request.headers(&headers)).unwrap();
        let binding = decision.binding();
        binding.map(|band| band.limit().to_owned())
    };
    let x = Some("x".to_owned());
    assert_eq!(met("POST", "api.example.com", "gold", "/a/1"), x);
    assert_eq!(met("PUT", "api.example.com", "GOLD", "/b"), x);
    assert_eq!(met("PUT", "api.example.com", "gold", "/b/1"), None);
    assert_eq!(met("GET", "api.example.com", "gold", "/a"), None);
    assert_eq!(met("POST", "example.org", "gold", "/a"), None);
    assert_eq!(met("POST", "api.example.com", "tin", "/a"), None);
    let deletes = Some("deletes".to_owned());
    assert_eq!(met("DELETE", "example.org", "tin", "/"), deletes);
}

#[test]
fn a_store_named_in_code_is_read_as_in_a_configuration() {
    let builder = || Limiter::builder().limit(LimitSpec::new("x").band("1/s"));
    assert!(builder().store_url("memory").unwrap().build().is_ok());

    let error = builder().store_url("localhost:6379").unwrap_err();
    assert!(matches!(error, BuildError::Config(_)));
    assert!(error.to_string().contains("redis://127.0.0.1:6379"));

    let shared = builder().store_url("redis://:hunter2@db").unwrap();
    let error = shared.build().unwrap_err();
    assert!(matches!(&error, BuildError::Store { url } if url == "redis://:***@db:6379"));
}

#[test]
fn a_store_named_in_code_wins_over_the_configuration() {
    let yaml = "
store: { url: 'redis://db', key_secret: one }
policies: [{ name: api, limits: [{ name: x, key: api-key, rate: 1/s }] }]";
    let key = |settings: &str| {
        let store = tidegate::store_from_yaml(settings, &NoEnvironment).unwrap();
        let limiter = Limiter::builder().yaml(yaml).unwrap().store(store);
        let limiter = limiter.build().unwrap();
        let decision = limiter.check_now(&Request::new().api_key("k")).unwrap();
        decision.binding().unwrap().key().to_owned()
    };
    assert_ne!(key("{ key_secret: one }"), key("{ key_secret: two }"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Limiter::from_file("/nowhere/limits.yaml").unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/limits.yaml");
}

#[test]
fn buckets_survive_a_reload() {
    let yaml = |rest: &str| {
        let text = format!(
            "policies: [{{ name: api, limits: [{{ name: x, key: user, rate: 2/h }}{rest}] }}]"
        );
        Config::from_yaml(&text).unwrap()
    };
    let limiter = Limiter::builder().config(yaml("")).build().unwrap();
    let ann = Request::new().user("ann");
    limiter.check_now(&ann).unwrap();
    limiter.reload(yaml(", { name: y, rate: 100/s }")).unwrap();
    let decision = limiter.check_now(&ann).unwrap();
    assert_eq!(decision.applied().next().unwrap().remaining(), 0);
    assert_eq!(decision.applied().count(), 2);
}

#[test]
fn usage_survives_a_change_of_the_amount() {
    let config = |rate: &str| {
        let text = format!("policies: [{{ name: api, limits: [{{ name: x, rate: {rate} }}] }}]");
        Config::from_yaml(&text).unwrap()
    };
    let limiter = Limiter::builder().config(config("10/h")).build().unwrap();
    limiter.check_now(&Request::new().cost(10)).unwrap();
    limiter.reload(config("20/h")).unwrap();
    let decision = limiter.check_now(&Request::new().cost(0)).unwrap();
    // Debt is kept as time: an hour of debt is all of twenty an hour.
    assert_eq!(decision.binding().unwrap().remaining(), 0);
    limiter.reload(config("5/h")).unwrap();
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert!(!decision.is_allowed());
}

#[test]
fn a_custom_store_is_accepted() {
    let store = tidegate::MemoryStore::builder().max_keys(100).build();
    let limit = LimitSpec::new("x").band("1/h");
    let limiter = Limiter::builder().limit(limit).build_with(store).unwrap();
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    assert!(!limiter.check_now(&Request::new()).unwrap().is_allowed());
}

#[test]
fn more_buckets_than_memory_are_an_error_and_not_a_panic() {
    let limit = LimitSpec::new("x").band("1/h");
    let error = Limiter::builder().limit(limit).max_keys(1 << 58).build();
    assert!(error.unwrap_err().to_string().contains("lower `max_keys`"));
}

#[test]
fn limits_in_code_may_use_evaluate_first() {
    let limiter = Limiter::builder()
        .first_decides()
        .limit(
            LimitSpec::new("gold")
                .key(KeyPart::ApiKey)
                .missing(tidegate::MissingIdentity::Skip)
                .band("10/s"),
        )
        .limit(LimitSpec::new("rest").key(KeyPart::Ip).band("1/s"))
        .build()
        .unwrap();
    let limit = |request: &Request<'_>| {
        let decision = limiter.check_now(request).unwrap();
        decision.binding().unwrap().limit().to_owned()
    };
    assert_eq!(limit(&Request::new().api_key("k")), "gold");
    assert_eq!(limit(&Request::new()), "rest");
}

#[test]
fn an_error_that_main_returned_was_printed_as_a_structure() {
    let missing = Limiter::from_file("/nowhere/tidegate.yaml").unwrap_err();
    let printed = format!("{missing:?}");
    assert!(
        printed.starts_with("cannot read /nowhere/tidegate.yaml: No such file"),
        "{printed}"
    );
    let mistaken = Limiter::from_yaml("policies: [{ name: p, limits: [{ name: l, rate: 5 }] }]");
    let printed = format!("{:?}", mistaken.unwrap_err());
    assert!(
        printed.contains("help: write 5/s, 5/min or 5/h"),
        "{printed}"
    );
}
