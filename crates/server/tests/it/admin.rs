//! `/livez`, `/readyz`, `/metrics`.

use crate::kit::{Client, Server, get, post};
use std::collections::BTreeMap;

const WATCHED: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/min burst 2 }
      - { name: tighter, mode: shadow, key: ip, bands: [1/min burst 1, 1/h] }
  - name: free
    limits:
      - { name: never, match: [{ path: /elsewhere }], rate: 1/s }
";

#[tokio::test]
async fn health_is_plain() {
    let server = Server::start(WATCHED).await;
    let live = get(server.admin, "/livez").await;
    assert_eq!((live.status, live.body.as_str()), (200, "alive\n"));
    let ready = get(server.admin, "/readyz").await;
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (200, "{\"ready\":true}\n")
    );
}

#[tokio::test]
async fn other_admin_paths_are_404() {
    let server = Server::start(WATCHED).await;
    for path in ["/", "/admin", "/metrics/x", "/v1/check"] {
        assert_eq!(get(server.admin, path).await.status, 404, "{path}");
    }
    let mut client = Client::connect(server.admin).await;
    let reply = client.ask("POST /livez HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(
        (reply.status, reply.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

#[tokio::test]
async fn health_and_metrics_are_not_on_the_http_listener() {
    let server = Server::start(WATCHED).await;
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(get(server.http, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn metrics_count_decisions_by_policy_limit_and_outcome() {
    let server = Server::start(WATCHED).await;
    for _ in 0..3 {
        post(
            server.http,
            r#"{"ip": "192.0.2.77", "path": "/secret-path"}"#,
        )
        .await;
    }
    post(server.http, r#"{"policy": "free"}"#).await;
    post(server.http, "nonsense").await;

    let reply = get(server.admin, "/metrics").await;
    assert_eq!(
        reply.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let samples = samples(&reply.body);
    let decisions = |policy: &str, limit: &str, outcome: &str| {
        let reason = match outcome {
            "refused" | "shadow_refused" => "limited",
            _ => "allowed",
        };
        let labels = format!(
            "{{policy=\"{policy}\",limit=\"{limit}\",outcome=\"{outcome}\",decided_by=\"store\",reason=\"{reason}\"}}"
        );
        samples
            .get(&format!("tidegate_decisions_total{labels}"))
            .copied()
    };
    assert_eq!(decisions("api", "per-client", "allowed"), Some(2.0));
    assert_eq!(decisions("api", "per-client", "refused"), Some(1.0));
    // Two bands refuse, and the limit counts once. It refuses a third request too.
    assert_eq!(decisions("api", "tighter", "shadow_refused"), Some(2.0));
    assert_eq!(decisions("api", "tighter", "refused"), None);
    assert_eq!(decisions("free", "", "unlimited"), Some(1.0));
    assert_eq!(decisions("free", "never", "allowed"), Some(0.0));
    for (name, value) in [
        (
            "tidegate_error_responses_total{listener=\"http\",status=\"400\"}",
            1.0,
        ),
        ("tidegate_request_duration_seconds_count", 5.0),
        ("tidegate_request_duration_seconds_bucket{le=\"+Inf\"}", 5.0),
        (
            "tidegate_connections_accepted_total{listener=\"http\"}",
            5.0,
        ),
        ("tidegate_connections{listener=\"admin\"}", 1.0),
        ("tidegate_store_overflowed_total", 0.0),
        ("tidegate_store_logs_coarsened_total", 0.0),
        ("tidegate_requests_without_address_total", 0.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}");
    }
    assert!(samples["tidegate_store_buckets"] >= 1.0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        samples.get(&format!("tidegate_build_info{{version=\"{version}\"}}")),
        Some(&1.0)
    );
    for secret in ["192.0.2.77", "secret-path"] {
        assert!(!reply.body.contains(secret), "{secret} must not be a label");
    }
}

/// Returns the samples of a page, which must be well formed: every sample belongs to the family
/// above it, its suffix fits the type, and the page ends with EOF.
pub(crate) fn samples(page: &str) -> BTreeMap<String, f64> {
    let page = page.strip_suffix("# EOF\n").expect("a page has an end");
    let (mut family, mut kind, mut helped) = ("", "", "");
    let mut samples = BTreeMap::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(text.ends_with('.') && !text.ends_with(".."), "{line}");
            helped = name;
        } else if let Some(described) = line.strip_prefix("# TYPE ") {
            (family, kind) = described.split_once(' ').unwrap();
            assert_eq!(helped, family, "{line}");
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(unit), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix = name
                .strip_prefix(family)
                .unwrap_or_else(|| panic!("stray {line}"));
            let allowed: &[&str] = match kind {
                "counter" => &["_total"],
                "gauge" => &[""],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => panic!("unknown type: {kind}"),
            };
            assert!(allowed.contains(&suffix), "{line}");
            let doubled = samples.insert(series.to_owned(), value.parse().unwrap());
            assert!(doubled.is_none(), "{line} is there twice");
        }
    }
    samples
}
