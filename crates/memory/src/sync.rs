//! Atomics and mutexes, from the standard library or from loom's model of it.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64};

/// Mutex of the usual build: no poisoning, one byte.
#[cfg(not(loom))]
pub(crate) type Mutex<T> = parking_lot::Mutex<T>;
/// Guard of [`Mutex`].
#[cfg(not(loom))]
pub(crate) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

/// loom's mutex with the interface of `parking_lot`'s.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);
/// Guard of [`Mutex`].
#[cfg(loom)]
pub(crate) type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(loom)]
impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Locks the mutex.
    ///
    /// # Panics
    ///
    /// If another thread of the model has panicked with the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .expect("no thread of a model panics with the lock")
    }
}

/// Logarithm of the most spins at a time.
#[cfg(not(loom))]
const SPINS_LOG2_MAX: u32 = 6;

/// Waits for another thread to finish something that takes tens of nanoseconds.
///
/// It spins twice as long each time, so that the thread that has the cache line can do several
/// things with it. Then it yields: the other thread may have been suspended in the middle of it.
#[derive(Default)]
pub(crate) struct SpinBackoff(u32);

impl SpinBackoff {
    /// Waits a little, and longer with each call.
    #[cfg(not(loom))]
    pub(crate) fn wait(&mut self) {
        if self.0 <= SPINS_LOG2_MAX {
            for _ in 0..1_u32 << self.0 {
                std::hint::spin_loop();
            }
            self.0 = self.0.saturating_add(1);
        } else {
            std::thread::yield_now();
        }
    }

    /// Lets loom run another thread.
    #[cfg(loom)]
    pub(crate) fn wait(&mut self) {
        self.0 = 0;
        loom::thread::yield_now();
    }
}

#[cfg(loom)]
std::thread_local! {
    /// Seed of the stores that a model makes: chosen by the test, so that runs are repeatable.
    pub(crate) static SEED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
