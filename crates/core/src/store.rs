//! Where buckets live: one trait, and the laws that every implementation obeys.

use crate::{Ask, Bucket, Quota, Reply, Timestamp};
use std::error::Error;
use std::fmt;
use std::future::Future;

/// Keeps buckets and decides requests against them.
///
/// Requests are data and never closures, so that a store across the network needs one round trip.
/// A store that answers at once returns a ready future.
///
/// # Laws
///
/// `tidegate-testkit` turns these into tests (`store_laws!`) that every store must pass.
///
/// 1. *All or nothing.* A request is decided against all its buckets in one atomic step. If an
///    enforced bucket refuses, no bucket is charged (but see law 9).
/// 2. *Never over.* No interleaving of any number of callers admits more than the quotas allow.
/// 3. *One clock.* A request is decided at one instant, [`Reply::at`], read where the state is
///    kept; instants never run backwards.
/// 4. *Nothing lost.* Fractions are kept: the same requests at the same instants get the answers
///    of exact arithmetic.
/// 5. *As long as it matters.* A bucket is forgotten only once it is as good as new, and none is
///    kept for ever.
/// 6. *Honest refusals.* [`Outcome::wait`](crate::Outcome::wait) is the earliest moment at which
///    the same cost would pass if nobody else came; one tick earlier it would not.
/// 7. *Free refusals.* Being refused costs nothing: the state after a refusal is the state before.
/// 8. *Shadows are silent.* A shadow bucket never refuses a request, and is charged only if the
///    request passes and its whole limit would have allowed it.
/// 9. *Force charges.* An enforced [`Op::Force`](crate::Op::Force) is charged, even where it refuses
///    itself, unless an enforced take refuses; never beyond the overdraft.
/// 10. *Giving back is safe.* [`Op::GiveBack`](crate::Op::GiveBack) is carried out before anything
///     else of its request, and in any case; it never makes room that the quota would not have
///     had, had the units never been taken.
/// 11. *In order.* The reply has one outcome for each ask, in the order of the asks; a bucket asked
///     for twice is charged twice, the enforced asks before the shadows.
/// 12. *Unknown is an error.* A store that cannot tell returns [`StoreError`], never a guess.
pub trait Store: Send + Sync {
    /// Decides `asks` in one step.
    fn decide(&self, asks: &[Ask<'_>]) -> impl Future<Output = Result<Reply, StoreError>> + Send;

    /// What is kept of one bucket under `quota`, or `None` where nothing is (it is as good as new).
    fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<Option<Inspection>, StoreError>> + Send;

    /// Makes one bucket as good as new; tells whether there was anything to forget.
    fn reset(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// What a store keeps of one bucket.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The store's present instant.
    pub at: Timestamp,
    /// The state.
    pub bucket: Bucket,
}

/// Why a store could not tell. It is not a refusal: a refusal is a [`Reply`].
#[derive(Debug)]
pub struct StoreError {
    message: String,
    transient: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// A failure that may pass by itself, such as a timeout.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: true,
            source: None,
        }
    }

    /// A failure that somebody has to mend, such as a refused password.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            transient: false,
            ..Self::transient(message)
        }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the same call may succeed later without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        self.transient
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + Send + Sync) = self.source.as_deref()?;
        Some(source)
    }
}
