//! A single bucket under a quota that the caller supplies: no policy, no limit, no configuration.
//!
//! For frontends whose protocols work that way. Such buckets are named `~cl/throttle/KEY`. Names of policies
//! begin with a letter or a digit, so no policy ever uses one of these buckets.

use crate::backend::Backend;
use crate::decision::{DecidedBy, RETRY_AFTER_FAILURE_US};
use crate::error::CheckError;
use crate::failure::FallbackTerms;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{
    Ask, BucketState, LimitMode, Op, Outcome, Quota, QuotaError, Store, StoreError, Wait,
};

/// The prefix of the names of all these buckets.
const SCOPE: &[u8] = b"~cl/throttle/";

/// The band's label. It identifies the bucket independently of its parameters, which may change from one call
/// to the next.
const LABEL: &str = "throttle";

/// Holds the longest name without an allocation: 64 bytes, each of them escaped.
type BucketNameBuffer = SmallVec<[u8; 256]>;

/// A charge to a single bucket under a quota that the caller supplies, as `CL.THROTTLE` of redis-cell has it:
/// no policy, no limit, no configuration. Buckets of the same key are the same under any quota.
///
/// ```
/// use tidegate::{LimitSpec, Limiter, Throttle};
///
/// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
/// let quota = Throttle::quota(2, 1, 60)?;
/// let ask = Throttle { key: b"ann", quota: &quota, quantity: 2 };
/// let rules = limiter.rules()?;
/// let first = limiter.throttle_at_once(&rules, &ask).expect("buckets are in memory");
/// assert!(first.outcome.is_allowed());
/// let second = limiter.throttle_at_once(&rules, &ask).expect("buckets are in memory");
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

/// The result of a [`Throttle`]. [`is_allowed`](Self::is_allowed) is the verdict for the caller, which
/// differs from that of the bucket in shadow mode.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThrottleOutcome {
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
    Outcome::new(
        0,
        Wait::from_micros(RETRY_AFTER_FAILURE_US),
        RETRY_AFTER_FAILURE_US,
    )
}

impl ThrottleOutcome {
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

/// Charges a single bucket, in any store.
pub(crate) async fn charge<S: Store>(
    backend: &Backend<S>,
    rules: &Rules,
    throttle: &Throttle<'_>,
) -> Result<ThrottleOutcome, CheckError> {
    let name = throttle.name(rules);
    let ask = throttle.ask(&name, rules.mode);
    let terms = FallbackTerms {
        rules,
        matched: None,
    };
    let answers = backend.ask(terms, &[ask]).await?;
    let outcome = match answers.list.first() {
        Some(Some(answer)) => answer.outcome,
        _ if answers.denied.is_empty() => untouched(&ask),
        _ => refused(),
    };
    Ok(ThrottleOutcome::new(outcome, answers.decided_by, rules))
}

/// Charges a single bucket if the store decides immediately. `None` means that nothing was done.
#[inline]
pub(crate) fn charge_at_once<S: Store>(
    backend: &Backend<S>,
    rules: &Rules,
    throttle: &Throttle<'_>,
) -> Option<ThrottleOutcome> {
    if backend.waits() {
        return None;
    }
    let name = throttle.name(rules);
    let ask = throttle.ask(&name, rules.mode);
    let reply = backend.reply_at_once(&[ask])?;
    let outcome = reply.outcomes.first()?;
    Some(ThrottleOutcome::new(*outcome, DecidedBy::Store, rules))
}

/// Returns the time until the bucket of `key` is full; `None` if the store has no state for it.
pub(crate) async fn reset_after<S: Store>(
    backend: &Backend<S>,
    rules: &Rules,
    key: &[u8],
) -> Result<Option<Duration>, CheckError> {
    let quota = any_quota()?;
    let name = name(rules, key);
    let kept = backend
        .in_time(backend.store.inspect(&name, &quota))
        .await?;
    Ok(kept.map(|kept| Duration::from_micros(kept.bucket.fresh_at(&quota).since(kept.at))))
}

/// Resets the bucket of `key`. Returns true if the store had state for it.
pub(crate) async fn reset<S: Store>(
    backend: &Backend<S>,
    rules: &Rules,
    key: &[u8],
) -> Result<bool, CheckError> {
    let quota = any_quota()?;
    let name = name(rules, key);
    backend.in_time(backend.store.reset(&name, &quota)).await
}
