//! The trait of stores, and the laws that every implementation obeys.

use crate::{Ask, Bucket, Quota, Reply, SharedState, StoreError, Timestamp};
use std::future::Future;
use std::time::Duration;

/// Keeps buckets and decides requests against them.
///
/// Requests are data and never closures, so that a store across the network needs one round trip. A
/// store in memory returns a ready future.
///
/// # Laws
///
/// `tidegate-store-laws` turns these into tests (`store_laws!`) that every store must pass.
///
/// 1. *All or nothing.* A request is decided against all its buckets atomically. If an enforced
///    bucket refuses, no bucket is charged (but see laws 9 and 16).
/// 2. *Never over.* No interleaving of any number of callers admits more than the quotas allow.
/// 3. *One clock.* A request is decided at one instant, [`Reply::at`], read where the state is
///    kept; instants never run backwards.
/// 4. *Nothing lost.* Fractions are kept: the same requests at the same instants get the answers of
///    exact arithmetic.
/// 5. *As long as it matters.* A bucket is forgotten only once it is full again, and none is kept
///    permanently.
/// 6. *Honest refusals.* [`Outcome::wait`](crate::Outcome::wait) is the earliest moment at which
///    the same cost would pass without other requests; one tick earlier it would not.
/// 7. *Free refusals.* A refusal costs nothing: the state after it is the state before. Exceptions:
///    forced charges and debits (law 9), blocks (law 16), and a state that is further ahead than
///    its quota allows. Such a state is [clamped](crate::BucketState::clamp_to_now), and written so even
///    if the request is refused: otherwise it would refuse again from each later instant on.
/// 8. *Shadows are silent.* A shadow bucket never refuses a request, and is charged only if the
///    request passes and its whole limit would have allowed it.
/// 9. *Force charges.* An enforced [`Op::Force`](crate::Op::Force) or
///    [`Op::Debit`](crate::Op::Debit) is charged, even if it refuses itself, unless an enforced
///    take or test refuses; never beyond the overdraft. A debit refuses if its cost does not fit, a
///    forced charge if nothing is left.
/// 10. *Refunds are safe.* [`Op::GiveBack`](crate::Op::GiveBack) is carried out before anything
///     else of its request, and in any case. It never makes room that the quota would not have had,
///     had the units never been taken.
/// 11. *In order.* The reply has one outcome for each ask, in the order of the asks, and lists
///     those that changed their buckets ([`Reply::applied`]). A bucket that occurs twice is charged
///     twice, the enforced asks before the shadows.
/// 12. *Unknown is an error.* A store that does not know the result returns [`StoreError`], never a
///     guess.
/// 13. *Once is once.* An [`Op::Return`](crate::Op::Return) next to an enforced take that refuses
///     changes nothing. With a take that only one caller can win, it happens once for any number of
///     attempts.
/// 14. *In its turn.* It is carried out after everything else of its request, if no enforced take
///     or test refuses and its time is not past. Its bucket must be decided together with the takes
///     next to it: a store that cannot decide both atomically returns an error.
/// 15. *Testing is free.* An [`Op::Test`](crate::Op::Test) answers as a take of that cost would,
///     refusals included, and takes nothing.
/// 16. *The first refusal blocks.* An enforced [`Op::Block`](crate::Op::Block) refuses while a unit
///     is charged to its bucket. One is charged exactly if an enforced take, forced charge or debit
///     of the same limit refuses although waiting would help, and the bucket has one. Its outcome
///     has the state after that. No pass, look, test or refund blocks. The block of a shadow limit
///     refuses nothing but its own limit, and is charged in the same way if the request passes. A
///     bucket must be decided together with its block, or the store must coordinate both.
/// 17. *Numbers may change.* Another version of a policy, or two in turns, may use a bucket under
///     other numbers of the same band. The store then reads it according to
///     [`OnChange`](crate::OnChange). In every representation used units are not forgotten, and no
///     subject owes more than an empty bucket.
/// 18. *Its clock picks the window.* An ask brings the [starts](Quota::with_starts) of calendar windows, and
///     the store's clock picks the window among them. If it is in none, the reply is
///     [outside](crate::Reply::outside): nothing was decided or changed, not even by other asks of the request. (A store that decides a
///     request with refunds in several places may have made some; it then refuses.)
///     Under other starts of the same band, units that were charged in the present window still count, also if
///     the window in which they were charged has ended, and no others do if nothing was charged in it.
/// 19. *Permits are held until they are released.* Units of a [concurrent](crate::Quota::concurrent) quota that a
///     take charged are in use until they are refunded, however long that is, and those of an
///     [`Op::Acquire`](crate::Op::Acquire) until their end or an [`Op::Release`](crate::Op::Release), whichever
///     comes first. A lower limit takes none away. A store that cannot tell whether their holders are alive
///     [holds no permits](Self::holds_permits), and returns an error for such a quota.
///
/// # Example
///
/// A decision about one bucket, against any store:
///
/// ```
/// use tidegate_core::{Ask, Quota, Store, StoreError};
///
/// async fn admits(store: &impl Store, client: &[u8], quota: &Quota) -> Result<bool, StoreError> {
///     let reply = store.decide(&[Ask::take(client, quota, 1)]).await?;
///     Ok(reply.passed)
/// }
/// ```
pub trait Store: Send + Sync {
    /// Decides `asks` atomically, at one instant of the store's clock.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the result is unknown (law 12). A refusal is not an error.
    fn decide(&self, asks: &[Ask<'_>]) -> impl Future<Output = Result<Reply, StoreError>> + Send;

    /// Returns the state of one bucket under `quota`, or `None` if none is kept (the bucket is full).
    /// Changes nothing, even if the bucket is used with other numbers than those of `quota`.
    fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<Option<Inspection>, StoreError>> + Send;

    /// Resets one bucket. Returns true if there was a state to forget.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be reached or the result is unknown.
    fn reset(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Returns the longest time that a decision takes; then it is an error. `None` if decisions do not wait.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns true if the store may ever return an error. For a store that returns false, callers
    /// prepare no `on_failure` decision.
    fn can_fail(&self) -> bool {
        true
    }

    /// Returns how much of a request it decides in one atomic step.
    fn atomicity(&self) -> Atomicity {
        Atomicity::WholeRequest
    }

    /// Returns true if it keeps law 19: limits of requests in flight work in it.
    fn holds_permits(&self) -> bool {
        false
    }

    /// Refunds `asks` ([`Op::GiveBack`](crate::Op::GiveBack)) in the background, each at most once:
    /// charges that a [partial answer](StoreError::answers) reported for a request that does not
    /// pass. Only a store whose errors carry such answers needs it.
    fn refund(&self, asks: &[Ask<'_>]) {
        let _ = asks;
    }

    /// Returns true if its time is that of a [machine's clock](crate::Clock::is_machine) in this process.
    fn has_machine_clock(&self) -> bool {
        false
    }

    /// Returns the store's present instant, if it knows it without a call. Callers choose the
    /// [windows](Quota::with_starts) around it; without it they use their own clock, and the instant of the last
    /// reply that was [outside](crate::Reply::outside).
    fn present(&self) -> Option<Timestamp> {
        None
    }

    /// Decides `asks` without waiting, which saves the caller a future. A store that supports it
    /// does so for every call; `None` means that it does not, and that nothing was done.
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        let _ = asks;
        None
    }

    /// Returns the state that its instances share in addition to buckets; `None` if it has no such
    /// state.
    fn shared_state(&self) -> Option<&dyn SharedState> {
        None
    }
}

/// The part of a request that a [`Store`] decides atomically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atomicity {
    /// The whole request (law 1).
    #[default]
    WholeRequest,
    /// All buckets of one policy. A request over several policies reserves in each and refunds on
    /// refusal, so its charges must be [refundable](crate::Quota::with_refundable).
    PerPolicy,
    /// All buckets of one subject, else as [`PerPolicy`](Self::PerPolicy).
    PerSubject,
}

/// Content of one bucket in a store.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The store's present instant.
    pub at: Timestamp,
    /// The state.
    pub bucket: Bucket,
}
