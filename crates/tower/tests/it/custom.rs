use crate::world::{Hello, ManualStore, TWO, call, get, get_with, header, limiter};
use http::{HeaderValue, Method, Response};
use tidegate_tower::{PeerAddr, RateLimitLayer};
use tower::Layer as _;

/// Refuses from the third request on, with the application's own response.
fn layer() -> RateLimitLayer<ManualStore> {
    RateLimitLayer::new(limiter(TWO)).on_refusal(|head, decision| {
        let text = format!("{} {:?}", head.target().path(), decision.limit());
        let mut response = Response::new(text);
        *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
        let headers = response.headers_mut();
        headers.insert("content-type", HeaderValue::from_static("text/tea"));
        headers.insert("x-ratelimit-limit", HeaderValue::from_static("ours"));
        response
    })
}

#[tokio::test]
async fn a_custom_refusal_keeps_the_limit_headers() {
    let app = Hello::default();
    let service = layer().layer(app.clone());
    for _ in 0..2 {
        let allowed = call(&service, get()).await;
        assert_eq!(
            (allowed.status().as_u16(), &**allowed.body()),
            (200, &b"hello"[..])
        );
        assert_eq!(header(&allowed, "x-ratelimit-limit"), Some("2"));
    }
    let refused = call(&service, get()).await;
    assert_eq!(refused.status(), 418);
    assert_eq!(&**refused.body(), b"/ Some(\"everybody\")");
    assert_eq!(header(&refused, "content-type"), Some("text/tea"));
    assert_eq!(header(&refused, "x-ratelimit-limit"), Some("ours"));
    assert_eq!(header(&refused, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(header(&refused, "retry-after"), Some("1800"));
    assert_eq!(app.called(), 2);

    let mut head = get();
    *head.method_mut() = Method::HEAD;
    let refused = call(&service, head).await;
    assert_eq!((refused.status().as_u16(), refused.body().len()), (418, 0));
    assert_eq!(header(&refused, "content-length"), Some("19"));
}

#[tokio::test]
async fn grpc_requests_get_a_grpc_refusal() {
    let service = layer().layer(Hello::default());
    let grpc = || get_with(&[("content-type", "application/grpc")]);
    for _ in 0..2 {
        call(&service, grpc()).await;
    }
    let refused = call(&service, grpc()).await;
    assert_eq!(
        (refused.status().as_u16(), header(&refused, "grpc-status")),
        (200, Some("8"))
    );
}

#[tokio::test]
async fn an_undecidable_request_is_answered_by_the_application() {
    let limiter = limiter(TWO);
    let layer = RateLimitLayer::new(limiter.clone()).on_error(|_, error| {
        let mut response = Response::new(error.to_string());
        *response.status_mut() = http::StatusCode::BAD_GATEWAY;
        response
    });
    limiter.close();
    let response = call(&layer.layer(Hello::default()), get()).await;
    assert_eq!(response.status(), 502);
    assert_eq!(&**response.body(), b"the limiter is closed");
    assert_eq!(header(&response, "retry-after"), Some("1"));
}

#[tokio::test]
async fn a_layer_by_address_counts_each_address() {
    let layer = RateLimitLayer::per_ip("1/h").expect("a rate");
    let service = layer.layer(Hello::default());
    let from = |address: &str| {
        let mut request = get();
        let peer = PeerAddr(format!("{address}:4711").parse().expect("an address"));
        request.extensions_mut().insert(peer);
        request
    };
    for (address, expected) in [("192.0.2.1", 200), ("192.0.2.1", 429), ("192.0.2.2", 200)] {
        assert_eq!(
            call(&service, from(address)).await.status(),
            expected,
            "{address}"
        );
    }
}
