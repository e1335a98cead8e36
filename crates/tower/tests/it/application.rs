use crate::world::{Hello, TWO, call, get, header, limiter, whole};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll};
use tidegate_tower::RateLimitLayer;
use tokio::task::JoinSet;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

type TestRequest = Request<Full<Bytes>>;

#[tokio::test]
async fn only_allowed_requests_reach_the_application_and_once() {
    let app = Hello::default();
    let service = RateLimitLayer::new(limiter(TWO)).layer(app.clone());
    for left in ["1", "0"] {
        let answer = call(&service, get()).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.body()[..]),
            (200, &b"hello"[..])
        );
        assert_eq!(header(&answer, "x-ratelimit-remaining"), Some(left));
        assert_eq!(
            header(&answer, "ratelimit-policy"),
            Some("\"everybody\";q=2;w=3600")
        );
        assert_eq!(header(&answer, "retry-after"), None);
    }
    assert_eq!(app.called(), 2);

    let refused = call(&service, get()).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), Some("1800"));
    assert_eq!(
        header(&refused, "content-type"),
        Some("application/problem+json")
    );
    let body: serde_json::Value = serde_json::from_slice(refused.body()).expect("JSON");
    assert_eq!(body["status"], 429);
    assert_eq!(
        body["correlationId"],
        header(&refused, "x-correlation-id").expect("an id")
    );
    assert_eq!(app.called(), 2);
}

#[tokio::test]
async fn an_application_error_is_returned_and_nothing_runs_twice() {
    #[derive(Debug, PartialEq)]
    struct ApplicationError(u64);

    let called = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&called);
    let app = service_fn(move |_: TestRequest| {
        let nth = counted.fetch_add(1, SeqCst) + 1;
        async move { Err::<Response<Full<Bytes>>, _>(ApplicationError(nth)) }
    });
    let service = RateLimitLayer::new(limiter(TWO)).layer(app);
    for nth in 1..=2 {
        let failed = service.clone().oneshot(get()).await;
        assert_eq!(failed.map(drop), Err(ApplicationError(nth)));
        assert_eq!(called.load(SeqCst), nth);
    }
    // It was charged all the same, and the refusal is a response.
    let refused = service.clone().oneshot(get()).await.expect("an answer");
    assert_eq!((refused.status().as_u16(), called.load(SeqCst)), (429, 2));
}

#[tokio::test]
async fn application_responses_are_unchanged() {
    for status in [500_u16, 503, 429, 404, 302] {
        let app = service_fn(move |_: TestRequest| async move {
            let answer = Response::builder().status(status).header("x-own", "1");
            answer.body(Full::<Bytes>::from("as it is"))
        });
        let answer = call(&RateLimitLayer::new(limiter(TWO)).layer(app), get()).await;
        assert_eq!(answer.status(), status);
        assert_eq!(&answer.body()[..], b"as it is");
        assert_eq!(header(&answer, "x-own"), Some("1"));
        // It does not look like a refusal by Tidegate.
        for name in ["retry-after", "x-correlation-id", "content-type"] {
            assert_eq!(header(&answer, name), None, "{name}");
        }
        assert_eq!(header(&answer, "x-ratelimit-remaining"), Some("1"));
    }
}

#[tokio::test]
async fn the_outermost_layer_sets_the_limit_headers() {
    let app = service_fn(|_: TestRequest| async {
        let answer = Response::builder()
            .header("X-RateLimit-Limit", "99")
            .header("X-RateLimit-Limit", "98");
        answer.body(Full::<Bytes>::default())
    });
    let answer = call(&RateLimitLayer::new(limiter(TWO)).layer(app), get()).await;
    let told: Vec<_> = answer
        .headers()
        .get_all("x-ratelimit-limit")
        .iter()
        .collect();
    assert_eq!(told, ["2"]);
}

#[tokio::test]
async fn a_panic_of_the_application_is_not_swallowed() {
    let app = service_fn(|_: TestRequest| async { panicking() });
    let service = RateLimitLayer::new(limiter(TWO)).layer(app);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { service.oneshot(get()).await.map(drop) });
    let ended = tasks.join_next().await.expect("a task");
    assert!(ended.expect_err("it panics").is_panic());
}

fn panicking() -> Result<Response<Full<Bytes>>, Infallible> {
    panic!("the application is broken")
}

/// A service that is ready once per wait; its clones are not.
struct Turnstile {
    is_ready: bool,
}

impl Clone for Turnstile {
    fn clone(&self) -> Self {
        Self { is_ready: false }
    }
}

impl Service<TestRequest> for Turnstile {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: TestRequest) -> Self::Future {
        assert!(self.is_ready, "called without being ready");
        self.is_ready = false;
        std::future::ready(Ok(Response::default()))
    }
}

#[tokio::test]
async fn the_service_that_is_called_is_the_one_that_was_ready() {
    let layer = RateLimitLayer::new(limiter(TWO));
    let mut service = layer.layer(Turnstile { is_ready: false });
    let slow = crate::slow::limiter(TWO);
    let mut waiting = RateLimitLayer::new(slow).layer(Turnstile { is_ready: false });
    for expected in [200, 200, 429] {
        let answer = service.ready().await.unwrap().call(get()).await.unwrap();
        assert_eq!(answer.status(), expected);
        let answer = waiting.ready().await.unwrap().call(get()).await.unwrap();
        assert_eq!(answer.status(), expected);
    }
}

/// A service that is never ready, or has failed.
#[derive(Clone)]
struct UnreadyService(Poll<Result<(), &'static str>>);

impl Service<TestRequest> for UnreadyService {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = std::future::Pending<Result<Self::Response, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.0
    }

    fn call(&mut self, _: TestRequest) -> Self::Future {
        pending()
    }
}

#[test]
fn readiness_is_that_of_the_application() {
    let layer = RateLimitLayer::new(limiter(TWO));
    let mut context = Context::from_waker(std::task::Waker::noop());
    for state in [Poll::Pending, Poll::Ready(Err("gone")), Poll::Ready(Ok(()))] {
        let mut service = layer.layer(UnreadyService(state));
        assert_eq!(service.poll_ready(&mut context), state);
    }
}

#[tokio::test]
async fn bodies_are_forwarded_as_they_arrive() {
    // Request and response types that are neither shared between threads nor known to Tidegate.
    struct UnsyncBody(std::cell::Cell<u8>);
    let app = service_fn(|request: Request<UnsyncBody>| async move {
        let byte = request.into_body().0.get();
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(vec![byte])))
    });
    let slow = RateLimitLayer::new(crate::slow::limiter(TWO)).layer(app);
    let body = UnsyncBody(std::cell::Cell::new(7));
    let answer = slow.oneshot(Request::new(body)).await.unwrap();
    assert_eq!(&whole(answer).await.body()[..], [7]);
}
