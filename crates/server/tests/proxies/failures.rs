//! Tidegate replies without a decision: its store is down, or it does not trust the proxy.

use crate::kit::folder::Folder;
use crate::kit::{FailureMode, Setup, Site};
use tidegate_testkit::redis::Port;

/// Without its store, and with `on_failure: deny`, Tidegate replies with 503. That is its decision:
/// the proxy's setting for an unreachable Tidegate does not apply.
fn an_unreachable_store_denies_if_configured(setup: Setup) {
    let nobody = Port::lease();
    let site = Site::open_with(setup, FailureMode::Open, |folder| {
        let store = format!(
            "store: {{ url: 'redis://127.0.0.1:{}', on_failure: deny, redis: {{ required: false }} }}\npolicies:",
            nobody.number()
        );
        folder.change("tidegate.yaml", "policies:", &store);
    });
    let Some(site) = site else {
        return;
    };
    for _ in 0..5 {
        let reply = site.get(2, "/", &[]);
        assert_eq!(reply.status, 503, "{reply:?}");
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(reply.header("x-ratelimit-limit"), None);
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
        let body = reply.json();
        assert_eq!(body["status"], 503);
        let detail = "The limiter cannot decide at the moment. Try again in 1 second.";
        assert_eq!(body["detail"], detail);
    }
    assert_eq!(site.application.asked(), [""; 0]);
}

with_all!(an_unreachable_store_denies_if_configured);

/// Makes Tidegate trust another proxy instead.
fn forget_the_proxy(folder: &Folder) {
    folder.change("tidegate.yaml", r#"[127.0.0.1, "::1"]"#, "[192.0.2.1]");
}

/// An untrusted proxy is reported to its operator; clients do not see its 403.
fn an_untrusted_proxy_is_reported_to_the_operator(setup: Setup) {
    let Some(site) = Site::open_with(setup, FailureMode::Closed, forget_the_proxy) else {
        return;
    };
    let reply = site.get(2, "/", &[]);
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.header("x-denied-reason"), None);
    assert_eq!(site.application.asked(), [""; 0]);
    if setup != Setup::Nginx {
        site.await_log("Tidegate does not trust this ");
    }
}

with_those_that_choose!(an_untrusted_proxy_is_reported_to_the_operator);

#[test]
fn the_plugin_applies_its_failure_mode_if_not_trusted() {
    let site = Site::open_with(Setup::TraefikPlugin, FailureMode::Open, forget_the_proxy);
    let Some(site) = site else {
        return;
    };
    assert_eq!(site.get(2, "/", &[]).status, 200);
    site.await_log("Tidegate does not trust this Traefik");
}

#[test]
fn a_client_cannot_forge_the_untrusted_response() {
    let site = Site::open_with(Setup::TraefikPlugin, FailureMode::Open, |folder| {
        let respond = "respond: { status: 403 }\npolicies:";
        folder.change("tidegate.yaml", "policies:", respond);
        let forward = "forwardHeaders: [X-Denied-Reason, ";
        folder.change("dynamic.yml", "forwardHeaders: [", forward);
    });
    let Some(site) = site else {
        return;
    };
    for status in [200, 200, 200, 403, 403] {
        let reply = site.get(2, "/", &["x-denied-reason: untrusted-proxy"]);
        assert_eq!(reply.status, status, "{reply:?}");
    }
}
