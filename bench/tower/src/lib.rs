//! The cost of limits per request in process: the bare application, and layers in front of it.
//!
//! The two programs of this crate time them and count their allocations; `../README.md` explains
//! how to run them.

use anyhow::Context as _;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{HeaderName, HeaderValue, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tidegate::Limiter;
use tidegate_tower::RateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::SmartIpKeyExtractor;
use tower_layer::Layer as _;
use tower_service::Service;

/// A service with its expected result.
pub struct Subject {
    /// Its name in the table.
    pub name: &'static str,
    /// The status of every response.
    pub expected: u16,
    ask: Box<dyn FnMut(Request<Body>) -> ObservedResponse>,
}

/// The checked parts of a response.
#[derive(Clone, Copy, Debug)]
pub struct ObservedResponse {
    /// Its status.
    pub status: u16,
    /// The number of its headers.
    pub headers: usize,
}

impl Subject {
    fn new<Svc, B: 'static>(name: &'static str, expected: u16, mut service: Svc) -> Self
    where
        Svc: Service<Request<Body>, Response = Response<B>, Error = Infallible> + 'static,
    {
        let ask = move |request| {
            let mut context = Context::from_waker(Waker::noop());
            // Polled before each call, as every server does.
            black_box(service.poll_ready(&mut context).is_ready());
            let mut answer = pin!(service.call(request));
            match answer.as_mut().poll(&mut context) {
                Poll::Ready(Ok(answer)) => ObservedResponse {
                    status: answer.status().as_u16(),
                    headers: black_box(&answer).headers().len(),
                },
                _ => ObservedResponse {
                    status: 0,
                    headers: 0,
                },
            }
        };
        Self {
            name,
            expected,
            ask: Box::new(ask),
        }
    }

    /// Calls it once; it responds immediately.
    pub fn ask(&mut self, request: Request<Body>) -> ObservedResponse {
        (self.ask)(request)
    }
}

/// An application that responds immediately, with these headers.
#[derive(Clone)]
struct App(Vec<(HeaderName, HeaderValue)>);

impl Service<Request<Body>> for App {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        drop(black_box(request));
        let mut answer = Response::new(Body::empty());
        for (name, value) in &self.0 {
            answer.headers_mut().insert(name, value.clone());
        }
        ready(Ok(answer))
    }
}

fn layer(settings: &str) -> anyhow::Result<RateLimitLayer> {
    Ok(RateLimitLayer::new(Limiter::from_yaml(settings)?))
}

const ONE: &str = "
policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 1000000000/h }] }]";

const THREE: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1000000000/h }
      - { name: per-key, key: api-key, rate: 1000000000/h }
      - { name: orders, match: { path: /orders }, rate: 1000000000/h }";

const NOBODY: &str = "
policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 1/h }] }]";

/// Returns all measured services, the bare application first.
pub fn all() -> anyhow::Result<Vec<Subject>> {
    let bare = || App(Vec::new());
    let constant =
        |name: &'static str| (HeaderName::from_static(name), HeaderValue::from_static("1"));
    let telling = App(vec![
        constant("x-ratelimit-limit"),
        constant("x-ratelimit-remaining"),
        constant("x-ratelimit-reset"),
        constant("ratelimit-policy"),
        constant("ratelimit"),
    ]);
    let mut governor = GovernorConfigBuilder::default().key_extractor(SmartIpKeyExtractor);
    let governor = governor.per_nanosecond(1).burst_size(1_000_000);
    let silent = governor.finish().context("a quota of governor's")?;
    let told = governor.use_headers().finish();
    let told = told.context("a quota of governor's")?;
    let mut subjects = vec![
        Subject::new("bare", 200, bare()),
        Subject::new("bare, 5 constant headers", 200, telling),
        Subject::new(
            "one limit, no headers",
            200,
            layer(&silently(ONE))?.layer(bare()),
        ),
        Subject::new("one limit", 200, layer(ONE)?.layer(bare())),
        Subject::new(
            "three limits, no headers",
            200,
            layer(&silently(THREE))?.layer(bare()),
        ),
        Subject::new("three limits", 200, layer(THREE)?.layer(bare())),
        Subject::new("refused", 429, layer(NOBODY)?.layer(bare())),
        Subject::new(
            "governor, no headers",
            200,
            GovernorLayer::new(silent).layer(bare()),
        ),
        Subject::new("governor", 200, GovernorLayer::new(told).layer(bare())),
    ];
    // The one request that a refusing limit lets pass.
    for subject in subjects.iter_mut().filter(|it| it.expected == 429) {
        subject.ask(request());
    }
    Ok(subjects)
}

fn silently(settings: &str) -> String {
    format!("respond: {{ headers: [] }}{settings}")
}

/// Returns a small request, as forwarded by a proxy on this machine.
pub fn request() -> Request<Body> {
    let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/orders/17?page=2");
    for (name, value) in [
        ("host", "api.example"),
        ("user-agent", "curl/8.5.0"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-api-key", "3f9c2f0f1c5e4b7d"),
    ] {
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
    }
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}
