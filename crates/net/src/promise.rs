//! A value that is available at once in nearly all cases, and otherwise later.

use futures_util::future::join_all;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// A value that is available now, or comes later.
///
/// A future that may have to wait holds requests, decisions and a call to the store: kilobytes, which would
/// be part of every response in flight. So values that are available at once come without one.
pub enum Promise<'a, T> {
    /// The value.
    Now(T),
    /// The future of it.
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

/// Boxes the value that `make` returns. Unlike with `Box::new`, the memory is allocated before the value, so
/// that a large value is constructed in place and not copied.
#[inline]
pub fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::write(Box::new_uninit(), make())
}

impl<T: fmt::Debug> fmt::Debug for Promise<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(value) => f.debug_tuple("Now").field(value).finish(),
            Self::Later(_) => f.debug_tuple("Later").finish_non_exhaustive(),
        }
    }
}

impl<'a, T: Send + 'a> Promise<'a, T> {
    /// Returns the value, waiting for it if necessary.
    pub async fn value(self) -> T {
        match self {
            Self::Now(value) => value,
            Self::Later(later) => later.await,
        }
    }

    /// Returns true if the value is not available yet.
    pub fn is_later(&self) -> bool {
        matches!(self, Self::Later(_))
    }

    /// Converts the value with `make`.
    pub fn map<U: Send + 'a>(self, make: impl FnOnce(T) -> U + Send + 'a) -> Promise<'a, U> {
        match self {
            Self::Now(value) => Promise::Now(make(value)),
            Self::Later(later) => Promise::Later(Box::pin(async move { make(later.await) })),
        }
    }

    /// Returns all of the values in order. Those that come later are awaited together.
    ///
    /// ```
    /// use tidegate_net::promise::Promise;
    ///
    /// let both = Promise::all(vec![Promise::Now(1), Promise::Now(2)]);
    /// assert!(!both.is_later(), "no future was made");
    /// ```
    pub fn all(promises: Vec<Self>) -> Promise<'a, Vec<T>> {
        if promises.iter().all(|it| matches!(it, Self::Now(_))) {
            let values = promises.into_iter().filter_map(|it| match it {
                Self::Now(value) => Some(value),
                Self::Later(_) => None,
            });
            return Promise::Now(values.collect());
        }
        let values = promises.into_iter().map(Self::value);
        Promise::Later(Box::pin(join_all(values)))
    }
}
