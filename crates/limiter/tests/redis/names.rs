use crate::runtime;
use std::collections::BTreeMap;
use tidegate::redis::open_layout;
use tidegate::{Config, Limiter, Request, Store};
use tidegate_core::Quota;
use tidegate_policy::Scratch;
use tidegate_testkit::redis::Server;

fn config(server: &Server, limits: &str) -> Config {
    let text = format!(
        "
store: {{ url: '{}', timeout: 10s, redis: {{ layout: open }} }}
policies: [{{ name: api, limits: [{limits}] }}]",
        server.url()
    );
    Config::from_yaml(&text).expect("a valid config")
}

#[test]
fn limits_that_a_reload_brings_are_named_by_their_templates() {
    let server = Server::start();
    let old = "{ name: old, key: user, rate: 10/h, template: 'old:{user}' }";
    let new = "{ name: new, key: user, rate: 10/h, template: 'new:{user}' }";
    runtime().block_on(async {
        let builder = Limiter::builder().config(config(&server, old));
        let limiter = builder.connect().await.expect("the server is up");
        let ann = Request::new().user("ann");
        let ask = async || limiter.check(&ann).await.expect("a decision");
        assert!(ask().await.is_allowed());
        limiter
            .reload(config(&server, &format!("{old}, {new}")))
            .expect("it is taken");
        let decision = ask().await;
        let left: Vec<u64> = decision.applied().map(|it| it.remaining()).collect();
        assert_eq!(left, [8, 9], "the old bucket keeps counting");
    });
    let mut keys = server.client().command(&["KEYS", "*"]).texts();
    keys.sort_unstable();
    assert_eq!(keys, ["new:ann", "old:ann"]);
}

const FLUXGATE: &str = "template: 'fluxgate:{policy}:{limit}:{key}:{band}'";

fn literal(url: &str, policy: &str) -> Config {
    let text = format!(
        "
store: {{ url: '{url}', timeout: 10s, redis: {{ layout: open, key_names: literal }} }}
policies: [{{ name: api, {policy} }}]"
    );
    Config::from_yaml(&text).expect("a valid config")
}

#[test]
fn api_keys_with_special_characters_had_other_names_than_in_fluxgate() {
    let limits = format!(
        "limits: [
    {{ name: per-key, key: api-key, rate: 10/h, {FLUXGATE} }},
    {{ name: per-key-2, key: api-key, {FLUXGATE}, bands: [{{ rate: 9/h, label: h }}, {{ rate: 1/s, label: s }}] }},
    {{ name: both, key: [api-key, user], rate: 10/h, {FLUXGATE} }}]"
    );
    let config = literal("redis://127.0.0.1", &limits);
    let (policy, rules) = (&config.policies[0], config.key_rules());
    let layout = open_layout(&config.policies, &rules);
    // Includes values that imitate the key of another limit or band.
    let values = [
        "a",
        "a:b",
        "b",
        "a:b:h",
        "a:b:default",
        "per-key:a",
        "=+/",
        "a%3Ab",
        "%",
        "#",
        "#a",
        "~a",
        "a,user:b",
        ",",
        "a b",
        "a\nb",
        "{a}",
        "a{b}:h",
        "é",
        "a:",
        ":",
        "::",
        "*?[]\\\"'",
    ];
    let hash = |value: &str| rules.hash("api-key", value).expect("it is a secret");
    let mut owners = BTreeMap::new();
    let hashes: Vec<String> = values.iter().map(|value| hash(value)).collect();
    for api_key in values.into_iter().chain(hashes.iter().map(String::as_str)) {
        for user in values {
            let (request, mut scratch) = (
                Request::new().api_key(api_key).user(user),
                Scratch::default(),
            );
            let meeting = policy.meet(&request, &rules, &mut scratch);
            for met in meeting.met {
                let limit = &policy.limits[met.limit];
                let bucket = meeting.bucket(met).to_vec();
                for band in &limit.bands {
                    let (key, _) = layout.name(&bucket, &band.quota).expect("it is open");
                    let key = String::from_utf8(key).expect("it is text");
                    assert!(
                        key.chars()
                            .all(|c| c.is_ascii_graphic() && !"{}".contains(c)),
                        "{key}"
                    );
                    let owner = (bucket.clone(), band.text.clone());
                    let other = owners.insert(key.clone(), owner.clone());
                    assert!(other.is_none_or(|other| other == owner), "{key}");
                    let is_plain = api_key
                        .chars()
                        .all(|c| c.is_ascii_graphic() && !"%{}".contains(c));
                    if limit.name == "per-key" && is_plain && !api_key.starts_with(['#', '~']) {
                        assert_eq!(key, format!("fluxgate:api:per-key:{api_key}:default"));
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_and_marks_of_reservations_had_api_keys_in_the_clear() {
    let server = Server::start();
    let text = format!(
        "reserve: 60s, limits: [{{ name: per-key, key: api-key, rate: 2/h, block: 1h, {FLUXGATE} }}]"
    );
    let config = literal(&server.url(), &text);
    let api_key = "hush:hush";
    let hash = config
        .key_rules()
        .hash("api-key", api_key)
        .expect("it is a secret");
    runtime().block_on(async {
        let builder = Limiter::builder().config(config);
        let limiter = builder.connect().await.expect("the server is up");
        let request = Request::new().api_key(api_key);
        let reserved = limiter.reserve(&request, None).await.expect("a decision");
        let id = reserved.id().expect("the reservation holds").to_owned();
        limiter.commit(&id, 2).await.expect("it is settled");
        assert!(
            limiter
                .check(&request)
                .await
                .expect("a decision")
                .is_blocked()
        );
        let block = Quota::block(1).expect("a valid quota");
        for named in ["hush%3Ahush", &hash] {
            let bucket = format!("api/per-key/api-key:{named}");
            let kept = limiter.store().inspect(bucket.as_bytes(), &block).await;
            assert!(kept.expect("an answer").is_some(), "{named}");
        }
    });
    let keys = server.client().command(&["KEYS", "*"]).texts();
    let mut ours = Vec::new();
    for key in keys {
        let fields = match key.strip_prefix("tg:rate_limits:") {
            Some(_) => server.client().command(&["HKEYS", &key]).texts().concat(),
            None => String::new(),
        };
        if key != "fluxgate:api:per-key:hush:hush:default" {
            ours.push(format!("{key} {fields}"));
        }
    }
    assert!(ours.iter().all(|key| !key.contains("hush")), "{ours:?}");
    let hashed = ours.iter().filter(|key| key.contains(&hash)).count();
    assert_eq!(hashed, 2, "the block and the mark: {ours:?}");
}
