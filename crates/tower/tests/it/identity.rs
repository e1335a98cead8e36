use crate::world::{Hello, ONE_EACH, call, get, get_with, limiter, statuses};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use std::net::SocketAddr;
use tidegate::{KeyPart, LimitSpec, Limiter, MissingIdentity};
use tidegate_tower::{PeerAddr, RateLimitLayer};
use tower::Layer as _;

const PROXY: &str = "127.0.0.1:4711";
const STRANGER: &str = "192.0.2.1:4711";

fn from(peer: &str, headers: &[(&'static str, &str)]) -> Request<Full<Bytes>> {
    let mut request = get_with(headers);
    let peer: SocketAddr = peer.parse().expect("an address");
    request.extensions_mut().insert(PeerAddr(peer));
    request
}

#[tokio::test]
async fn trusted_proxies_set_the_address_and_other_clients_do_not() {
    let service = RateLimitLayer::new(limiter(ONE_EACH)).layer(Hello::default());
    let forwarded = |by, client| from(by, &[("x-forwarded-for", client)]);
    let asked = [
        forwarded(PROXY, "198.51.100.1"),
        forwarded(PROXY, "198.51.100.2"),
        forwarded(PROXY, "203.0.113.9, 198.51.100.2"),
        // A peer that is no trusted proxy is the client itself, with any headers.
        forwarded(STRANGER, "198.51.100.3"),
        forwarded(STRANGER, "198.51.100.4"),
        from(STRANGER, &[]),
    ];
    assert_eq!(
        statuses(&service, asked).await,
        [200, 200, 429, 200, 429, 429]
    );
}

#[tokio::test]
async fn an_unknown_peer_has_no_address_and_is_not_trusted() {
    // Requests without a known client share a bucket.
    let service = RateLimitLayer::new(limiter(ONE_EACH)).layer(Hello::default());
    let asked = [
        get(),
        get(),
        get_with(&[
            ("x-forwarded-for", "198.51.100.1"),
            ("x-real-ip", "198.51.100.1"),
        ]),
        from(STRANGER, &[]),
    ];
    assert_eq!(statuses(&service, asked).await, [200, 429, 429, 200]);
}

#[tokio::test]
async fn a_service_for_one_connection_gets_its_peer_once() {
    let layer = RateLimitLayer::new(limiter(ONE_EACH));
    let one = layer
        .layer(Hello::default())
        .peer(STRANGER.parse().unwrap());
    let other = layer
        .layer(Hello::default())
        .peer("192.0.2.2:1".parse().unwrap());
    assert_eq!(statuses(&one, [get(), get()]).await, [200, 429]);
    assert_eq!(statuses(&other.clone(), [get(), get()]).await, [200, 429]);
}

#[tokio::test]
async fn a_custom_function_supplies_only_the_peer() {
    let layer = RateLimitLayer::new(limiter(ONE_EACH));
    let service = layer
        .peer(|head| head.header("x-peer")?.parse().ok())
        .layer(Hello::default());
    let asked = [
        get_with(&[("x-peer", "192.0.2.7")]),
        get_with(&[("x-peer", "192.0.2.8")]),
        get_with(&[("x-peer", "192.0.2.8")]),
        // The named peer may be a proxy.
        get_with(&[("x-peer", "127.0.0.1"), ("x-forwarded-for", "192.0.2.8")]),
        get_with(&[("x-peer", "127.0.0.1"), ("x-forwarded-for", "192.0.2.9")]),
        // Unknown, regardless of other extensions.
        from("192.0.2.10:1", &[]),
        from("192.0.2.11:1", &[]),
    ];
    assert_eq!(
        statuses(&service, asked).await,
        [200, 200, 429, 429, 200, 200, 429]
    );
}

fn by(part: KeyPart) -> Limiter {
    let limit = LimitSpec::new("each").key(part).band("2/h");
    let limiter = Limiter::builder().limit(limit.missing(MissingIdentity::Refuse));
    limiter.build().expect("a limiter")
}

#[tokio::test]
async fn the_application_supplies_the_user() {
    #[derive(Clone)]
    struct Session(String);

    let service = RateLimitLayer::new(by(KeyPart::User))
        .user(|head| Some(head.extension::<Session>()?.0.as_str().into()))
        .layer(Hello::default());
    let of = |user: &str| {
        let mut request = get_with(&[("x-user-id", "somebody else")]);
        request.extensions_mut().insert(Session(user.into()));
        request
    };
    let asked = [of("ann"), of("ann"), of("ann"), of("bob"), get()];
    assert_eq!(statuses(&service, asked).await, [200, 200, 429, 200, 429]);
}

#[tokio::test]
async fn the_application_supplies_attributes_key_route_and_cost() {
    let tenant = |head: tidegate_tower::RequestHead<'_>| head.header("x-tenant").map(str::to_owned);
    let service = RateLimitLayer::new(by(KeyPart::Attr("tenant".into())))
        .attribute("tenant", |_| Some("the first is replaced".into()))
        .attribute("tenant", move |head| tenant(head).map(Into::into))
        .cost(|head| head.header("x-rows").map_or(1, |rows| rows.len() as u64))
        .layer(Hello::default());
    let asked = [
        get_with(&[("x-tenant", "a"), ("x-rows", "12")]),
        get_with(&[("x-tenant", "a")]),
        get_with(&[("x-tenant", "b"), ("x-rows", "123")]),
        get_with(&[("x-tenant", "b")]),
    ];
    assert_eq!(statuses(&service, asked).await, [200, 429, 429, 200]);

    let service = RateLimitLayer::new(by(KeyPart::Route))
        .route(|head| head.uri().path().split('/').nth(1).map(Into::into))
        .layer(Hello::default());
    let to = |path: &str| {
        let mut request = get();
        *request.uri_mut() = path.parse().expect("a path");
        request
    };
    let asked = [to("/a/1"), to("/a/2"), to("/a/3"), to("/b/1")];
    assert_eq!(statuses(&service, asked).await, [200, 200, 429, 200]);

    let service = RateLimitLayer::new(by(KeyPart::ApiKey))
        .api_key(|head| {
            head.header("authorization")?
                .strip_prefix("Key ")
                .map(Into::into)
        })
        .layer(Hello::default());
    let with = |name, key: &str| get_with(&[(name, key)]);
    let asked = [
        with("authorization", "Key k1"),
        with("authorization", "Key k1"),
        with("authorization", "Key k1"),
        // If the function returns nothing, the configured identity applies.
        with("x-api-key", "k1"),
        with("x-api-key", "k2"),
        with("authorization", "Bearer k1"),
    ];
    assert_eq!(
        statuses(&service, asked).await,
        [200, 200, 429, 429, 200, 429]
    );
}

#[tokio::test]
async fn the_config_defines_client_identification() {
    let limiter = limiter(
        "
client:
  trusted_proxies: [192.0.2.0/24]
  user: { header: X-User-Id }
  cost: { header: X-Cost, max: 5 }
policies: [{ name: api, limits: [{ name: each, key: user, missing: refuse, rate: 2/h }] }]",
    );
    let service = RateLimitLayer::new(limiter).layer(Hello::default());
    let asked = [
        from(STRANGER, &[("x-user-id", "ann"), ("x-cost", "2")]),
        from(STRANGER, &[("x-user-id", "ann")]),
        from(STRANGER, &[("x-user-id", "bob"), ("x-user-id", "bob")]),
        // Identity headers are accepted from a trusted proxy only.
        from(PROXY, &[("x-user-id", "eve")]),
    ];
    assert_eq!(statuses(&service, asked).await, [200, 429, 429, 429]);
    let refused = call(&service, from(PROXY, &[("x-user-id", "eve")])).await;
    assert_eq!(refused.headers().get("retry-after"), None);
}
