use crate::world::{Hello, TWO, call, get, header, statuses};
use std::time::Duration;
use tidegate::redis::{Address, ConnectionSettings, RedisOptions, RedisStore, RedisTopology};
use tidegate::{AnyStore, Limiter, OnFailure};
use tidegate_testkit::redis::Server;
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;

async fn limiter(server: &Server, on_failure: OnFailure) -> Limiter<RedisStore> {
    let address = Address::new("127.0.0.1", server.port());
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
    let settings = settings.timeout(Duration::from_secs(2));
    let store = RedisStore::connect(settings, RedisOptions::default()).await;
    let builder = Limiter::builder().yaml(TWO).expect("a valid config");
    let builder = builder.on_failure(on_failure).max_keys(1_000);
    builder
        .build_with(store.expect("the server is up"))
        .expect("a limiter")
}

#[tokio::test]
async fn instances_share_redis_buckets() {
    let server = Server::start();
    let (app, other) = (Hello::default(), Hello::default());
    let one = limiter(&server, OnFailure::Error).await;
    let two = limiter(&server, OnFailure::Error).await;
    let one = RateLimitLayer::new(one).layer(app.clone());
    let two = RateLimitLayer::new(two).layer(other.clone());
    assert_eq!(statuses(&one, [get()]).await, [200]);
    assert_eq!(statuses(&two, [get(), get()]).await, [200, 429]);
    assert_eq!(statuses(&one, [get()]).await, [429]);
    assert_eq!((app.called(), other.called()), (1, 1));
}

#[tokio::test]
async fn without_redis_each_failure_policy_applies() {
    let server = Server::start();
    let mut services = Vec::new();
    for (word, expected) in [
        (OnFailure::Allow, [200, 200, 200]),
        // The local share. Default: half.
        (OnFailure::Local, [200, 429, 429]),
        (OnFailure::Deny, [503, 503, 503]),
        (OnFailure::Error, [503, 503, 503]),
    ] {
        let app = Hello::default();
        let layer = RateLimitLayer::new(limiter(&server, word).await);
        services.push((word, expected, layer.layer(app.clone()), app));
    }
    server.kill9();
    for (word, expected, service, app) in &services {
        assert_eq!(
            statuses(service, [get(), get(), get()]).await,
            *expected,
            "{word:?}"
        );
        let passed = expected.iter().filter(|status| **status == 200).count();
        assert_eq!(app.called(), passed as u64, "{word:?}");
    }
    let (_, _, erring, _) = &services[3];
    let answer = call(erring, get()).await;
    assert_eq!(header(&answer, "retry-after"), Some("1"));
    assert_eq!(header(&answer, "x-ratelimit-limit"), None);
    let body: serde_json::Value = serde_json::from_slice(answer.body()).expect("JSON");
    assert_eq!(body["status"], 503);
}

#[tokio::test]
async fn the_layer_uses_the_store_of_the_config() {
    let server = Server::start();
    let (one, other) = (started(&server).await, started(&server).await);
    let (app, another) = (Hello::default(), Hello::default());
    let layer = RateLimitLayer::new(one.clone());
    let (first, second) = (
        layer.layer(app.clone()),
        RateLimitLayer::new(other.clone()).layer(another.clone()),
    );
    assert_eq!(statuses(&first, [get()]).await, [200]);
    assert_eq!(statuses(&second, [get(), get()]).await, [200, 429]);
    assert_eq!((app.called(), another.called()), (1, 1));
    let refused = call(&first, get()).await;
    assert_eq!(header(&refused, "x-ratelimit-remaining"), Some("0"));
    one.leave().await;
    other.leave().await;
}

async fn started(server: &Server) -> Limiter<AnyStore> {
    let store = format!("store: {{ url: 'redis://127.0.0.1:{}' }}", server.port());
    let builder = Limiter::builder().yaml(&format!("{store}{TWO}"));
    let connecting = builder.expect("a valid config").connect();
    connecting.await.expect("the server is up")
}
