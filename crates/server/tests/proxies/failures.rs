//! Tidegate answers, but does not decide: its store is away, or it does not know the proxy.

use crate::kit::folder::Folder;
use crate::kit::{Away, Setup, Site};
use tidegate_testkit::redis::Port;

/// Without its store, and with limits that say `deny`, Tidegate answers 503. That is its decision: what
/// was chosen for a Tidegate that is away has no say in it.
fn a_store_that_is_away_closes_if_tidegate_says_so(setup: Setup) {
    let nobody = Port::lease();
    let site = Site::open_with(setup, Away::Open, |folder| {
        let store = format!(
            "store: {{ url: 'redis://127.0.0.1:{}', on_failure: deny, required_at_start: false }}\npolicies:",
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

with_all!(a_store_that_is_away_closes_if_tidegate_says_so);

/// Tidegate believes somebody else.
fn forget_the_proxy(folder: &Folder) {
    folder.change("tidegate.yaml", r#"[127.0.0.1, "::1"]"#, "[192.0.2.1]");
}

/// A proxy that Tidegate does not trust tells its operator, and no client that it is forbidden.
fn a_proxy_that_is_not_trusted_is_told_to_the_operator(setup: Setup) {
    let Some(site) = Site::open_with(setup, Away::Closed, forget_the_proxy) else {
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

with_those_that_choose!(a_proxy_that_is_not_trusted_is_told_to_the_operator);

#[test]
fn the_plugin_does_what_was_chosen_when_it_is_not_trusted() {
    let site = Site::open_with(Setup::TraefikPlugin, Away::Open, forget_the_proxy);
    let Some(site) = site else {
        return;
    };
    assert_eq!(site.get(2, "/", &[]).status, 200);
    site.await_log("Tidegate does not trust this Traefik");
}

#[test]
fn a_client_cannot_make_the_plugin_believe_that_it_is_not_trusted() {
    let site = Site::open_with(Setup::TraefikPlugin, Away::Open, |folder| {
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
