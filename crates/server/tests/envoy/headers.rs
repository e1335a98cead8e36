//! Headers for clients: by Envoy, from the status of each descriptor, and by Tidegate.

use crate::kit::{Reply, Site, SiteOptions};

/// Opens a site with this `respond` section.
fn open(respond: &str) -> Option<Site> {
    Site::open(&SiteOptions {
        settings: format!("respond: {respond}"),
        ..SiteOptions::default()
    })
}

/// Returns the value of a header that occurs once.
fn once<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let times = reply.names().iter().filter(|it| **it == name).count();
    assert_eq!(times, 1, "{name} in {reply:?}");
    reply.header(name).unwrap()
}

#[test]
fn envoy_lists_every_descriptor_with_the_scarcest_first() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let reply = site.ask("GET /", &["x-user: ann", "x-plan: gold"]);
    assert_eq!(
        once(&reply, "x-ratelimit-limit"),
        r#"3, 3;w=86400;name="per-user", 100;w=3600;name="per-plan""#
    );
    assert_eq!(once(&reply, "x-ratelimit-remaining"), "2");
    let reset: u32 = once(&reply, "x-ratelimit-reset").parse().unwrap();
    assert!((1..=86_400).contains(&reset), "{reset}");
}

/// Two hours are no unit of Envoy.
#[test]
fn a_period_without_an_envoy_unit_is_shown_without_unit() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let reply = site.ask("GET /", &["x-user: ann", "x-plan: odd"]);
    assert_eq!(
        once(&reply, "x-ratelimit-limit"),
        r#"3, 3;w=86400;name="per-user""#
    );
    let reply = site.ask("GET /", &["x-plan: odd"]);
    assert_eq!(once(&reply, "x-ratelimit-limit"), "10");
    assert_eq!(once(&reply, "x-ratelimit-remaining"), "8");
}

#[test]
fn a_refusal_equals_those_of_other_frontends() {
    let Some(site) = open("{ headers: [draft-11] }") else {
        return;
    };
    for _ in 0..3 {
        let reply = site.ask("GET /", &["x-user: ann"]);
        assert_eq!(reply.header("ratelimit"), None, "Envoy's headers suffice");
    }
    let reply = site.ask("GET /", &["x-user: ann"]);
    assert_eq!(reply.status, 429);
    let wait: u32 = once(&reply, "retry-after").parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(
        once(&reply, "ratelimit"),
        format!(r#""per-user";r=0;t={wait}"#)
    );
    assert_eq!(once(&reply, "content-type"), "application/problem+json");
    assert_eq!(once(&reply, "cache-control"), "no-store");
    assert_eq!(once(&reply, "x-ratelimit-remaining"), "0");
    let body = reply.json();
    assert_eq!(body["status"], 429);
    assert_eq!(
        body["detail"],
        format!("Rate limit exceeded. Try again in {wait} seconds.")
    );
    assert_eq!(
        body["correlationId"].as_str(),
        Some(once(&reply, "x-correlation-id"))
    );
}

#[test]
fn no_headers_are_added_if_disabled() {
    let Some(site) = open("{ rls: none }") else {
        return;
    };
    for _ in 0..3 {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, 200);
    }
    let reply = site.ask("GET /", &["x-user: ann"]);
    assert_eq!((reply.status, reply.body.as_str()), (429, ""));
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!(once(&reply, "x-ratelimit-remaining"), "0");
}
