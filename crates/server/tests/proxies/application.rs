//! The application's response is passed to the client unchanged.

use crate::kit::application::{ANSWER_HEADER, ANSWER_WITH};
use crate::kit::{FailureMode, Setup, Site};

/// Includes statuses that Tidegate or the proxy might send.
fn statuses_are_unchanged(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    let statuses = [401, 403, 404, 429, 500, 502, 503, 504];
    for (client, status) in (10..).zip(statuses) {
        let reply = site.ask(client, "POST /a", &[&format!("{ANSWER_WITH}: {status}")]);
        assert_eq!(reply.status, status);
        assert_eq!(reply.body, "application: POST /a");
    }
    assert_eq!(site.application.asked(), ["POST /a"; 8]);
}

with_all!(statuses_are_unchanged);

/// An application that dies during a request gets it once, with and without Tidegate.
fn a_request_goes_to_the_application_once(setup: Setup) {
    let Some(mut site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    let dies = format!("{ANSWER_WITH}: nothing");
    let reply = site.ask(2, "POST /a", &[&dies]);
    assert_eq!(reply.status, 502, "{reply:?}");
    assert_eq!(site.application.asked(), ["POST /a"]);
    if setup.informs() {
        site.tidegate.go();
        let reply = site.ask(2, "POST /a", &[&dies]);
        assert_eq!(reply.status, 502, "{reply:?}");
        assert_eq!(site.application.asked(), ["POST /a"]);
    }
}

with_all!(a_request_goes_to_the_application_once);

/// The client finds one of each rate limit header, and it is Tidegate's.
fn limit_headers_of_the_application_are_replaced(setup: Setup) {
    let Some(site) = Site::open(setup, FailureMode::Open) else {
        return;
    };
    let limits = [
        ("x-ratelimit-limit", "3"),
        ("x-ratelimit-remaining", "2"),
        ("x-ratelimit-reset", ""),
        ("ratelimit-policy", r#""per-client";q=3;w=180"#),
        ("ratelimit", r#""per-client";r=2;t="#),
    ];
    let own = limits.map(|(name, _)| format!("{ANSWER_HEADER}: {name}: of-the-application"));
    let reply = site.get(2, "/", &own.each_ref().map(String::as_str));
    assert_eq!(reply.status, 200, "{reply:?}");
    for (name, begin) in limits {
        let given = reply.header(name).unwrap();
        assert!(given.starts_with(begin), "{name}: {given}");
        assert_ne!(given, "of-the-application", "{name}");
        let times = reply.names().iter().filter(|other| **other == name).count();
        assert_eq!(times, 1, "{name}");
    }
}

with_each!(
    limit_headers_of_the_application_are_replaced:
    nginx Nginx, haproxy Haproxy, caddy Caddy
);
