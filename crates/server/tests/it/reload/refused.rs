//! A rejected configuration changes nothing.

use super::kit::{LISTEN, ReloadableServer, Upstream, answered_by, one_route, reloads};
use crate::kit::folder::Folder;
use tidegate::ProcessEnvironment;
use tidegate_config::Config;

#[tokio::test]
async fn a_config_with_one_insecure_upstream_is_rejected_as_a_whole() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let it = ReloadableServer::start(&one_route("a", &a)).await;
    let folder = Folder::make();
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let authority = folder.write("ca.pem", nonsense);
    // Everything is valid except the TLS of one route.
    let text = format!(
        "{LISTEN}\n{}",
        one_route("b", &b).replace(
            "routes: [",
            &format!(
                "routes: [{{ name: safe, match: {{ path: /safe }}, \
                 upstreams: ['https://localhost:1'], tls: {{ ca: '{authority}' }} }}, "
            )
        )
    );
    let config = Config::parse(&text, "test.yaml", &ProcessEnvironment::new())
        .unwrap_or_else(|errors| panic!("{errors}"));
    let failure = it.try_reload(config).unwrap_err().to_string();
    assert!(failure.contains("route `safe`"), "{failure}");
    // Neither the routes nor the policies apply, and neither is shown.
    assert_eq!(answered_by(&it.get("/").await), "a");
    let metrics = it.metrics().await;
    assert!(!metrics.keys().any(|it| it.contains("limit-b")));
    assert!(!metrics.keys().any(|it| it.contains("safe")));
    assert_eq!(reloads(&metrics), [Some(0.0), Some(1.0)]);
    // The next reload is applied as usual.
    it.reload(&one_route("b", &b));
    assert_eq!(answered_by(&it.get("/").await), "b");
}
