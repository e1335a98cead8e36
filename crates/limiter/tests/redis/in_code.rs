use crate::runtime;
use std::time::Duration;
use tidegate::redis::{self, KeyRules, RedisOptions, RedisStore};
use tidegate::{
    AnyStore, BuildError, KeyPart, LimitSpec, Limiter, LocalShare, NoEnvironment, Request, Store,
    StoreSettings,
};
use tidegate_testkit::redis::Server;

fn limit() -> LimitSpec {
    LimitSpec::new("per-user").key(KeyPart::User).band("2/h")
}

#[test]
fn limits_in_code_could_not_use_redis_buckets() {
    let server = Server::start();
    // The default of 20 ms may be too short on a busy machine.
    let text = format!("{{ url: '{}', timeout: 10s }}", server.url());
    let patient = tidegate::store_from_yaml(&text, &NoEnvironment).expect("a valid config");
    runtime().block_on(async {
        let by_url = Limiter::builder().limit(limit()).store_url(&server.url());
        let by_url = by_url.expect("a URL").connect().await;
        let by_url = by_url.expect("the server is up");
        assert!(matches!(by_url.store(), AnyStore::Redis(_)));

        let ann = Request::new().user("ann");
        let mut left = Vec::new();
        for _ in 0..2 {
            let builder = Limiter::builder().limit(limit()).store(patient.clone());
            let limiter = builder.start().await.expect("the server is up");
            let decision = limiter.check(&ann).await.expect("a decision");
            left.push(
                decision
                    .binding()
                    .expect("the descriptor's limit applies")
                    .remaining(),
            );
        }
        assert_eq!(left, [1, 0], "two limiters, one bucket");
    });
}

#[test]
fn a_store_can_be_opened_with_this_crate_alone() {
    let server = Server::start();
    let store = tidegate::store_from_url(&server.url()).expect("a URL");
    let (settings, _) = redis::settings(&store, &[], &KeyRules::default()).expect("it is Redis");
    runtime().block_on(async {
        let settings = settings.timeout(Duration::from_secs(10));
        let store = RedisStore::connect(settings, RedisOptions::default().prefix("shop:"));
        let store = store.await.expect("the server is up");
        let limiter = Limiter::builder().limit(limit()).build_with(store);
        let asked = limiter.expect("a limiter");
        let asked = asked.check(&Request::new().user("ann")).await;
        assert!(asked.expect("a decision").is_allowed());
    });
    let keys = server.client().command(&["KEYS", "*"]).texts();
    assert!(keys.iter().all(|key| key.starts_with("shop:")), "{keys:?}");
    assert!(!keys.is_empty());
}

#[test]
fn settings_of_a_memory_store_are_rejected_for_redis() {
    let error = redis::settings(&StoreSettings::default(), &[], &KeyRules::default()).unwrap_err();
    assert!(matches!(error, BuildError::Store { .. }));
    let said = "the store `memory` is in memory, not in Redis";
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_share_set_in_code_counts_the_instances() {
    let server = Server::start();
    runtime().block_on(async {
        let builder = Limiter::builder().limit(limit()).store_url(&server.url());
        let builder = builder.expect("a URL").local_share(LocalShare::Auto);
        let limiter = builder.connect().await.expect("the server is up");
        let state = limiter.store().shared_state();
        assert!(state.is_some_and(|state| state.instances().is_some()));
    });
}
