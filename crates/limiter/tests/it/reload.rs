//! Settings made in code take precedence over every configuration that is loaded later.

use crate::failure::CuttableStore;
use crate::surroundings::Folder;
use tidegate::{
    BuildError, Config, KeyPart, LimitSpec, Limiter, LocalShare, ManualClock, NoEnvironment,
    OnFailure, Request, Timestamp,
};
use tidegate_testkit::laws::block_on;

const PER_KEY: &str = "policies: [{ name: api, limits: [{ name: x, key: api-key, rate: 1/h }] }]";
const PER_CLIENT: &str = "policies: [{ name: api, limits: [{ name: x, key: ip, rate: 1/h }] }]";

fn config(text: &str) -> Config {
    Config::from_yaml(text).expect("a valid config")
}

#[test]
fn a_secret_set_in_code_was_lost_by_a_reload_and_denied_keys_passed() {
    let folder = Folder::new("reload-secret");
    let file = folder.write("limits.yaml", PER_KEY);
    let store = tidegate::store_from_yaml("{ url: memory, key_secret: s3cret }", &NoEnvironment);
    let builder = Limiter::builder().file(&file).unwrap();
    let limiter = builder.store(store.unwrap()).build().unwrap();
    let allowed = || {
        let asked = Request::new().api_key("k");
        limiter.check_now(&asked).unwrap().is_allowed()
    };
    assert!(allowed());
    assert!(!allowed());
    limiter.reload_file(&file).unwrap();
    assert!(!allowed(), "the same text, the same bucket");
    limiter.reload(config(PER_KEY)).unwrap();
    assert!(!allowed());
    // Settings made in code take precedence over the new configuration.
    let other = format!("store: {{ key_secret: other }}\n{PER_KEY}");
    limiter.reload(config(&other)).unwrap();
    assert!(!allowed());
}

#[test]
fn client_identification_was_lost_by_a_reload() {
    let client =
        tidegate::client_from_yaml("{ trusted_proxies: [10.0.0.0/8], ipv6_prefix: 48 }").unwrap();
    let builder = Limiter::builder().config(config(PER_CLIENT));
    let limiter = builder.client(client).build().unwrap();
    let text = format!("client: {{ trusted_proxies: [], ipv6_prefix: 64 }}\n{PER_CLIENT}");
    limiter.reload(config(&text)).unwrap();
    let rules = limiter.rules().unwrap();
    assert!(rules.client().trusts("10.0.0.7".parse().unwrap()));
    let asked = Request::new().ip("2001:db8:1:2::3".parse().unwrap());
    let decision = limiter.check_now(&asked).unwrap();
    let key = decision.binding().unwrap().key().to_owned();
    assert_eq!(key, "ip:2001:db8:1::/48");
}

#[test]
fn failure_settings_in_code_were_lost_by_a_reload() {
    let text = "policies: [{ name: api, limits: [{ name: x, rate: 100/h }] }]";
    let clock = ManualClock::at(Timestamp::from_micros(1));
    let admitted = |share: Option<LocalShare>, on_failure: Option<OnFailure>, store| {
        let wire = CuttableStore::new(&clock);
        wire.cut();
        let mut builder = Limiter::builder().config(config(text)).clock(clock.clone());
        if let Some(share) = share {
            builder = builder.local_share(share);
        }
        if let Some(on_failure) = on_failure {
            builder = builder.on_failure(on_failure);
        }
        if let Some(store) = store {
            builder = builder.store(tidegate::store_from_yaml(store, &NoEnvironment).unwrap());
        }
        let limiter = builder.build_with(wire).unwrap();
        limiter.reload(config(text)).unwrap();
        let asked = || block_on(limiter.check(&Request::new())).unwrap();
        (0..100).filter(|_| asked().is_allowed()).count()
    };
    let tenth = Some(LocalShare::Millionths(100_000));
    assert_eq!(admitted(None, None, None), 50);
    assert_eq!(admitted(tenth, None, None), 10);
    assert_eq!(admitted(None, Some(OnFailure::Deny), None), 0);
    assert_eq!(admitted(None, None, Some("{ local_share: 0.2 }")), 20);
    assert_eq!(admitted(None, None, Some("{ on_failure: deny }")), 0);
    // A single setting takes precedence over the settings of the whole store.
    assert_eq!(admitted(tenth, None, Some("{ local_share: 0.2 }")), 10);
}

#[test]
fn limits_in_code_were_lost_by_a_reload() {
    let limit = LimitSpec::new("in-code").key(KeyPart::User).band("1/h");
    let limiter = Limiter::builder().limit(limit).build().unwrap();
    let allowed = || {
        let asked = Request::new().policy("default").user("ann");
        limiter.check_now(&asked).unwrap().is_allowed()
    };
    assert!(allowed());
    limiter.reload(config(PER_CLIENT)).unwrap();
    assert!(!allowed(), "the limit is there, and so is its bucket");
    // As at build time: the policies of the configuration come first.
    let first = limiter.rules().unwrap().policy(None).unwrap().name.clone();
    assert_eq!(first, "api");
}

#[test]
fn a_second_default_keeps_the_running_config() {
    let limit = LimitSpec::new("in-code").band("1/h");
    let builder = Limiter::builder().config(config(PER_CLIENT));
    let limiter = builder.limit(limit).build().unwrap();
    let second = PER_CLIENT.replace("name: api", "name: default");
    let error = limiter.reload(config(&second)).unwrap_err();
    assert!(matches!(error, BuildError::TwoDefaults), "{error}");
    let rules = limiter.rules().unwrap();
    assert!(rules.policy(Some("api")).is_some());
    assert_eq!(
        rules.policy(Some("default")).unwrap().limits[0].name,
        "in-code"
    );
}

#[test]
fn a_file_with_an_environment_of_its_own_could_not_be_reloaded() {
    let folder = Folder::new("reload-environment");
    let text = "policies: [{ name: api, limits: [{ name: x, rate: '${RATE}' }] }]";
    let file = folder.write("limits.yaml", text);
    let told = |name: &str| (name == "RATE").then(|| "7/s".to_owned());
    let builder = Limiter::builder().environment(told).file(&file).unwrap();
    let limiter = builder.build().unwrap();
    limiter.reload_file(&file).unwrap();
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(decision.binding().unwrap().band(), Some("7/s"));

    // With an environment that looks nothing up, a reload looks nothing up either.
    let path = text.replace("${RATE}", "${PATH}");
    let closed = Limiter::builder().environment(NoEnvironment);
    let closed = closed.config(config(PER_CLIENT)).build().unwrap();
    let error = closed.reload_file(folder.write("path.yaml", &path));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("this environment has no "), "{error}");
}
