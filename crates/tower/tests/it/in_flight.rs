//! Limits of requests in flight, from the decision to the end of the response's body.

use crate::world::{Hello, ManualStore, get, limiter};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use std::convert::Infallible;
use std::future::{Future, Ready, pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tidegate::{Limiter, Permit, Store};
use tidegate_tower::{RateLimit, RateLimitLayer};
use tokio::sync::mpsc;
use tower::{Layer as _, ServiceExt as _, service_fn};

const ONE: &str = "policies: [{ name: api, limits: [{ name: at-once, concurrent: 1 }] }]";

async fn status<Svc>(service: &RateLimit<Svc, ManualStore>) -> u16
where
    Svc: tower::Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible>
        + Clone,
{
    let answer = service.clone().oneshot(get()).await.expect("no error");
    answer.status().as_u16()
}

fn layer() -> RateLimitLayer<ManualStore> {
    RateLimitLayer::new(limiter(ONE))
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_body_has_ended_or_is_dropped() {
    let service = layer().layer(Hello::default());
    let answer = service.clone().oneshot(get()).await.expect("no error");
    assert_eq!(answer.status(), 200);
    assert_eq!(status(&service).await, 429);
    drop(answer);
    assert_eq!(status(&service).await, 200, "dropped unread");

    let mut answer = service.clone().oneshot(get()).await.expect("no error");
    assert!(answer.frame().await.is_some());
    assert_eq!(status(&service).await, 429);
    assert!(answer.frame().await.is_none());
    assert_eq!(status(&service).await, 200, "it has ended");
}

#[tokio::test]
async fn a_request_that_is_dropped_before_its_response_is_not_in_flight() {
    let never = service_fn(|_: Request<Full<Bytes>>| {
        pending::<Result<Response<Full<Bytes>>, Infallible>>()
    });
    let shared = limiter(ONE);
    let never = RateLimitLayer::new(shared.clone()).layer(never);
    let hello = RateLimitLayer::new(shared).layer(Hello::default());
    {
        let mut asking = pin!(never.oneshot(get()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(asking.as_mut().poll(&mut context), Poll::Pending));
        assert_eq!(status(&hello).await, 429);
    }
    assert_eq!(status(&hello).await, 200);
}

/// A WebSocket outlives its response.
#[tokio::test]
async fn an_application_may_keep_the_permit() {
    let (keep, mut kept) = mpsc::channel(1);
    let app = service_fn(move |mut request: Request<Full<Bytes>>| {
        let permit = request.extensions_mut().remove::<Permit>();
        keep.try_send(permit).expect("there is room");
        let answer = Response::new(Full::<Bytes>::from("open"));
        ready(Ok::<_, Infallible>(answer)) as Ready<Result<_, Infallible>>
    });
    let shared = limiter(ONE);
    let service = RateLimitLayer::new(shared.clone()).layer(app);
    drop(service.oneshot(get()).await.expect("no error"));
    let hello = RateLimitLayer::new(shared.clone()).layer(Hello::default());
    assert_eq!(status(&hello).await, 429, "the application holds it");
    assert!(kept.recv().await.is_some_and(|permit| permit.is_some()));
    assert_eq!(status(&hello).await, 200);
    assert!(is_free(&shared));
}

fn is_free<S: Store>(limiter: &Limiter<S>) -> bool {
    let look = tidegate::Request::new().cost(0);
    let rules = limiter.rules().expect("it is open");
    let attempt = limiter.attempt(&rules, &look, tidegate::AskPurpose::Pass);
    matches!(
        attempt,
        Ok(tidegate::Attempt::Done(decision))
            if decision.binding().is_some_and(|binding| binding.remaining() == 1)
    )
}
