use super::*;
use tidegate_config::NoEnvironment;

fn config(redis: &str) -> Config {
    config_with("", redis)
}

fn config_with(store: &str, redis: &str) -> Config {
    let text = format!(
        "
store: {{ url: 'redis://127.0.0.1', {store} redis: {{ {redis} }} }}
policies:
  - name: api
    limits:
      - {{ name: per-client, key: ip, match: {{ path: /api }}, rate: 10/s burst 50 }}
      - {{ name: per-user, key: user, rate: 10/s }}
      - {{ name: per-key, key: api-key, missing: skip, rate: 10/s }}
      - {{ name: all, rate: 100/s }}
  - name: web
    limits:
      - name: per-tenant
        key: ['header:X-Tenant', route]
        missing: refuse
        bands: [{{ rate: 10/s, label: s }}, {{ rate: 100/h, label: h }}]
      - {{ name: log, key: user, algorithm: sliding-log, rate: 10/min }}
      - {{ name: window, key: user, algorithm: fixed-window, rate: 10/min }}
"
    );
    Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|errors| panic!("{errors}"))
}

fn args(words: &[&str]) -> BucketQuery {
    let mut query = BucketQuery::default();
    let mut flag = "";
    for word in words {
        let value = Some((*word).to_owned());
        match flag {
            _ if word.starts_with("--") => flag = word,
            "" => query.bucket = value,
            "--policy" => query.policy = value,
            "--limit" => query.limit = value,
            "--band" => query.band = value,
            "--key" => query.key.extend(value),
            other => panic!("{other}"),
        }
    }
    query
}

fn found_in(redis: &str, words: &[&str]) -> String {
    found_with(config(redis), words)
}

fn found_with(mut config: Config, words: &[&str]) -> String {
    match NamedBucket::find(&mut config, &args(words)) {
        Ok(named) => named.bucket,
        Err(failure) => format!("error: {failure}"),
    }
}

fn found(words: &[&str]) -> String {
    found_in("layout: packed", words)
}

#[test]
fn a_bucket_is_found_by_its_name_and_by_its_key() {
    let name = "api/per-client/ip:192.0.2.1";
    assert_eq!(found(&[name]), name);
    assert_eq!(found(&["tg:{ip:192.0.2.1}api/per-client"]), name);
    assert_eq!(
        found_in("tag: policy", &["tg:{api}per-client/ip:192.0.2.1"]),
        name
    );
    let other = "web/per-tenant/header.x-tenant:a,route:b";
    assert_eq!(
        found_in(
            "prefix: 'rl/'",
            &["rl/{header.x-tenant:a,route:b}web/per-tenant"]
        ),
        other
    );
}

#[test]
fn a_bucket_is_found_by_its_subject() {
    let per_client = |words: &[&str]| found(&[&["--limit", "per-client"], words].concat());
    assert_eq!(
        per_client(&["--key", "192.0.2.1"]),
        "api/per-client/ip:192.0.2.1"
    );
    assert_eq!(
        per_client(&["--key", "ip=192.0.2.1"]),
        "api/per-client/ip:192.0.2.1"
    );
    assert_eq!(
        per_client(&["--key", "2001:db8::7"]),
        "api/per-client/ip:2001:db8::/64"
    );
    assert_eq!(found(&["--limit", "all"]), "api/all/global");
    assert_eq!(
        found(&["--limit", "per-user", "--key", "a=b"]),
        "api/per-user/user:a%3Db"
    );
    let tenant = ["--policy", "web", "--limit", "per-tenant", "--key"];
    let expected = "web/per-tenant/header.x-tenant:acme,route:r";
    assert_eq!(found(&[&tenant[..], &["acme", "r"]].concat()), expected);
    let named = ["route=r", "header:X-Tenant=acme"];
    assert_eq!(found(&[&tenant[..], &named].concat()), expected);
}

#[test]
fn the_address_replaces_an_absent_identity() {
    let bucket = found(&["--limit", "per-user", "--key", "ip=192.0.2.1"]);
    assert_eq!(bucket, "api/per-user/user~ip:192.0.2.1");
    let nobody = found(&["--limit", "per-user"]);
    assert!(nobody.contains("add --key user=…"), "{nobody}");
    let skipped = found(&["--limit", "per-key", "--key", "ip=192.0.2.1"]);
    assert!(skipped.contains("add --key api-key=…"), "{skipped}");
}

