//! Requests that consume nothing or several units, are charged afterwards, or refund: `hits_addend`
//! of a route.

use crate::kit::application::{ANSWER_HEADER, ANSWER_WITH};
use crate::kit::{Site, SiteOptions};
use tidegate_testkit::redis::until;

#[test]
fn a_request_without_hits_passes_while_units_remain() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let ann = ["x-user: ann"];
    for _ in 0..5 {
        let reply = site.ask("GET /look", &ann);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("3"));
    }
    for _ in 0..3 {
        assert_eq!(site.ask("GET /", &ann).status, 200);
    }
    assert_eq!(site.ask("GET /look", &ann).status, 429);
}

#[test]
fn a_request_charges_the_hits_its_route_sets() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let both = ["x-user: ann", "x-plan: gold"];
    assert_eq!(site.ask("GET /three", &both).status, 200);
    assert_eq!(
        (site.left("user", "ann"), site.left("plan", "gold")),
        (0, 99)
    );

    let bob = ["x-user: bob", "x-plan: gold"];
    assert_eq!(site.ask("GET /", &bob).status, 200);
    assert_eq!(site.ask("GET /three", &bob).status, 429);
    // Two are left: the refused request consumed none, nor any of the plan.
    assert_eq!(
        (site.left("user", "bob"), site.left("plan", "gold")),
        (2, 98)
    );
}

#[test]
fn usage_is_charged_after_the_response_and_refuses_the_next_request() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let used = |tokens: u32| format!("{ANSWER_HEADER}: x-tokens: {tokens}");
    let ask = |tokens| site.ask("POST /tokens", &["x-user: ann", &used(tokens)]);
    assert_eq!(ask(5).status, 200);
    // Envoy reports the usage after it has sent the response.
    until("5 of 20 are charged", || site.left("tokens", "ann") == 15);
    // More than is left, but the cost is known only afterwards.
    assert_eq!(ask(500).status, 200);
    until("nothing is left", || site.left("tokens", "ann") == 0);
    let reply = ask(1);
    assert_eq!(reply.status, 429, "{reply:?}");
    assert_eq!(reply.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(site.application.asked(), ["POST /tokens"; 2]);
    // The bucket is in debt: 485 units at 20 a day.
    let wait: u32 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!(wait > 20 * 86_400, "{wait}");
    assert_eq!(site.left("tokens", "bob"), 20);
}

/// With an unchanged configuration of envoyproxy/ratelimit.
#[test]
fn a_cost_after_the_response_that_does_not_fit_is_charged_by_an_envoy_config() {
    const CONFIG: &str = "domain: edge
descriptors: [{ key: tokens, rate_limit: { unit: year, requests_per_unit: 1000 } }]
";
    for flags in [&[][..], &["--evaluate", "each"]] {
        let Some(site) = Site::open(&SiteOptions {
            envoy_config: Some((CONFIG, flags)),
            ..SiteOptions::default()
        }) else {
            return;
        };
        let used = format!("{ANSWER_HEADER}: x-tokens: 600");
        let ask = || site.ask("POST /tokens", &["x-user: ann", &used]).status;
        assert_eq!(ask(), 200);
        until("600 are charged", || site.left("tokens", "ann") == 400);
        assert_eq!(ask(), 200);
        until("1,200 are charged", || site.left("tokens", "ann") == 0);
        for _ in 0..4 {
            assert_eq!(ask(), 429, "{flags:?}");
        }
        assert_eq!(site.application.asked(), ["POST /tokens"; 2]);
    }
}

#[test]
fn a_failing_application_is_charged_the_usage_it_reports() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let fails = format!("{ANSWER_WITH}: 500");
    let used = format!("{ANSWER_HEADER}: x-tokens: 7");
    let reply = site.ask("POST /tokens", &["x-user: ann", &fails, &used]);
    assert_eq!(reply.status, 500);
    until("7 of 20 are charged", || site.left("tokens", "ann") == 13);
}

#[test]
fn unused_units_are_refunded_after_the_response() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let unused = format!("{ANSWER_HEADER}: x-unused: 2");
    let reply = site.ask("POST /estimate", &["x-user: ann", &unused]);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
    until("2 of 3 are back", || site.left("user", "ann") == 2);
    // The cost exceeds what is left. Nothing is charged, so nothing is refunded.
    assert_eq!(site.ask("POST /estimate", &["x-user: ann"]).status, 429);
    for _ in 0..2 {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, 200);
    }
    assert_eq!(site.ask("GET /", &["x-user: ann"]).status, 429);
}

#[test]
fn a_refunding_request_passes_and_is_capped_at_the_debt() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let ann = ["x-user: ann"];
    for _ in 0..3 {
        assert_eq!(site.ask("GET /", &ann).status, 200);
    }
    assert_eq!(site.ask("GET /", &ann).status, 429);
    for left in [2, 3, 3] {
        let reply = site.ask("GET /return", &ann);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(site.left("user", "ann"), left);
    }
}
