use crate::world::{Hello, ManualStore, TWO, call, clock, config, get, header, statuses};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tidegate::{Limiter, MemoryStore, OnFailure, Store, StoreError};
use tidegate_core::{Ask, Inspection, Quota, Reply};
use tidegate_tower::RateLimitLayer;
use tower::{Layer as _, Service as _};

/// A store that replies only when it is polled again, or never.
#[derive(Debug)]
pub(crate) struct SlowStore {
    memory: ManualStore,
    away: Arc<AtomicBool>,
}

impl Store for SlowStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        tokio::task::yield_now().await;
        if self.away.load(SeqCst) {
            return Err(StoreError::transient("nobody there"));
        }
        Ok(self.memory.decide_now(asks))
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        self.memory.inspect(bucket, quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.memory.reset(bucket, quota).await
    }
}

pub(crate) fn limiter(text: &str) -> Limiter<SlowStore> {
    failing(text, OnFailure::Error, &Arc::default())
}

/// Returns a limiter whose store is down.
pub(crate) fn unreachable_limiter(on_failure: OnFailure) -> Limiter<SlowStore> {
    failing(TWO, on_failure, &Arc::new(AtomicBool::new(true)))
}

fn failing(text: &str, on_failure: OnFailure, away: &Arc<AtomicBool>) -> Limiter<SlowStore> {
    let store = SlowStore {
        memory: MemoryStore::builder().clock(clock()).build(),
        away: Arc::clone(away),
    };
    let builder = Limiter::builder()
        .config(config(text))
        .on_failure(on_failure);
    builder
        .max_keys(1_000)
        .build_with(store)
        .expect("a limiter")
}

#[tokio::test]
async fn a_store_across_the_network_decides_as_one_in_this_process() {
    let app = Hello::default();
    let service = RateLimitLayer::new(limiter(TWO)).layer(app.clone());
    for left in ["1", "0"] {
        let answer = call(&service, get()).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(header(&answer, "x-ratelimit-remaining"), Some(left));
    }
    let refused = call(&service, get()).await;
    assert_eq!((refused.status().as_u16(), app.called()), (429, 2));
    assert_eq!(header(&refused, "retry-after"), Some("1800"));
}

#[tokio::test]
async fn without_the_store_each_failure_policy_applies() {
    for (word, status, called) in [
        (OnFailure::Allow, 200, 1),
        (OnFailure::Local, 200, 1),
        (OnFailure::Deny, 503, 0),
        (OnFailure::Error, 503, 0),
    ] {
        let app = Hello::default();
        let service = RateLimitLayer::new(unreachable_limiter(word)).layer(app.clone());
        let answer = call(&service, get()).await;
        assert_eq!(
            (answer.status().as_u16(), app.called()),
            (status, called),
            "{word:?}"
        );
        // No limit was exceeded.
        let wait = (status == 503).then_some("1");
        assert_eq!(header(&answer, "retry-after"), wait, "{word:?}");
    }
}

#[tokio::test]
async fn a_request_dropped_during_a_store_call_never_reaches_the_application() {
    let app = Hello::default();
    let mut service = RateLimitLayer::new(limiter(TWO)).layer(app.clone());
    // `Hello` is always ready.
    let mut asked = Box::pin(service.call(get()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(asked.as_mut().poll(&mut context).is_pending());
    assert_eq!(
        format!("{asked:?}"),
        "ResponseFuture(\"waiting for a decision\")"
    );
    drop(asked);
    assert_eq!(app.called(), 0);
}

/// A store that always replies, but never immediately.
#[derive(Debug)]
struct DelayedStore(ManualStore);

impl Store for DelayedStore {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        tokio::task::yield_now().await;
        Ok(self.0.decide_now(asks))
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        self.0.inspect(bucket, quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        self.0.reset(bucket, quota).await
    }

    fn can_fail(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn functions_were_called_twice_for_a_store_that_is_slow_but_cannot_fail() {
    let store = DelayedStore(MemoryStore::builder().clock(clock()).build());
    let builder = Limiter::builder().config(config(TWO));
    let limiter = builder.build_with(store).expect("a limiter");
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let layer = RateLimitLayer::new(limiter).cost(move |_| {
        counted.fetch_add(1, SeqCst);
        1
    });
    let service = layer.layer(Hello::default());
    assert_eq!(
        statuses(&service, [get(), get(), get()]).await,
        [200, 200, 429]
    );
    assert_eq!(calls.load(SeqCst), 3);
}