#[test]
fn secrets_are_hashed_as_decisions_hash_them() {
    let plain = found(&["--limit", "per-key", "--key", "hunter2"]);
    let keyed = found_with(
        config_with("key_secret: pepper,", ""),
        &["--limit", "per-key", "--key", "hunter2"],
    );
    assert!(plain.starts_with("api/per-key/api-key:#"), "{plain}");
    assert!(!plain.contains("hunter2"), "{plain}");
    assert_ne!(plain, keyed);
}

/// Returns the names to try in a configuration with a limit by token and identity headers.
fn names(words: &[&str]) -> Vec<String> {
    let text = "
store: { url: 'redis://127.0.0.1' }
client:
  user: { header: X-User }
  token: { header: X-Token }
policies:
  - name: api
    limits:
      - { name: per-token, key: token, missing: address, rate: 10/s }
      - { name: per-user, key: [user, route], rate: 10/s }
      - { name: per-client, key: ip, rate: 10/s }
";
    let mut config = Config::parse(text, "x", &NoEnvironment).unwrap();
    match NamedBucket::find(&mut config, &args(words)) {
        Ok(named) => [vec![named.bucket], named.others].concat(),
        Err(failure) => vec![format!("error: {failure}")],
    }
}

#[test]
fn a_token_given_by_part_name_was_taken_for_another_token() {
    let plain = names(&["--limit", "per-token", "--key", "hunter2"]);
    assert!(
        plain[0].starts_with("api/per-token/attr.token:#"),
        "{plain:?}"
    );
    for words in [
        vec!["--limit", "per-token", "--key", "token=hunter2"],
        vec!["--limit", "per-token", "--key", "attr:token=hunter2"],
        vec!["--limit", "per-token", "--key", "header:x-token=hunter2"],
        vec!["api/per-token/attr.token:hunter2"],
        vec!["tg:{attr.token:hunter2}api/per-token"],
    ] {
        assert_eq!(names(&words)[0], plain[0], "{words:?}");
    }
    let hash = plain[0].rsplit('#').next().unwrap();
    for words in [
        vec!["--limit", "per-token", "--key", hash],
        vec!["--limit", "per-token", "--key", &format!("token=#{hash}")],
        vec![&*plain[0]],
        vec![&*format!("api/per-token/attr.token:{hash}")],
        vec![&*format!("tg:{{attr.token:#{hash}}}api/per-token")],
    ] {
        assert!(names(&words).contains(&plain[0]), "{words:?}");
    }
}

#[test]
fn names_are_normalized_as_in_decisions() {
    for (words, expected) in [
        (
            vec!["api/per-client/ip:2001:db8::7"],
            "api/per-client/ip:2001:db8::/64",
        ),
        (
            vec!["api/per-client/ip:2001:db8::/64"],
            "api/per-client/ip:2001:db8::/64",
        ),
        (
            vec!["api/per-token/attr.token~ip:2001:db8::7"],
            "api/per-token/attr.token~ip:2001:db8::/64",
        ),
        (
            vec!["--limit", "per-token", "--key", "ip=192.0.2.1"],
            "api/per-token/attr.token~ip:192.0.2.1",
        ),
        (
            vec!["api/per-user/user:a b,route:r"],
            "api/per-user/user:a%20b,route:r",
        ),
        (
            vec!["api/per-user/user:a%20b,route:r"],
            "api/per-user/user:a%20b,route:r",
        ),
        (vec!["api/per-user/nonsense"], "api/per-user/nonsense"),
        (
            vec![
                "--limit",
                "per-user",
                "--key",
                "header:x-user=ann",
                "route=r",
            ],
            "api/per-user/user:ann,route:r",
        ),
    ] {
        assert_eq!(names(&words)[0], expected, "{words:?}");
    }
}

#[test]
fn errors_for_unknown_names_list_the_known_ones() {
    for (words, said) in [
        (vec!["nonsense"], "neither the name of a bucket"),
        (
            vec!["api/nope/ip:1"],
            "has no limit `nope`; it has `per-client`, `per-user`",
        ),
        (
            vec!["nope/per-client/x"],
            "unknown policy `nope`; expected `api`, `web`",
        ),
        (vec!["tg:instances"], "the list of instances"),
        (vec!["tg:seal"], "the secret of reservation ids"),
        (
            vec!["tg:{#0123}api/per-user"],
            "the hash of a long bucket name",
        ),
        (
            vec!["--limit", "per-client", "--key", "nowhere"],
            "`nowhere` is not an address",
        ),
        (
            vec!["--limit", "per-client", "--key", "192.0.2.1", "x"],
            "1 value too many",
        ),
        (
            vec!["--limit", "per-client", "--key", "192.0.2.1", "--band", "x"],
            "no band `x`",
        ),
    ] {
        let found = found(&words);
        assert!(
            found.starts_with("error: ") && found.contains(said),
            "{found}"
        );
    }
}

