//! A single bucket under a quota that the caller supplies: no policy, no limit, no configuration.
//!
//! For frontends whose protocols work that way. Such buckets are named `~cl/throttle/KEY`. Names of policies
//! begin with a letter or a digit, so no policy ever uses one of these buckets.

use crate::answers::FallbackTerms;
use crate::decision::DecidedBy;
use crate::error::CheckError;
use crate::failure::COME_BACK_US;
use crate::limiter::Limiter;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{
    Ask, BucketState, LimitMode, Op, Outcome, Quota, QuotaError, Store, StoreError, StoreErrorKind,
    Wait,
};
use tokio::time::timeout;

/// The prefix of the names of all these buckets.
const SCOPE: &[u8] = b"~cl/throttle/";

/// The band's label. It identifies the bucket independently of its parameters, which may change from one call
/// to the next.
const LABEL: &str = "throttle";

/// Holds the longest name without an allocation: 64 bytes, each of them escaped.
type BucketNameBuffer = SmallVec<[u8; 256]>;

/// A charge to a single bucket.
///
/// ```
/// use tidegate::{Limiter, Throttle};
///
/// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]")?;
/// let quota = Throttle::quota(2, 1, 60)?;
/// let ask = Throttle { key: b"ann", quota: &quota, quantity: 2 };
/// let rules = limiter.rules()?;
/// let first = limiter.throttle_at_once(&rules, &ask).expect("it is in this process");
/// assert!(first.outcome.is_allowed());
/// let second = limiter.throttle_at_once(&rules, &ask).expect("it is in this process");
/// assert!(!second.outcome.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Throttle<'a> {
    /// The bucket key: any bytes.
    pub key: &'a [u8],
    /// The quota; [`Throttle::quota`] creates one.
    pub quota: &'a Quota,
    /// The number of units to consume; 0 only reads.
    pub quantity: u64,
}

/// The result of a [`Throttle`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Throttled {
    /// The outcome of the bucket.
    pub outcome: Outcome,
    /// The component that decided.
    pub decided_by: DecidedBy,
    /// True if everything is in shadow mode, so that the caller is not refused regardless of the outcome.
    pub is_shadow: bool,
}

impl<'a> Throttle<'a> {
    /// Returns a token bucket of `burst` units that refills by `count` every `period_s` seconds.
    ///
    /// # Errors
    ///
    /// If the quota is invalid; see [`QuotaError`].
    pub fn quota(burst: u64, count: u64, period_s: u64) -> Result<Quota, QuotaError> {
        Quota::new(count, period_s.saturating_mul(1_000_000))
            .burst(burst)
            .label(LABEL)
            .build()
    }

    #[inline]
    fn name(&self, rules: &Rules) -> BucketNameBuffer {
        name(rules, self.key)
    }

    #[inline]
    fn ask(&self, name: &'a [u8], mode: LimitMode) -> Ask<'a> {
        Ask {
            bucket: name,
            scope: SCOPE.len(),
            quota: self.quota,
            op: match self.quantity {
                0 => Op::Look,
                quantity => Op::Take(quantity),
            },
            limit: 0,
            mode,
        }
    }
}

/// Returns the name of the bucket of `key`.
#[inline]
fn name(rules: &Rules, key: &[u8]) -> BucketNameBuffer {
    let mut name = BucketNameBuffer::new();
    name.extend_from_slice(SCOPE);
    rules.keys.push_subject(&mut name, LABEL, key);
    name
}

/// Returns a quota that finds the bucket of any call, because buckets do not depend on the numbers.
/// Its ticks are microseconds, so that it reads when a bucket is full without rounding.
fn any_quota() -> Result<Quota, CheckError> {
    let quota = Throttle::quota(1, 1, 1);
    quota.map_err(|error| CheckError::Store(StoreError::permanent(error.to_string())))
}

/// Returns the outcome of an unused bucket.
fn untouched(ask: &Ask<'_>) -> Outcome {
    Outcome::new(ask.quota.capacity(), Wait::NONE, 0)
}

/// Returns the outcome if the result is unknown and the request is to be refused. The wait gives the store
/// time to recover.
fn refused() -> Outcome {
    Outcome::new(0, Wait::from_micros(COME_BACK_US), COME_BACK_US)
}

impl Throttled {
    #[inline]
    pub(crate) fn new(outcome: Outcome, decided_by: DecidedBy, rules: &Rules) -> Self {
        Self {
            outcome,
            decided_by,
            is_shadow: rules.is_shadow(),
        }
    }

