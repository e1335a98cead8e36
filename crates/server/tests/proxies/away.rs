//! Tidegate hangs, is gone, comes back.

use crate::kit::{Away, Setup, Site};

/// Requests pass without a limit for as long as Tidegate hangs or is gone.
fn open_lets_pass(setup: Setup) {
    let Some(mut site) = Site::open(setup, Away::Open) else {
        return;
    };
    site.use_up(2);
    site.tidegate.hang();
    passes_without_a_word(&site);
    site.tidegate.go_on();
    assert_eq!(site.get(2, "/", &[]).status, 429, "nothing was forgotten");
    site.tidegate.go();
    passes_without_a_word(&site);
    site.tidegate.come_back();
    decides_again(&site);
}

with_those_that_choose!(open_lets_pass);

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

/// Nothing passes for as long as Tidegate hangs or is gone.
fn closed_lets_nothing_pass(setup: Setup) {
    let Some(mut site) = Site::open(setup, Away::Closed) else {
        return;
    };
    site.tidegate.hang();
    is_closed(&site);
    site.tidegate.go_on();
    assert_eq!(site.get(2, "/", &[]).status, 200);
    site.tidegate.go();
    is_closed(&site);
    site.tidegate.come_back();
    decides_again(&site);
}

with_those_that_choose!(closed_lets_nothing_pass);

/// Where there is no choice, requests wait for a Tidegate that hangs, and fail for one that is gone.
fn without_a_choice_it_is_closed(setup: Setup) {
    let Some(mut site) = Site::open(setup, Away::Closed) else {
        return;
    };
    site.tidegate.hang();
    let reply = site.answer_after(2, || site.tidegate.go_on());
    assert_eq!(reply.status, 200);
    site.tidegate.go();
    is_closed(&site);
    site.tidegate.come_back();
    decides_again(&site);
}

with_each!(
    without_a_choice_it_is_closed: caddy_short CaddyShort, traefik_forward_auth TraefikForwardAuth
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

/// From the first request on.
fn decides_again(site: &Site) {
    let reply = site.get(3, "/", &[]);
    assert_eq!(reply.status, 200, "{}", site.log());
    if site.setup.informs() {
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("2"));
    }
    site.use_up(4);
}