#[test]
fn keys_of_the_open_layout_are_read_backwards() {
    let open = |key: &str| found_in("layout: open", &[key]);
    assert_eq!(
        open("ratelimit:per-client:192.0.2.1"),
        "api/per-client/ip:192.0.2.1"
    );
    assert_eq!(
        open("ratelimit:per-client:2001:db8::/64"),
        "api/per-client/ip:2001:db8::/64"
    );
    assert_eq!(
        open("ratelimit:per-user:~ip:192.0.2.1"),
        "api/per-user/user~ip:192.0.2.1"
    );
    assert_eq!(open("ratelimit:per-user:%7Ex"), "api/per-user/user:~x");
    assert_eq!(open("ratelimit:all:global"), "api/all/global");
    assert_eq!(open("user:ann"), "web/log/user:ann");
    let shared = open("rate_limits");
    assert!(shared.contains("holds many buckets"), "{shared}");
    let tenant = "web/per-tenant/header.x-tenant:acme,route:r";
    assert_eq!(open("ratelimit:web:per-tenant:acme:r:h"), tenant);
    let named = "layout: open, template: 'x:{limit}:{key}:{band}'";
    assert_eq!(
        found_in(named, &["x:per-client:192.0.2.1:default"]),
        "api/per-client/ip:192.0.2.1"
    );
}

#[test]
fn patterns_match_every_key_of_a_limit() {
    let patterns = |store: &str, policy: &str, limit: &str| {
        let mut config = config(store);
        let redis = config.store.target.redis().unwrap().clone();
        let policy = take(&mut config, policy, limit).unwrap();
        keys_of_all(&redis, &policy.name, &policy.limits[0])
    };
    assert_eq!(patterns("prefix: 'a*b'", "api", "all"), ["a\\*b{*}api/all"]);
    assert_eq!(patterns("tag: policy", "api", "all"), ["tg:{api}all/*"]);
    assert_eq!(patterns("layout: open", "api", "all"), ["ratelimit:all:*"]);
    assert_eq!(
        patterns("layout: open", "web", "per-tenant"),
        [
            "ratelimit:web:per-tenant:*:s",
            "ratelimit:web:per-tenant:*:h"
        ]
    );
    assert_eq!(patterns("layout: open", "web", "log"), ["user[:~]*"]);
    assert_eq!(patterns("layout: open", "web", "window"), ["rate_limits"]);
    let config = config("layout: open");
    assert!(is_only_of(&config, "web", "log", "user~ip:192.0.2.1"));
    assert!(is_only_of(&config, "web", "window", "rate_limits"));
    assert!(is_only_of(&config, "api", "all", "ratelimit:all:global"));
    assert!(!is_only_of(&config, "api", "all", "ratelimit:per-user:x"));
}

/// If changed numbers use new keys, the names end with a hash of the numbers.
#[test]
fn keys_with_a_quota_hash_are_matched_to_their_limits() {
    let text = "
store: { url: 'redis://127.0.0.1', redis: { layout: open } }
policies:
  - name: api
    limits:
      - { name: trial, key: user, rate: 10/d, on_change: reset }
      - { name: paid, key: user, rate: 10/d }
      - { name: window, key: user, rate: 10/d, algorithm: fixed-window, on_change: reset }
";
    let read = || Config::parse(text, "x", &NoEnvironment).unwrap();
    let found = |key: &str| match NamedBucket::find(&mut read(), &args(&[key])) {
        Ok(named) => named.bucket,
        Err(failure) => format!("error: {failure}"),
    };
    assert_eq!(found("ratelimit:trial:ann~5f0c21ab"), "api/trial/user:ann");
    assert_eq!(found("ratelimit:paid:ann"), "api/paid/user:ann");
    let shared = found("rate_limits~5f0c21ab");
    assert!(shared.contains("holds many buckets"), "{shared}");
    let config = read();
    let pattern = |limit: usize| glob("api", &config.policies[0].limits[limit], None).unwrap();
    assert_eq!(pattern(0), "ratelimit:trial:*~????????");
    assert_eq!(pattern(1), "ratelimit:paid:*");
    let key = "ratelimit:trial:ann~5f0c21ab";
    assert!(is_only_of(&config, "api", "trial", key));
    assert!(!is_only_of(&config, "api", "paid", key));
}