    /// Returns true if the caller may pass: there was room, or everything is in shadow mode.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.is_shadow || self.outcome.is_allowed()
    }
}

impl<S: Store> Limiter<S> {
    /// Charges a single bucket under a quota that the caller supplies.
    ///
    /// If the store does not answer, the store's `on_failure` applies: decided in memory at a share of the
    /// quota, allowed, refused, or an error. In [shadow mode](Rules::is_shadow) no caller is refused;
    /// [`Throttled::outcome`] is the outcome of the bucket.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer and its `on_failure` is `error`.
    pub async fn throttle(
        &self,
        rules: &Rules,
        throttle: &Throttle<'_>,
    ) -> Result<Throttled, CheckError> {
        if let Some(throttled) = self.throttle_at_once(rules, throttle) {
            return Ok(throttled);
        }
        let name = throttle.name(rules);
        let ask = throttle.ask(&name, rules.mode);
        let terms = FallbackTerms { rules, scene: None };
        let answers = self.ask_store(terms, &[ask]).await?;
        let outcome = match answers.list.first() {
            Some(Some(answer)) => answer.outcome,
            _ if answers.denied.is_empty() => untouched(&ask),
            _ => refused(),
        };
        Ok(Throttled::new(outcome, answers.decided_by, rules))
    }

    /// Like [`throttle`](Self::throttle), if the store decides immediately. `None` means that nothing was
    /// done.
    #[inline]
    pub fn throttle_at_once(&self, rules: &Rules, throttle: &Throttle<'_>) -> Option<Throttled> {
        if self.waits() {
            return None;
        }
        let name = throttle.name(rules);
        let reply = self
            .store()
            .decide_at_once(&[throttle.ask(&name, rules.mode)])?;
        let outcome = reply.outcomes.first()?;
        Some(Throttled::new(*outcome, DecidedBy::Store, rules))
    }

    /// Returns the time until the bucket of `key` is full, under any quota it was used with. Returns `None`
    /// if the store has no state for it: it is full, or was never used.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer in time.
    pub async fn throttle_reset_after(
        &self,
        rules: &Rules,
        key: &[u8],
    ) -> Result<Option<Duration>, CheckError> {
        let quota = any_quota()?;
        let name = name(rules, key);
        let kept = self.in_time(self.store().inspect(&name, &quota)).await?;
        Ok(kept.map(|kept| Duration::from_micros(kept.bucket.fresh_at(&quota).since(kept.at))))
    }

    /// Resets the bucket of `key`, under any quota it was used with. Returns true if the store had state for
    /// it.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer in time.
    pub async fn reset_throttle(&self, rules: &Rules, key: &[u8]) -> Result<bool, CheckError> {
        let quota = any_quota()?;
        let name = name(rules, key);
        self.in_time(self.store().reset(&name, &quota)).await
    }

    /// Waits for the store as long as for a decision. The store's own timeout to inspect or reset a bucket is
    /// longer: it is meant for people, who prefer to wait.
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, CheckError> {
        let answered = match self.store().timeout() {
            None => call.await,
            Some(time) => timeout(time, call).await.unwrap_or_else(|_| {
                let message = format!("the store did not answer within {time:?}");
                Err(StoreError::transient(message).with_kind(StoreErrorKind::Timeout))
            }),
        };
        answered.map_err(CheckError::Store)
    }
}
