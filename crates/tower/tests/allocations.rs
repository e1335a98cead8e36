//! Allocations of the layer for an allowed request: the headers only.
//!
//! A separate test binary, because counting needs a special allocator.

use allocation_counter::measure;
use http::{Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tidegate::{KeyPart, LimitSpec, Limiter};
use tidegate_tower::{PeerAddr, RateLimitLayer};
use tower_layer::Layer as _;
use tower_service::Service;

/// A service with an immediate empty response.
#[derive(Clone)]
struct EmptyService;

impl Service<Request<()>> for EmptyService {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}

fn request() -> Request<()> {
    let mut request = Request::get("/orders/1?page=2");
    for (name, value) in [
        ("host", "api.example"),
        ("user-agent", "test"),
        ("accept", "*/*"),
        ("x-forwarded-for", "203.0.113.9, 192.0.2.1"),
        ("x-api-key", "k1"),
        ("x-user", "ann"),
    ] {
        request = request.header(name, value);
    }
    let peer: SocketAddr = "127.0.0.1:4711".parse().expect("an address");
    request
        .extension(PeerAddr(peer))
        .body(())
        .expect("a request")
}

/// Returns the allocations of one more request. Requests are made beforehand, and responses dropped
/// afterwards.
fn allocations<Svc, B>(service: &mut Svc) -> (u64, Response<B>)
where
    Svc: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut once = |request| {
        let mut answer = pin!(service.call(request));
        let polled = answer.as_mut().poll(&mut context).map(Result::ok);
        let Poll::Ready(Some(answer)) = polled else {
            unreachable!("it answers at once");
        };
        answer
    };
    // Warms up reusable buffers.
    for _ in 0..3 {
        drop(black_box(once(request())));
    }
    let request = request();
    let mut answer = None;
    let counted = measure(|| answer = Some(once(request)));
    (counted.count_total, answer.expect("an answer"))
}

/// Returns the allocations of an application that adds the headers of `like` itself, with existing
/// values.
fn floor<B>(like: &Response<B>) -> u64 {
    let headers: Vec<_> = like
        .headers()
        .iter()
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let mut answer = Response::new(());
    let counted = measure(|| {
        for (name, value) in headers {
            answer.headers_mut().insert(name, value);
        }
    });
    counted.count_total
}

fn layer(text: &str) -> RateLimitLayer {
    RateLimitLayer::new(Limiter::from_yaml(text).expect("a valid config"))
}

const LIMITS: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1000000/h }
      - { name: per-key, key: api-key, rate: 1000000/h }
      - { name: per-path, key: [ip, path], match: { path: /orders }, rate: 1000000/h }";

#[test]
fn without_headers_nothing_is_allocated() {
    let mut service = layer(&format!("respond: {{ headers: [] }}{LIMITS}")).layer(EmptyService);
    let (count, answer) = allocations(&mut service);
    assert!(answer.headers().is_empty());
    assert_eq!(count, 0);
}

#[test]
fn limits_in_code_and_functions_allocate_nothing_either() {
    let per_user = LimitSpec::new("per-user")
        .key(KeyPart::User)
        .band("1000000/h");
    let limiter = Limiter::builder().limit(per_user).build().unwrap();
    let mut service = RateLimitLayer::new(limiter.clone())
        .user(|head| head.header("x-user").map(Into::into))
        .attribute("path", |head| Some(head.uri().path().into()))
        .cost(|_| 2)
        .layer(EmptyService);
    let (count, answer) = allocations(&mut service);
    assert_eq!(answer.headers()["x-ratelimit-limit"], "1000000");
    let values = answer.headers().len() as u64;
    assert!(count <= floor(&answer) + values, "{count}");
}

#[test]
fn headers_cost_their_values_and_the_room_for_them() {
    for dialects in [
        "[x-ratelimit]",
        "[draft-03]",
        "[draft-11]",
        "[x-ratelimit, draft-11]",
    ] {
        let mut service =
            layer(&format!("respond: {{ headers: {dialects} }}{LIMITS}")).layer(EmptyService);
        let (count, answer) = allocations(&mut service);
        let (values, floor) = (answer.headers().len() as u64, floor(&answer));
        assert!(values > 0);
        println!("{dialects}: {count} for {values} values, of which {floor} for the map");
        assert!(
            count <= floor + values,
            "{dialects}: {count} > {floor} + {values}"
        );
    }
}

#[test]
fn the_bare_application_allocates_nothing() {
    // Otherwise the comparison would be meaningless.
    assert_eq!(allocations(&mut EmptyService).0, 0);
}
