use crate::world::{Hello, ONE_EACH, RunningServer, get, get_with, header, limiter, statuses};
use axum::Router;
use axum::routing::get as route;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tidegate::{KeyPart, LimitSpec, Limiter};
use tidegate_tower::RateLimitLayer;
use tokio::task::JoinSet;
use tower::Layer as _;

async fn serve(app: Router) -> RunningServer {
    RunningServer::start(|listener| async move {
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app).await.expect("it serves");
    })
    .await
}

fn to(path: &str) -> Request<Full<Bytes>> {
    let mut request = get();
    *request.uri_mut() = path.parse().expect("a path");
    request
}

#[tokio::test]
async fn axum_notes_the_peer_and_the_layer_finds_it() {
    let app = Router::new().route("/", route(|| async { "hello" }));
    let server = serve(app.layer(RateLimitLayer::new(limiter(ONE_EACH)))).await;
    let behind = |client| get_with(&[("x-forwarded-for", client)]);
    // A proxy on this machine is trusted, so the peer is known.
    let allowed = server.ask(behind("192.0.2.1")).await;
    assert_eq!(
        (allowed.status().as_u16(), &allowed.body()[..]),
        (200, &b"hello"[..])
    );
    assert_eq!(header(&allowed, "x-ratelimit-limit"), Some("1"));
    let refused = server.ask(behind("192.0.2.1")).await;
    assert_eq!(refused.status(), 429);
    let length = refused.body().len().to_string();
    assert_eq!(header(&refused, "content-length"), Some(&*length));
    assert_eq!(server.ask(behind("192.0.2.2")).await.status(), 200);
}

#[tokio::test]
async fn the_route_is_the_path_that_axum_matched() {
    let limit = LimitSpec::new("per-route").key(KeyPart::Route).band("2/h");
    let limiter = Limiter::builder().limit(limit).build().expect("a limiter");
    let app = Router::new()
        .route("/orders/{id}", route(|| async { "order" }))
        .route("/carts/{id}", route(|| async { "cart" }))
        .layer(RateLimitLayer::new(limiter));
    let server = serve(app).await;
    for (path, status) in [
        ("/orders/1", 200),
        ("/orders/2", 200),
        ("/orders/3", 429),
        ("/carts/1", 200),
    ] {
        assert_eq!(server.ask(to(path)).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn handler_responses_are_unchanged() {
    let called = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&called);
    let broken = move || {
        counted.fetch_add(1, SeqCst);
        async { (StatusCode::INTERNAL_SERVER_ERROR, "broken") }
    };
    let app = Router::new().route("/", route(broken));
    let server = serve(app.layer(RateLimitLayer::new(limiter(ONE_EACH)))).await;
    let failed = server.ask(get()).await;
    assert_eq!(
        (failed.status().as_u16(), &failed.body()[..]),
        (500, &b"broken"[..])
    );
    assert_eq!(header(&failed, "retry-after"), None);
    assert_eq!(header(&failed, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(called.load(SeqCst), 1);
    assert_eq!(server.ask(get()).await.status(), 429);
    assert_eq!(called.load(SeqCst), 1);
}

#[tokio::test]
async fn limits_on_one_route_do_not_affect_the_others() {
    let layer = RateLimitLayer::new(limiter(ONE_EACH));
    let app = Router::new()
        .route("/", route(|| async { "free" }))
        .route("/login", route(|| async { "in" }).layer(layer));
    let server = serve(app).await;
    for (path, status) in [("/login", 200), ("/login", 429), ("/", 200), ("/", 200)] {
        assert_eq!(server.ask(to(path)).await.status(), status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_pass_exactly_up_to_the_limit() {
    let called = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&called);
    let hello = move || {
        counted.fetch_add(1, SeqCst);
        async { "hello" }
    };
    let limit = LimitSpec::new("everybody").band("37/h");
    let limiter = Limiter::builder().limit(limit).build().expect("a limiter");
    let app = Router::new().route("/", route(hello));
    let server = serve(app.layer(RateLimitLayer::new(limiter))).await;
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let address = server.address;
        clients.spawn(async move {
            let mut passed = 0;
            for _ in 0..25 {
                match crate::world::ask(address, get()).await.status().as_u16() {
                    200 => passed += 1,
                    429 => {}
                    other => panic!("{other}"),
                }
            }
            passed
        });
    }
    let passed: u64 = clients.join_all().await.into_iter().sum();
    assert_eq!((passed, called.load(SeqCst)), (37, 37));
}

#[tokio::test]
async fn a_limit_on_a_path_was_skipped_inside_a_nested_router() {
    const ORDERS: &str = "
client: { attributes: { area: { segment: 1 }, plan: { query: plan } } }
policies:
  - name: api
    limits:
      - { name: orders, match: { path: /api/orders }, rate: 1/h }
      - { name: per-area, match: { path: /api/free }, key: ['attr:area', 'attr:plan'], missing: refuse, rate: 2/h }";
    for slow in [false, true] {
        let inner = Router::new()
            .route("/orders", route(|| async { "orders" }))
            .route("/free", route(|| async { "free" }));
        let inner = if slow {
            inner.layer(RateLimitLayer::new(crate::slow::limiter(ORDERS)))
        } else {
            inner.layer(RateLimitLayer::new(limiter(ORDERS)))
        };
        let server = serve(Router::new().nest("/api", inner)).await;
        for (path, status) in [
            ("/api/orders", 200),
            ("/api/orders?page=2", 429),
            // The first segment is `api`, here too.
            ("/api/free?plan=gold", 200),
            ("/api/free?plan=gold", 200),
            ("/api/free?plan=gold", 429),
            ("/api/free?plan=silver", 200),
        ] {
            assert_eq!(server.ask(to(path)).await.status(), status, "{path}");
        }
    }
}

#[tokio::test]
async fn an_application_supplies_a_target_cut_by_another_layer() {
    #[derive(Clone)]
    struct OriginalTarget(http::Uri);

    let limiter = limiter(
        "
policies: [{ name: api, limits: [{ name: orders, match: { path: /v1/orders }, rate: 1/h }] }]",
    );
    let layer =
        RateLimitLayer::new(limiter).target(|head| Some(&head.extension::<OriginalTarget>()?.0));
    let service = layer.layer(Hello::default());
    let cut = || {
        let mut request = to("/orders");
        let whole = OriginalTarget(http::Uri::from_static("/v1/orders"));
        request.extensions_mut().insert(whole);
        request
    };
    // If the function returns nothing, the target is unchanged.
    let asked = [cut(), cut(), to("/orders"), to("/v1/orders")];
    assert_eq!(statuses(&service, asked).await, [200, 429, 200, 429]);
}