/// Returns two policies that a route joins, in a store that `store` describes.
fn joined(store: &str) -> Config {
    let text = format!(
        "
store: {{ url: 'redis://127.0.0.1', redis: {{ {store} }} }}
routes: [{{ name: all, upstreams: 'http://127.0.0.1:9', policy: [api, web] }}]
policies:
  - {{ name: api, limits: [{{ name: per-client, key: ip, rate: 1/s }}] }}
  - {{ name: web, limits: [{{ name: per-user, key: user, rate: 1/s }}] }}
"
    );
    Config::parse(&text, "x", &NoEnvironment).unwrap_or_else(|errors| panic!("{errors}"))
}

const OPEN_BY_POLICY: &str = "layout: open, template: 'x:{policy}:{limit}:{key}'";

#[test]
fn joined_policies_use_the_buckets_of_their_origins() {
    let found =
        |store: &str, words: &[&str]| match NamedBucket::find(&mut joined(store), &args(words)) {
            Ok(named) => {
                assert_eq!(named.policy(), "web");
                named.bucket
            }
            Err(failure) => format!("error: {failure}"),
        };
    let bucket = "web/per-user/user:ann";
    for store in ["layout: packed", OPEN_BY_POLICY] {
        for words in [
            &["web/per-user/user:ann"][..],
            &["api+web/per-user/user:ann"],
            &["--policy", "web", "--limit", "per-user", "--key", "ann"],
            &["--policy", "api+web", "--limit", "per-user", "--key", "ann"],
        ] {
            assert_eq!(found(store, words), bucket, "{store} {words:?}");
        }
        let unknown = found(store, &["--policy", "nope", "--limit", "per-user"]);
        assert!(unknown.ends_with("expected `api`, `web`"), "{unknown}");
        let unknown = found(store, &["--policy", "api+web", "--limit", "nope"]);
        assert!(unknown.contains("`per-client`, `per-user`"), "{unknown}");
    }
    assert_eq!(found("", &["tg:{user:ann}web/per-user"]), bucket);
    assert_eq!(found(OPEN_BY_POLICY, &["x:web:per-user:ann"]), bucket);
    // Such a key is never written.
    let never = found(OPEN_BY_POLICY, &["x:api+web:per-user:ann"]);
    assert!(never.starts_with("error: "), "{never}");
}

#[test]
fn a_key_belongs_to_one_limit_even_in_a_joined_policy() {
    for (store, key) in [
        ("layout: open", "ratelimit:per-user:ann"),
        (OPEN_BY_POLICY, "x:web:per-user:ann"),
    ] {
        assert!(
            is_only_of(&joined(store), "web", "per-user", key),
            "{store}"
        );
        assert!(!is_only_of(&joined(store), "api", "per-client", key));
    }
    let by = |limit| policy_name(&joined(""), Some("api+web"), limit).unwrap();
    assert_eq!([by("per-client"), by("per-user")], ["api", "web"]);
    assert_eq!(policy_name(&joined(""), None, "per-client").unwrap(), "api");
}

#[test]
fn a_hash_was_reported_to_find_a_bucket_named_by_the_secret() {
    let not_found = |store: &str, limit: &str| {
        let hash = "0123456789abcdef0123456789abcdef";
        let words = ["--limit", limit, "--key", hash];
        let named = NamedBucket::find(&mut config(store), &args(&words)).unwrap();
        named.not_found().to_string()
    };
    let literal = "layout: open, key_names: literal";
    let hint = "with `key_names: literal`, its hash finds only a block";
    assert!(not_found(literal, "per-key").contains(hint));
    assert!(!not_found(literal, "per-user").contains(hint));
    assert!(!not_found("layout: open", "per-key").contains(hint));
}

#[test]
fn with_literal_names_a_hash_finds_the_bucket_stored_under_it() {
    let digits = "0123456789abcdef0123456789abcdef";
    let mut config = config("layout: open, key_names: literal");
    let words = ["--limit", "per-key", "--key", digits];
    let named = NamedBucket::find(&mut config, &args(&words)).unwrap();
    assert_eq!(named.bucket, format!("api/per-key/api-key:{digits}"));
    assert_eq!(named.others, [format!("api/per-key/api-key:#{digits}")]);
}

#[test]
fn a_key_with_a_literal_value_is_parsed_back() {
    let template = "template: 'fluxgate:{policy}:{limit}:{key}:{band}'";
    let store = format!("layout: open, key_names: literal, {template}");
    let key = "fluxgate:api:per-key:a:b=c+d/e,f%7B:default";
    let named = NamedBucket::find(&mut config(&store), &args(&[key])).unwrap();
    assert_eq!(named.bucket, "api/per-key/api-key:a%3Ab%3Dc%2Bd%2Fe%2Cf%7B");
}
