//! Limits by a key alone, without the rest of a request.

use crate::decision::Decision;
use crate::error::{BuildError, CheckError};
use crate::limiter::Limiter;
use crate::spec::LimitSpec;
use smallvec::SmallVec;
use std::fmt::{self, Display, Write as _};
use std::str;
use tidegate_core::{Clock, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::{KeyPart, Request};

/// The name of the limit of [`Limiter::keyed`].
const PER_KEY: &str = "per-key";

/// Keys up to this length are written without an allocation.
const SHORT_KEY_BYTES: usize = 64;

/// A limiter that decides by a key alone, for programs that need nothing else of a request.
///
/// [`Limiter::keyed`] creates one with a single limit in memory. For more settings, such as waiting or buckets
/// in Redis, [wrap](Self::new) any limiter that has limits by [`KeyPart::User`]: the key takes the place of
/// the user.
///
/// A key is anything that can be written as text: a name, a number, an address, a tuple formatted by
/// `format_args!`. Bytes are written by [`escape_ascii`](slice::escape_ascii). Keys with the same text share a
/// bucket. Keys of more than 64 bytes are stored as a hash.
///
/// Clones are cheap and share all buckets.
///
/// ```
/// use tidegate::{Limiter, Rate};
///
/// let limiter = Limiter::keyed(Rate::per_second(50).burst(2))?;
/// assert!(limiter.check_key("user-7")?.is_allowed());
/// assert!(limiter.check_key("user-7")?.is_allowed());
///
/// let refused = limiter.check_key("user-7")?;
/// assert!(refused.binding().and_then(|band| band.retry_after()).is_some());
/// assert!(limiter.check_key("user-8")?.is_allowed(), "each key has a bucket");
///
/// // Other types of keys:
/// assert!(limiter.check_key(42)?.is_allowed());
/// assert!(limiter.check_key(format_args!("{}/{}", "shop", 7))?.is_allowed());
/// assert!(limiter.check_key(b"\xff\x00".escape_ascii())?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KeyedLimiter<S = MemoryStore> {
    limiter: Limiter<S>,
}

impl Limiter {
    /// Builds a limiter with one limit, `per-key`, that counts every key in a separate bucket in memory.
    ///
    /// `rate` is a [`Rate`](crate::Rate), or its text.
    ///
    /// # Errors
    ///
    /// [`BuildError::Limit`] if the rate is invalid, [`BuildError::Memory`] if there is no memory for the
    /// buckets.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::Limiter;
    ///
    /// let logins = Limiter::keyed("5/min")?;
    /// assert!(logins.check_key("192.0.2.1")?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keyed(rate: impl Into<String>) -> Result<KeyedLimiter, BuildError> {
        let limit = LimitSpec::new(PER_KEY).key(KeyPart::User).band(rate);
        let limiter = Self::builder().limit(limit).build()?;
        Ok(KeyedLimiter::new(limiter))
    }
}

impl<S: Store> KeyedLimiter<S> {
    /// Wraps a limiter: every key is checked as a request whose only fact is its user. Limits by other parts
    /// of a request treat them as missing.
    ///
    /// ```
    /// use tidegate::{Algorithm, KeyPart, KeyedLimiter, LimitSpec, Limiter, Rate};
    ///
    /// let limit = LimitSpec::new("reports")
    ///     .key(KeyPart::User)
    ///     .band(Rate::per_day(20))
    ///     .algorithm(Algorithm::SlidingLog);
    /// let reports = KeyedLimiter::new(Limiter::builder().limit(limit).max_keys(10_000).build()?);
    /// assert!(reports.check_key("ann")?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(limiter: Limiter<S>) -> Self {
        Self { limiter }
    }

    /// Returns the limiter, for everything that is not about one key.
    pub fn limiter(&self) -> &Limiter<S> {
        &self.limiter
    }

    /// Decides a request of `key`, and waits until it is ready: for its turn, if the limit lets requests
    /// [wait](LimitSpec::wait), and for the store, if it is across a network.
    ///
    /// Requests of a key get their turn in order of arrival. A request whose turn would come later than
    /// `max_wait` is refused at once, so check the decision. A limit without `wait` never makes a request
    /// wait. Waiting needs a `tokio` runtime with timers; on other executors, no request waits.
    ///
    /// # Cancellation
    ///
    /// Dropping the future releases the place in the queue; see [`Limiter::check`].
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::check`].
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{KeyPart, KeyedLimiter, LimitSpec, Limiter, Rate};
    ///
    /// let limit = LimitSpec::new("mails")
    ///     .key(KeyPart::User)
    ///     .band(Rate::per_second(100).burst(1))
    ///     .wait(Duration::from_secs(5));
    /// let mails = KeyedLimiter::new(Limiter::builder().limit(limit).build()?);
    ///
    /// for _ in 0..3 {
    ///     let decision = mails.until_ready("ann").await?;
    ///     assert!(decision.is_allowed(), "each waits 10 ms for the one before");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn until_ready(&self, key: impl Display) -> Result<Decision, CheckError> {
        let key = KeyText::of(&key);
        self.limiter.check(&key.request()).await
    }
}

impl<C: Clock> KeyedLimiter<MemoryStore<C>> {
    /// Decides a request of `key` at once, and consumes one unit if it fits. Never waits: see
    /// [`Limiter::check_now`].
    ///
    /// # Errors
    ///
    /// [`CheckError::Closed`] if the limiter is closed.
    ///
    /// # Example
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tidegate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::keyed(Rate::per_minute(1))?;
    /// let address: IpAddr = "192.0.2.1".parse()?;
    /// assert!(limiter.check_key(address)?.is_allowed());
    /// assert!(!limiter.check_key(address)?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_key(&self, key: impl Display) -> Result<Decision, CheckError> {
        self.check_key_n(key, 1)
    }

    /// Like [`check_key`](Self::check_key), and consumes `cost` units: all of them, or none. A cost of 0 reads
    /// without consuming. A cost above the burst never fits, and its refusal has no time to retry.
    ///
    /// # Errors
    ///
    /// Those of [`check_key`](Self::check_key).
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{Limiter, Rate};
    ///
    /// let limiter = Limiter::keyed(Rate::per_hour(10))?;
    /// assert!(limiter.check_key_n("ann", 8)?.is_allowed());
    /// assert!(!limiter.check_key_n("ann", 3)?.is_allowed(), "two are left");
    /// let never = limiter.check_key_n("ann", 11)?;
    /// assert_eq!(never.binding().and_then(|band| band.retry_after()), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_key_n(&self, key: impl Display, cost: u64) -> Result<Decision, CheckError> {
        let key = KeyText::of(&key);
        self.limiter.check_now(&key.request().cost(cost))
    }
}

impl<S> Clone for KeyedLimiter<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
        }
    }
}

/// A key as text, on the stack if it is short.
struct KeyText(SmallVec<[u8; SHORT_KEY_BYTES]>);

impl KeyText {
    fn of(key: &impl Display) -> Self {
        let mut text = Self(SmallVec::new());
        // A key whose formatting fails counts as far as it was written: no bucket is more exact.
        write!(text, "{key}").ok();
        text
    }

    fn request(&self) -> Request<'_> {
        let text = str::from_utf8(&self.0);
        Request::new().user(text.expect("formatted text is UTF-8"))
    }
}

impl fmt::Write for KeyText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
