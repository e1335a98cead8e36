//! Allowed and refused requests, on each store.

use crate::kit::{Site, SiteOptions};
use tidegate_testkit::redis::Server;

#[test]
fn the_fourth_is_refused_by_memory() {
    if let Some(site) = Site::open(&SiteOptions::default()) {
        the_fourth_is_refused(&site);
    }
}

#[test]
fn the_fourth_is_refused_by_redis() {
    let redis = Server::start();
    let wanted = SiteOptions {
        settings: on(&redis),
        ..SiteOptions::default()
    };
    if let Some(site) = Site::open(&wanted) {
        the_fourth_is_refused(&site);
        let keys = redis.command(&["KEYS", "tg:{*"]).texts().len();
        assert_eq!(keys, 2, "a bucket for each user, in Redis");
    }
}

/// Returns a store with a long timeout, so that a busy machine does not change decisions.
pub(crate) fn on(redis: &Server) -> String {
    format!("store: {{ url: '{}', timeout: 10s }}", redis.url())
}

fn the_fourth_is_refused(site: &Site) {
    for remaining in ["2", "1", "0"] {
        let reply = site.ask("GET /cart?item=1", &["x-user: ann"]);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), Some(remaining));
        assert_eq!(reply.header("x-envoy-ratelimited"), None);
    }
    assert_eq!(site.application.asked(), ["GET /cart?item=1"; 3]);
    for method in ["GET", "POST", "DELETE"] {
        let reply = site.ask(&format!("{method} /"), &["x-user: ann"]);
        assert_eq!(reply.status, 429, "{reply:?}");
        assert_eq!(reply.header("x-envoy-ratelimited"), Some("true"));
    }
    assert_eq!(site.application.asked(), [""; 0]);
    assert_eq!(site.ask("GET /", &["x-user: bob"]).status, 200);
    // Without the header, Envoy has no descriptor and does not call Tidegate.
    assert_eq!(site.ask("GET /", &[]).status, 200);
}

#[test]
fn a_refused_descriptor_keeps_the_other_from_being_charged() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let both = ["x-user: ann", "x-plan: small"];
    assert_eq!(site.ask("GET /", &both).status, 200);
    assert_eq!(site.left("user", "ann"), 2);
    for _ in 0..5 {
        assert_eq!(site.ask("GET /", &both).status, 429);
    }
    assert_eq!(site.left("user", "ann"), 2);
    // The other way round.
    for _ in 0..2 {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, 200);
    }
    let left = site.left("plan", "gold");
    assert_eq!(
        site.ask("GET /", &["x-user: ann", "x-plan: gold"]).status,
        429
    );
    assert_eq!(site.left("plan", "gold"), left);
}

#[test]
fn a_grpc_client_gets_a_grpc_status() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    let call = ["x-user: ann", "content-type: application/grpc"];
    for _ in 0..3 {
        let reply = site.ask("POST /shop.Cart/Add", &call);
        assert_eq!((reply.status, reply.header("grpc-status")), (200, None));
    }
    let reply = site.ask("POST /shop.Cart/Add", &call);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("grpc-status"), Some("8"));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(reply.header("content-type"), Some("application/grpc"));
}

#[test]
fn a_limit_of_the_request_replaces_the_configured_one() {
    let Some(site) = Site::open(&SiteOptions::default()) else {
        return;
    };
    for remaining in ["4", "3", "2", "1", "0"] {
        let reply = site.ask("GET /told", &["x-user: ann"]);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), Some(remaining));
    }
    assert_eq!(site.ask("GET /told", &["x-user: ann"]).status, 429);
    assert_eq!(site.left("user", "ann"), 3);
}
