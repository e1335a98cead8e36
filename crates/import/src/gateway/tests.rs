use super::gateway;
use crate::SourceFile;
use crate::names::short_hash;

const POLICY: &str =
    r#"[{ "id": "1", "name": "standard", "requestsPerSecond": 10, "burstSize": 50 }]"#;

fn files(texts: &[&str]) -> Vec<SourceFile> {
    let texts = texts.iter().enumerate();
    texts
        .map(|(nth, text)| SourceFile {
            name: format!("{nth}.yml"),
            text: (*text).to_owned(),
        })
        .collect()
}

fn yaml(texts: &[&str]) -> String {
    gateway(&files(texts)).expect("a valid config").to_yaml()
}

fn errors(texts: &[&str]) -> String {
    let imported = gateway(&files(texts));
    imported.expect_err("an invalid document").to_string()
}

fn route(path: &str, more: &str) -> String {
    format!(r#"{{ "id": "r{path}", "path": "{path}", "upstreamUrl": "http://a:1"{more} }}"#)
}

#[test]
fn an_inline_policy_of_a_route_was_silently_dropped() {
    let with = |policy: &str| {
        let more = format!(r#", "rateLimit": {policy}"#);
        format!("[{}]", route("/a", &more))
    };
    let whole = r#"{ "id": "9", "name": "own", "requestsPerSecond": 3, "burstSize": 4 }"#;
    let translated = yaml(&[&with(whole)]);
    assert!(translated.contains("rate: 3/s burst 4"), "{translated}");
    assert!(translated.contains("policy: own"), "{translated}");
    let translated = yaml(&[&with(r#"{ "id": "1" }"#), POLICY]);
    assert!(translated.contains("policy: standard"), "{translated}");
    let told = errors(&[&with(r#"{ "description": "none" }"#)]);
    assert!(told.contains("has neither a policy nor a rate"), "{told}");
    let told = errors(&[&with(r#"{ "id": "2" }"#), POLICY]);
    assert!(told.contains("refers to an unknown policy `2`"), "{told}");
}

#[test]
fn one_page_of_several_was_taken_as_the_whole() {
    let page = |path: &str| format!(r#"{{ "items": [{}], "total": 2 }}"#, route(path, ""));
    let told = errors(&[&page("/a")]);
    assert!(told.contains("found 1 of 2 routes"), "{told}");
    let (a, b) = (page("/a"), page("/b"));
    let translated = yaml(&[&a, &b, r#"{ "items": [], "total": 2 }"#]);
    assert!(translated.contains("path: \"/b\""), "{translated}");
    // Items of other kinds do not count for this page.
    assert!(errors(&[&a, POLICY]).contains("found 1 of"));
    assert!(errors(&[r#"{ "items": [], "total": 2 }"#]).contains("found 0 of"));
}

#[test]
fn a_route_was_shadowed_by_one_with_a_shorter_path() {
    let get = r#", "methods": ["GET"]"#;
    let routes = [
        route("/api", ""),
        route("/api/orders", ""),
        route("/api/orders", get).replace("\"r/api", "\"get/api"),
    ];
    let translated = yaml(&[&format!("[{}]", routes.join(","))]);
    let at = |said: &str| {
        translated
            .find(said)
            .unwrap_or_else(|| panic!("{said}: {translated}"))
    };
    assert!(at("method: [GET]") < at("path: \"/api/orders\" }"));
    assert!(at("path: \"/api/orders\" }") < at("path: \"/api\" }"));
    assert!(translated.contains("routes are sorted"));
}

#[test]
fn a_second_settings_file_discarded_the_first() {
    let first = "gateway.ratelimit: { fallback-enabled: false, fallback-reduction: 0.25 }\nspring.data.redis: { host: cache, password: hunter2 }";
    let second = "gateway.ratelimit.fallback-reduction: 0.75\nserver.port: 8081";
    let translated = yaml(&[first, second]);
    for said in [
        "redis://cache:6379",
        "on_failure: allow",
        "local_share: 0.75",
        "127.0.0.1:8081",
        "password:",
    ] {
        assert!(translated.contains(said), "{said}: {translated}");
    }
}

#[test]
fn a_variable_without_a_default_allowed_everything_without_redis() {
    for (flag, expected) in [
        ("${FALLBACK}", "on_failure: local"),
        ("${FALLBACK:}", "on_failure: local"),
        ("${FALLBACK:true}", "on_failure: local"),
        ("${FALLBACK:false}", "on_failure: allow"),
    ] {
        let text = format!("gateway.ratelimit.fallback-enabled: '{flag}'");
        let translated = yaml(&[&text]);
        assert!(translated.contains(expected), "{flag}: {translated}");
        assert!(translated.contains("is a variable"), "{flag}: {translated}");
    }
}

#[test]
fn a_renamed_consumer_limit_also_had_a_renamed_key() {
    let settings = "gateway:\n  ratelimit:\n    redis-key-prefix: ratelimit\n";
    let consumer = |name: &str| {
        format!(r#"{{ "consumerId": "{name}", "requestsPerSecond": 1, "burstSize": 1 }}"#)
    };
    let names = ["a b", "a-b", "route-2", "route", "_x", "x"];
    let consumers = names.map(consumer).join(", ");
    let translated = yaml(&[settings, &format!("[{consumers}]")]);
    tidegate_config::Config::from_yaml(&translated).expect("no two share a key");
    let hashed = |stem: &str, name: &str| format!("{stem}-{}", short_hash(name));
    for (limit, key) in [
        (hashed("a-b", "a b"), "{limit}"),
        ("a-b".to_owned(), "{limit}"),
        ("route-2".to_owned(), "{limit}"),
        (hashed("route", "route"), "route"),
        (hashed("x", "_x"), "_x"),
        ("x".to_owned(), "{limit}"),
    ] {
        let after = translated.split_once(&format!("- name: {limit}\n"));
        let (_, after) = after.unwrap_or_else(|| panic!("{limit}: {translated}"));
        let template = after.lines().find(|line| line.contains("template: "));
        let expected = format!("\"ratelimit:consumer:{key}\"");
        assert!(template.unwrap().ends_with(&expected), "{limit}: {after}");
    }
}

#[test]
fn a_policy_took_the_name_of_a_later_one() {
    let policy = |id: &str, name: &str, rate: u64| {
        format!(
            r#"{{ "id": "{id}", "name": "{name}", "requestsPerSecond": {rate}, "burstSize": 50 }}"#
        )
    };
    let rate_of = |policies: &[String], name: &str| {
        let translated = yaml(&[&format!("[{}]", policies.join(", "))]);
        let after = translated.split_once(&format!("- name: {name}\n"));
        let (_, after) = after.unwrap_or_else(|| panic!("{name}: {translated}"));
        let rate = after.lines().find(|line| line.contains("rate: "));
        rate.unwrap().trim().to_owned()
    };
    let (spaced, plain) = (policy("1", "gold plan", 7), policy("2", "gold-plan", 8));
    let both = [spaced, plain];
    assert_eq!(rate_of(&both, "gold-plan"), "rate: 8/s burst 50");
    let hashed = format!("gold-plan-{}", short_hash("gold plan"));
    assert_eq!(rate_of(&both, &hashed), "rate: 7/s burst 50");
    // Of two policies with the same name, neither gets the name that the other had.
    let (one, other) = (policy("1", "gold", 1), policy("2", "gold", 2));
    let of_one = format!("gold-{}", short_hash("gold\n1"));
    for both in [[one.clone(), other.clone()], [other, one]] {
        assert_eq!(rate_of(&both, &of_one), "rate: 1/s burst 50");
    }
}

#[test]
fn a_consumer_took_the_name_of_a_later_one() {
    let consumer = |name: &str, rate: u64| {
        format!(r#"{{ "consumerId": "{name}", "requestsPerSecond": {rate}, "burstSize": 9 }}"#)
    };
    let (odd, plain) = (consumer("_x", 1), consumer("x", 2));
    for both in [[&odd, &plain], [&plain, &odd]] {
        let [first, second] = both;
        let translated = yaml(&[&format!("[{first}, {second}]")]);
        let (_, after) = translated.split_once("- name: x\n").expect("it is there");
        let rate = after.lines().find(|line| line.contains("rate: "));
        assert_eq!(rate.unwrap().trim(), "rate: 2/s burst 9", "{translated}");
    }
}

#[test]
fn a_count_reset_by_a_second_policy_was_not_reported() {
    let settings = "gateway.ratelimit.redis-key-prefix: ratelimit";
    let second = POLICY.replace("\"1\"", "\"2\"").replace("standard", "gold");
    let note = "existing buckets are not used";
    assert!(yaml(&[settings, POLICY, &second]).contains(note));
    assert!(!yaml(&[settings, POLICY]).contains(note));
}

#[test]
fn a_second_policy_put_the_policy_into_the_documented_key() {
    let settings = "gateway.ratelimit.redis-key-prefix: rl";
    let second = POLICY
        .replace("\"1\"", "\"2\"")
        .replace("standard", "gold plan")
        .replace("50", "500");
    let routes = [
        route("/api", r#", "rateLimitId": "1""#).replace("\"r/api", "\"long"),
        route("/api/v2", r#", "rateLimitId": "2""#),
        route("/free", ""),
    ];
    let routes = format!("[{}]", routes.join(", "));
    let translated = yaml(&[settings, POLICY, &second, &routes]);
    let config = tidegate_config::Config::from_yaml(&translated).unwrap();
    assert_eq!(config.policies.len(), 1, "{translated}");
    let limit = &config.policies[0].limits[0];
    let template = limit.template.as_ref().map(ToString::to_string);
    assert_eq!(template.as_deref(), Some("rl:{route}:{ip}"));
    let table = config.plans[0].inline().expect("it is in the file");
    let carried = |id: &str| {
        let route = config.routes.iter().find(|route| route.name == id);
        let requests = tidegate_policy::plan::RateName::default();
        let given = table.get(&route?.name)?.share(&requests)?;
        let tidegate_policy::plan::PlanShare::Rate(rate) = given.share else {
            return None;
        };
        Some(table.rates(&requests)[usize::try_from(rate).unwrap()].to_string())
    };
    assert_eq!(carried("long").as_deref(), Some("10/s burst 50"));
    // A route whose id is not a valid name gets another name, and keeps its plan.
    let renamed = format!("r-api-v2-{}", short_hash("r/api/v2"));
    assert_eq!(carried(&renamed).as_deref(), Some("10/s burst 500"));
    assert!(
        translated.contains("its buckets start full"),
        "{translated}"
    );
    // A route without a policy gets `none`.
    assert!(translated.contains("policy: none"), "{translated}");
}

#[test]
fn a_duplicate_page_hid_a_missing_one() {
    let consumer = |name: &str| {
        format!(r#"{{ "consumerId": "{name}", "requestsPerSecond": 1, "burstSize": 1 }}"#)
    };
    let page = |names: [&str; 2]| {
        let [one, other] = names.map(consumer);
        format!("{{ \"items\": [\n{one},\n{other}], \"total\": 3 }}")
    };
    let told = errors(&[&page(["a", "b"]), &page(["a", "b"])]);
    for said in [
        "1.yml:2:",
        "the limit of the consumer `a` is a duplicate",
        "the first is in 0.yml, line 2",
        "1.yml:3:",
        "the limit of the consumer `b` is a duplicate",
        "found 2 of 3 limits of consumers",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // A duplicate is also an error if no item is missing.
    let told = errors(&[&page(["a", "b"]), &page(["b", "c"])]);
    assert!(told.contains("`b` is a duplicate"), "{told}");
    assert!(!told.contains("found "), "{told}");
    let routes = format!("[{}, {}]", route("/a", ""), route("/a", ""));
    assert!(errors(&[&routes]).contains("the route `r/a` is a duplicate"));
    assert!(errors(&[POLICY, POLICY]).contains("the policy `1` is a duplicate"));
    // A draft route counts as listed, once.
    let draft = route("/b", r#", "status": "draft""#);
    let told = errors(&[&format!(r#"{{ "items": [{draft}, {draft}], "total": 2 }}"#)]);
    assert!(told.contains("found 1 of 2 routes"), "{told}");
}
