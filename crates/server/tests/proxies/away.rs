//! Tidegate hangs, is down, and recovers.

use crate::kit::{FailureMode, Setup, Site};

/// Requests pass without limits while Tidegate hangs or is down.
fn failure_mode_open_allows_everything(setup: Setup) {
    let Some(mut site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    site.use_up(2);
    site.tidegate.hang();
    passes_without_a_word(&site);
    site.tidegate.go_on();
    assert_eq!(site.get(2, "/", &[]).status, 429, "nothing was deleted");
    site.tidegate.go();
    passes_without_a_word(&site);
    site.tidegate.resume();
    decides_again(&site);
}

with_those_that_choose!(failure_mode_open_allows_everything);

fn passes_without_a_word(site: &Site) {
    site.application.asked();
    for _ in 0..5 {
        let reply = site.ask(2, "POST /a", &[]);
        assert_eq!(reply.status, 200, "{reply:?}; {}", site.log());
        assert_eq!(reply.header("ratelimit"), None);
        assert_eq!(reply.header("x-ratelimit-limit"), None);
    }
    assert_eq!(site.application.asked(), ["POST /a"; 5]);
}

/// All requests are refused while Tidegate hangs or is down.
fn failure_mode_closed_denies_everything(setup: Setup) {
    let Some(mut site) = Site::open(setup, FailureMode::Closed) else {
        return;
    };
    site.tidegate.hang();
    is_closed(&site);
    site.tidegate.go_on();
    assert_eq!(site.get(2, "/", &[]).status, 200);
    site.tidegate.go();
    is_closed(&site);
    site.tidegate.resume();
    decides_again(&site);
}

with_those_that_choose!(failure_mode_closed_denies_everything);

/// Without a setting, requests wait for a Tidegate that hangs, and fail for one that is down.
fn without_a_failure_mode_everything_is_denied(setup: Setup) {
    let Some(mut site) = Site::open(setup, FailureMode::Closed) else {
        return;
    };
    site.tidegate.hang();
    let reply = site.answer_after(2, || site.tidegate.go_on());
    assert_eq!(reply.status, 200);
    site.tidegate.go();
    is_closed(&site);
    site.tidegate.resume();
    decides_again(&site);
}

with_each!(
    without_a_failure_mode_everything_is_denied: caddy_short CaddyShort, traefik_forward_auth TraefikForwardAuth
);

fn is_closed(site: &Site) {
    site.application.asked();
    let reply = site.get(2, "/", &[]);
    assert_eq!(reply.status, site.setup.status_when_closed(), "{reply:?}");
    assert_eq!(site.application.asked(), [""; 0]);
    if reply.status == 503 {
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(reply.json()["status"], 503);
    }
}

/// Limits apply again from the first request on.
fn decides_again(site: &Site) {
    let reply = site.get(3, "/", &[]);
    assert_eq!(reply.status, 200, "{}", site.log());
    if site.setup.informs() {
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("2"));
    }
    site.use_up(4);
}
