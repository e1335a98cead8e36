//! Buckets that another system left in Redis, continued with the config of `tidegate import`.

use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use crate::kit::redis::RunningConfig;
use tidegate::Request;
use tidegate_testkit::redis::Server;

const POLICIES: &str = r#"[
  { "id": "1", "name": "standard", "requestsPerSecond": 1, "burstSize": 1000 },
  { "id": "2", "name": "premium", "requestsPerSecond": 2, "burstSize": 5000 }
]"#;

const ROUTES: &str = r#"[
  { "id": "orders", "path": "/orders", "upstreamUrl": "http://127.0.0.1:9", "rateLimitId": "1" },
  { "id": "bulk", "path": "/orders/bulk", "upstreamUrl": "http://127.0.0.1:9", "rateLimitId": "2" }
]"#;

/// Seconds since the epoch, by the server's clock.
fn seconds(server: &Server) -> u64 {
    let time = server.command(&["TIME"]).texts();
    time[0].parse().unwrap()
}

const RULES: &str = r#"[{ "id": "per-key", "ruleSetId": "api", "scope": "PER_API_KEY", "bands": [{ "windowSeconds": 3600, "capacity": 100 }] }]"#;

#[tokio::test]
async fn counters_by_api_key_were_ignored_because_of_hashed_names() {
    let server = Server::start();
    let folder = Folder::make();
    let imported = run(tidegate(&[
        "import",
        "fluxgate",
        &folder.write(
            "application.yml",
            format!(
                "fluxgate.redis: {{ enabled: true, uri: '{}' }}",
                server.url()
            ),
        ),
        &folder.write("rules.json", RULES),
    ]))
    .await;
    assert_eq!(imported.status.code(), Some(0), "{}", imported.stderr);
    let note = "contain API keys in plain text";
    assert!(imported.stderr.contains(note), "{}", imported.stderr);
    assert!(imported.stderr.contains("`key_names: hashed`"));
    let text = imported
        .stdout
        .replacen("store:", "store:\n  timeout: 10s", 1);

    let nanos = format!("{}000000000", seconds(&server));
    let fields = ["tokens", "40", "last_refill_nanos", &nanos];
    let api_keys = ["k-123", "k:1=2+3/4,5"];
    for api_key in api_keys {
        let key = format!("fluxgate:api:per-key:{api_key}:default");
        server
            .command(&[&["HSET", &key], &fields[..]].concat())
            .done();
    }
    let remaining = async |text: &str, api_key: &str| {
        let limiter = RunningConfig::by(text.to_owned()).limiter().await;
        let request = Request::new().api_key(api_key);
        let decision = limiter.check(&request).await.unwrap();
        assert_eq!(decision.decided_by().as_str(), "store");
        let binding = decision.binding().unwrap();
        assert!(binding.key().starts_with("api-key:#"), "{}", binding.key());
        binding.remaining()
    };
    let hashed = text.replace("key_names: literal", "key_names: hashed");
    for api_key in api_keys {
        // One refills every 36 seconds.
        let left = remaining(&text, api_key).await;
        assert!((39..=45).contains(&left), "{api_key}: {left}");
        assert_eq!(remaining(&hashed, api_key).await, 99);
    }
}

#[tokio::test]
async fn a_second_policy_of_a_gateway_lost_all_existing_buckets() {
    let server = Server::start();
    let folder = Folder::make();
    let url = server.url();
    let settings =
        format!("gateway.ratelimit.redis-key-prefix: ratelimit\nspring.data.redis.url: {url}");
    let imported = run(tidegate(&[
        "import",
        "gateway",
        &folder.write("application.yml", settings),
        &folder.write("rate-limits.json", POLICIES),
        &folder.write("routes.json", ROUTES),
    ]))
    .await;
    assert_eq!(imported.status.code(), Some(0), "{}", imported.stderr);
    // Long enough for a busy machine.
    let text = imported
        .stdout
        .replacen("store:", "store:\n  timeout: 10s", 1);
    let limiter = RunningConfig::by(text).limiter().await;

    let before = seconds(&server);
    let millis = (before * 1_000).to_string();
    // Route, tokens that its client has left, requests per second.
    for (route, tokens, rate) in [("orders", 400, 1), ("bulk", 3_000, 2)] {
        let key = format!("ratelimit:{route}:192.0.2.1");
        let fields = ["tokens", &tokens.to_string(), "lastRefill", &millis];
        server
            .command(&[&["HSET", &key], &fields[..]].concat())
            .done();
        let ip = "192.0.2.1".parse().unwrap();
        let request = Request::new().policy("routes").route(route).ip(ip);
        let decision = limiter.check(&request).await.unwrap();
        assert_eq!(decision.decided_by().as_str(), "store");
        let remaining = decision.binding().unwrap().remaining();
        let refilled = (seconds(&server) + 1 - before) * rate;
        let expected = tokens - 1..=tokens - 1 + refilled;
        assert!(expected.contains(&remaining), "{route}: {remaining}");
    }
    let mut keys = server.command(&["KEYS", "ratelimit:*"]).texts();
    keys.sort();
    assert_eq!(
        keys,
        ["ratelimit:bulk:192.0.2.1", "ratelimit:orders:192.0.2.1"]
    );
}
