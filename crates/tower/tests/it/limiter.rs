use crate::world::{Hello, TWO, call, config, get, get_with, header, limiter, statuses};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use tidegate::{CheckError, Limiter};
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;

#[tokio::test]
async fn clones_and_all_services_of_a_layer_share_their_buckets() {
    let layer = RateLimitLayer::new(limiter(TWO));
    let (one, other) = (Hello::default(), Hello::default());
    let first = layer.layer(one.clone());
    let second = layer.clone().layer(other.clone());
    assert_eq!(statuses(&first.clone(), [get()]).await, [200]);
    assert_eq!(statuses(&second, [get()]).await, [200]);
    assert_eq!(statuses(&first, [get()]).await, [429]);
    assert_eq!(statuses(&second.clone(), [get()]).await, [429]);
    assert_eq!((one.called(), other.called()), (1, 1));
}

#[tokio::test]
async fn a_reload_applies_to_all_services_at_once() {
    let limiter = limiter(TWO);
    let service = RateLimitLayer::new(limiter.clone()).layer(Hello::default());
    assert_eq!(
        statuses(&service, [get(), get(), get()]).await,
        [200, 200, 429]
    );
    limiter
        .reload(config(
            "
respond: { headers: [draft-03] }
policies: [{ name: api, limits: [{ name: more, rate: 5/h }] }]",
        ))
        .unwrap();
    let answer = call(&service, get()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "ratelimit-limit"), Some("5, 5;w=3600"));
    assert_eq!(header(&answer, "x-ratelimit-limit"), None);
}

#[tokio::test]
async fn a_policy_is_selected_by_name() {
    let limiter = limiter(
        "
policies:
  - { name: api, limits: [{ name: none, rate: 1/h }] }
  - { name: admin, limits: [{ name: some, rate: 3/h }] }",
    );
    let layer = RateLimitLayer::new(limiter.clone());
    let unknown = layer.clone().policy("amdin").expect_err("there is none");
    assert!(matches!(unknown, CheckError::UnknownPolicy { .. }));
    assert!(unknown.to_string().contains("`amdin`"), "{unknown}");

    let layer = layer.policy("admin").expect("it is there");
    let service = layer.layer(Hello::default());
    let answer = call(&service, get()).await;
    assert_eq!(header(&answer, "x-ratelimit-limit"), Some("3"));

    // Requests that cannot be decided any more are refused.
    limiter.reload(config(TWO)).unwrap();
    let answer = call(&service, get()).await;
    assert_eq!(answer.status(), 503);
    assert!(
        !String::from_utf8_lossy(answer.body()).contains("admin"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn nothing_passes_after_the_limiter_is_closed() {
    let (limiter, app) = (limiter(TWO), Hello::default());
    let service = RateLimitLayer::new(limiter.clone()).layer(app.clone());
    limiter.close();
    let answer = call(&service, get()).await;
    assert_eq!((answer.status().as_u16(), app.called()), (503, 0));
    assert_eq!(header(&answer, "retry-after"), Some("1"));
}

#[tokio::test]
async fn without_a_matching_limit_no_limit_headers_are_set() {
    let limiter = limiter(
        "
policies:
  - name: api
    limits: [{ name: login, match: { path: /login }, rate: 1/h }]",
    );
    let service = RateLimitLayer::new(limiter).layer(Hello::default());
    let answer = call(&service, get()).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().is_empty(), "{answer:?}");
}

#[tokio::test]
async fn an_observer_gets_details_hidden_from_clients() {
    let shadow = tidegate::LimitSpec::new("watched").band("1/h").shadow();
    let limiter = Limiter::builder().limit(shadow).build().expect("a limiter");
    let (seen, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (saw, fails) = (Arc::clone(&seen), Arc::clone(&failed));
    let layer = RateLimitLayer::new(limiter.clone()).observe(move |seen| match seen.decided() {
        Ok(decision) => {
            let over = decision.applied().filter(|band| !band.is_allowed()).count();
            saw.fetch_add(over as u64, SeqCst);
        }
        Err(_) => drop(fails.fetch_add(1, SeqCst)),
    });
    let service = layer.layer(Hello::default());
    assert_eq!(
        statuses(&service, [get(), get(), get()]).await,
        [200, 200, 200]
    );
    assert_eq!((seen.load(SeqCst), failed.load(SeqCst)), (2, 0));
    limiter.close();
    assert_eq!(statuses(&service, [get()]).await, [503]);
    assert_eq!((seen.load(SeqCst), failed.load(SeqCst)), (2, 1));
}

#[tokio::test]
async fn an_observer_gets_the_request_and_its_token_result() {
    const TOKENS: &str = "
client:
  jwt: { secret: 0123456789abcdef0123456789abcdef }
  user: { claim: sub }
policies: [{ name: api, limits: [{ name: per-user, key: user, rate: 5/h }] }]";
    fn watched<S: tidegate::Store>(
        limiter: Limiter<S>,
    ) -> (RateLimitLayer<S>, mpsc::Receiver<ObservedDecision>) {
        let (sent, seen) = mpsc::channel();
        let layer = RateLimitLayer::new(limiter).observe(move |seen| {
            let path = seen.head().target().path().to_owned();
            sent.send((path, seen.decided().is_ok(), seen.token_refused()))
                .expect("the receiver is alive");
        });
        (layer, seen)
    }
    let asked = || {
        let mut request = get_with(&[("authorization", "Bearer nonsense")]);
        *request.uri_mut() = "/orders".parse().expect("a path");
        [request, get()]
    };
    let expected = [
        ("/orders".to_owned(), true, Some("malformed")),
        ("/".to_owned(), true, None),
    ];
    let (layer, seen) = watched(limiter(TOKENS));
    statuses(&layer.layer(Hello::default()), asked()).await;
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
    let (layer, seen) = watched(crate::slow::limiter(TOKENS));
    statuses(&layer.layer(Hello::default()), asked()).await;
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
}

/// The path, true if it was decided, and the reason why its token was rejected.
type ObservedDecision = (String, bool, Option<&'static str>);
