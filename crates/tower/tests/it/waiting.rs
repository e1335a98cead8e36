use crate::world::{Hello, call, get, header, limiter};
use std::time::Duration;
use tidegate_tower::RateLimitLayer;
use tokio::time::Instant;
use tower::{Layer as _, Service as _};

/// One at once, and four may wait for the next, a tenth of a second each.
const FIVE: &str = "
policies:
  - name: api
    limits: [{ name: slow, rate: 10/s burst 1, on_refusal: wait, max_wait: 400ms }]
  - name: other
    limits: [{ name: strict, rate: 1/h }]";

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_turn_and_then_reaches_the_application() {
    let app = Hello::default();
    let service = RateLimitLayer::new(limiter(FIVE)).layer(app.clone());
    // The limiter's clock is stopped, so each place is behind the one before.
    for nth in 0..5 {
        let began = Instant::now();
        let answer = call(&service, get()).await;
        assert_eq!((answer.status().as_u16(), app.called()), (200, nth + 1));
        let turn = Duration::from_millis(100 * nth);
        assert!(began.elapsed() >= turn, "{nth}");
        assert!(began.elapsed() <= turn + Duration::from_millis(1), "{nth}");
        assert_eq!(header(&answer, "x-ratelimit-remaining"), Some("0"));
    }
    let began = Instant::now();
    let refused = call(&service, get()).await;
    assert_eq!((refused.status().as_u16(), app.called()), (429, 5));
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_passes_its_place_on() {
    let app = Hello::default();
    let limiter = limiter(FIVE);
    let mut service = RateLimitLayer::new(limiter.clone()).layer(app.clone());
    call(&service, get()).await;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..20 {
        // `Hello` is always ready.
        let mut waits: Vec<_> = (0..4).map(|_| Box::pin(service.call(get()))).collect();
        for future in &mut waits {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(limiter.waiting()[0].count, 4);
        assert_eq!(call(&service, get()).await.status(), 429);
        drop(waits);
        assert_eq!(limiter.waiting()[0].count, 0);
    }
    let began = Instant::now();
    assert_eq!(call(&service, get()).await.status(), 200);
    assert!(began.elapsed() <= Duration::from_millis(101));
    assert_eq!(app.called(), 2, "no other request reached it");
}

#[tokio::test(start_paused = true)]
async fn a_policy_without_waiting_is_decided_at_once() {
    let app = Hello::default();
    let layer = RateLimitLayer::new(limiter(FIVE)).policy("other");
    let mut service = layer.expect("the server is up").layer(app.clone());
    for status in [200, 429] {
        let mut answer = Box::pin(service.call(get()));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match answer.as_mut().poll(&mut context) {
            std::task::Poll::Ready(Ok(answer)) => assert_eq!(answer.status(), status),
            _ => panic!("it waits"),
        }
    }
}
