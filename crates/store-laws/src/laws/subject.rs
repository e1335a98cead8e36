use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tidegate_core::{Ask, Inspection, ManualClock, Outcome, Quota, Reply, Store};

/// A store under test, with control of its clock.
pub trait StoreUnderTest: Sync {
    /// The store's type.
    type Store: Store;

    /// Returns the store, without the buckets of these tests.
    fn store(&self) -> &Self::Store;

    /// Lets `micros` microseconds pass, exactly.
    fn advance_micros(&self, micros: u64);

    /// Waits for a future. A store that needs a runtime runs it there.
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }

    /// Returns the store's reply to a request.
    fn decide(&self, asks: &[Ask<'_>]) -> Reply {
        self.block_on(self.store().decide(asks))
            .expect("a healthy store answers")
    }

    /// Returns the store's outcome of one ask.
    fn decide_one(&self, ask: Ask<'_>) -> Outcome {
        *self
            .decide(&[ask])
            .outcomes
            .first()
            .expect("one outcome for each ask")
    }

    /// Returns the stored state of a bucket.
    fn inspect(&self, bucket: &[u8], quota: &Quota) -> Option<Inspection> {
        self.block_on(self.store().inspect(bucket, quota))
            .expect("a healthy store answers")
    }

    /// Resets a bucket.
    fn reset(&self, bucket: &[u8], quota: &Quota) -> bool {
        self.block_on(self.store().reset(bucket, quota))
            .expect("a healthy store answers")
    }
}

/// A store with a manual clock.
#[derive(Debug)]
pub struct Manual<S> {
    store: S,
    clock: ManualClock,
}

impl<S> Manual<S> {
    /// Returns a store that takes its time from `clock`.
    pub fn new(store: S, clock: ManualClock) -> Self {
        Self { store, clock }
    }
}

impl<S: Store> StoreUnderTest for Manual<S> {
    type Store = S;

    fn store(&self) -> &S {
        &self.store
    }

    fn advance_micros(&self, micros: u64) {
        self.clock.advance_micros(micros);
    }
}

/// Waits for a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
