//! What a client is shown: by Envoy, from what it is told of each descriptor, and by Tidegate.

use crate::kit::{Reply, Site, Wanted};

/// A site that answers so.
fn open(respond: &str) -> Option<Site> {
    Site::open(&Wanted {
        settings: format!("respond: {respond}"),
        ..Wanted::default()
    })
}

/// A header that is there once.
fn once<'a>(reply: &'a Reply, name: &str) -> &'a str {
    let times = reply.names().iter().filter(|it| **it == name).count();
    assert_eq!(times, 1, "{name} in {reply:?}");
    reply.header(name).unwrap()
}

#[test]
fn envoy_tells_of_every_descriptor_and_of_the_scarcest_first() {
    let Some(site) = Site::open(&Wanted::default()) else {
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

/// Two hours are no unit of Envoy's.
#[test]
fn a_period_that_envoy_has_no_word_for_is_shown_without_it() {
    let Some(site) = Site::open(&Wanted::default()) else {
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
fn a_refusal_is_the_one_that_other_doors_give() {
    let Some(site) = open("{ headers: [draft-11] }") else {
        return;
    };
    for _ in 0..3 {
        let reply = site.ask("GET /", &["x-user: ann"]);
        assert_eq!(reply.header("ratelimit"), None, "Envoy tells enough");
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
fn tidegate_adds_nothing_where_that_is_wanted() {
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
