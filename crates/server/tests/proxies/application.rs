//! What the application answers is the client's, whatever it is.

use crate::kit::application::{ANSWER_HEADER, ANSWER_WITH};
use crate::kit::{Away, Setup, Site};

/// Also statuses that Tidegate or the proxy might have answered themselves.
fn statuses_are_left_as_they_are(setup: Setup) {
    let Some(site) = Site::open(setup, Away::Open) else {
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

with_all!(statuses_are_left_as_they_are);

/// An application that dies over a request gets it once, whether Tidegate is there or not.
fn a_request_goes_to_the_application_once(setup: Setup) {
    let Some(mut site) = Site::open(setup, Away::Open) else {
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

/// Whoever reads the headers of a limit finds one of each, and it is Tidegate's.
fn what_it_says_of_limits_gives_way_to_what_tidegate_says(setup: Setup) {
    let Some(site) = Site::open(setup, Away::Open) else {
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
    what_it_says_of_limits_gives_way_to_what_tidegate_says:
    nginx Nginx, haproxy Haproxy, caddy Caddy
);
