//! Tidegate hangs, is down, and recovers.

use crate::kit::{Site, SiteOptions};

/// Opens a site whose Envoy has a short timeout.
fn open(deny: bool) -> Option<Site> {
    Site::open(&SiteOptions {
        timeout: "0.5s",
        deny,
        ..SiteOptions::default()
    })
}

const ANN: [&str; 1] = ["x-user: ann"];

#[test]
fn everything_passes_with_failure_mode_allow() {
    let Some(mut site) = open(false) else {
        return;
    };
    site.tidegates[0].hang();
    passes_unlimited(&site);
    site.tidegates[0].go_on();
    site.tidegates[0].go();
    for _ in 0..5 {
        passes_unlimited(&site);
    }
    assert_eq!(site.counted("failure_mode_allowed"), 6);
    site.tidegates[0].resume();
    is_limited_again(&site);
}

#[test]
fn nothing_passes_with_failure_mode_deny() {
    let Some(mut site) = open(true) else {
        return;
    };
    site.tidegates[0].hang();
    is_closed(&site);
    site.tidegates[0].go_on();
    site.tidegates[0].go();
    for _ in 0..5 {
        is_closed(&site);
    }
    assert_eq!(site.application.asked(), [""; 0]);
    assert_eq!(site.counted("error"), 6);
    site.tidegates[0].resume();
    is_limited_again(&site);
}

fn passes_unlimited(site: &Site) {
    let reply = site.ask("GET /", &ANN);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-ratelimit-limit"), None);
    assert_eq!(reply.body, "application: GET /");
}

fn is_closed(site: &Site) {
    let reply = site.ask("GET /", &ANN);
    assert_eq!((reply.status, reply.body.as_str()), (500, ""), "{reply:?}");
}

/// Limits apply again from the first request on.
fn is_limited_again(site: &Site) {
    for status in [200, 200, 200, 429] {
        let reply = site.ask("GET /", &ANN);
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(reply.header("x-ratelimit-limit").is_some());
    }
    assert_eq!((site.counted("ok"), site.counted("over_limit")), (3, 1));
}

#[test]
fn an_unreachable_store_is_handled_as_configured() {
    for (on_failure, status) in [("allow", 200), ("deny", 429), ("error", 500)] {
        let wanted = SiteOptions {
            settings: format!(
                "store: {{ url: 'redis://127.0.0.1:1', on_failure: {on_failure}, redis: {{ required: false }} }}"
            ),
            ..SiteOptions::default()
        };
        let Some(site) = Site::open(&wanted) else {
            return;
        };
        for _ in 0..5 {
            let reply = site.ask("GET /", &ANN);
            assert_eq!(reply.status, status, "{on_failure}: {reply:?}");
        }
    }
}
