//! Where buckets live: one trait, and the laws that every implementation obeys.

use crate::{Ask, Bucket, Quota, Reply, SharedState, StoreError, Timestamp};
use std::future::Future;
use std::time::Duration;

/// Keeps buckets and decides requests against them.
///
/// Requests are data and never closures, so that a store across the network needs one round trip.
/// A store that answers at once returns a ready future.
///
/// # Laws
///
/// `tidegate-store-laws` turns these into tests (`store_laws!`) that every store must pass.
///
/// 1. *All or nothing.* A request is decided against all its buckets in one atomic step. If an
///    enforced bucket refuses, no bucket is charged (but see laws 9 and 16).
/// 2. *Never over.* No interleaving of any number of callers admits more than the quotas allow.
/// 3. *One clock.* A request is decided at one instant, [`Reply::at`], read where the state is
///    kept; instants never run backwards.
/// 4. *Nothing lost.* Fractions are kept: the same requests at the same instants get the answers
///    of exact arithmetic.
/// 5. *As long as it matters.* A bucket is forgotten only once it is as good as new, and none is
///    kept for ever.
/// 6. *Honest refusals.* [`Outcome::wait`](crate::Outcome::wait) is the earliest moment at which
///    the same cost would pass if nobody else came; one tick earlier it would not.
/// 7. *Free refusals.* Being refused costs nothing: the state after a refusal is the state before,
///    but for forced charges and debits (law 9), for blocks (law 16), and for a state that is further
///    ahead than its quota allows. Such a state is [settled](crate::BucketState::settle), and written so even
///    if the request is refused: otherwise it would refuse again from each later instant on.
/// 8. *Shadows are silent.* A shadow bucket never refuses a request, and is charged only if the
///    request passes and its whole limit would have allowed it.
/// 9. *Force charges.* An enforced [`Op::Force`](crate::Op::Force) or [`Op::Debit`](crate::Op::Debit)
///    is charged, even where it refuses itself, unless an enforced take or test refuses; never beyond
///    the overdraft. A debit refuses where its cost does not fit, a forced charge where nothing is
///    left.
/// 10. *Giving back is safe.* [`Op::GiveBack`](crate::Op::GiveBack) is carried out before anything
///     else of its request, and in any case; it never makes room that the quota would not have
///     had, had the units never been taken.
/// 11. *In order.* The reply has one outcome for each ask, in the order of the asks, and lists those
///     that changed their buckets ([`Reply::applied`]); a bucket asked for twice is charged twice, the
///     enforced asks before the shadows.
/// 12. *Unknown is an error.* A store that cannot tell returns [`StoreError`], never a guess.
/// 13. *Once is once.* An [`Op::Return`](crate::Op::Return) beside an enforced take that refuses
///     changes nothing: with a take that only one can win, it happens once however often it is sent.
/// 14. *In its turn.* It is carried out after everything else of its request, if no enforced take or
///     test refuses and its time is not past. What is returned must lie with the takes beside it: a
///     store that cannot decide both in one step says so.
/// 15. *Testing is free.* An [`Op::Test`](crate::Op::Test) answers what a take of that cost would,
///     refusals included, and takes nothing.
/// 16. *The first refusal blocks.* An enforced [`Op::Block`](crate::Op::Block) refuses while a unit
///     is charged to its bucket, and one is charged exactly where an enforced take, forced charge
///     or debit of the same limit refuses although waiting would help, and the bucket has one. It then
///     answers as it is left. No pass, look or test, and nothing that is given back, blocks. That of a
///     shadow limit refuses nothing but its own limit, and is charged in the same way where the request
///     passes.
///     What is to be blocked must lie with its block, or the store must see to both by itself.
/// 17. *Numbers may change.* A bucket asked for under other numbers of the same band, by another version
///     of a policy or by two in turns, is read as [`OnChange`](crate::OnChange) says: whatever the way
///     in which the store keeps it, what was used is not forgotten, and nobody owes more than an empty
///     bucket.
pub trait Store: Send + Sync {
    /// Decides `asks` in one step.
    fn decide(&self, asks: &[Ask<'_>]) -> impl Future<Output = Result<Reply, StoreError>> + Send;

    /// Returns the state of one bucket under `quota`, or `None` if none is kept (the bucket is full).
    /// Changes nothing, even if the bucket is used with other numbers than those of `quota`.
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

    /// Returns the longest time that a decision takes; then it is an error. `None` if decisions do not wait.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether it may ever be unable to tell. One that says it cannot, never returns an error, and
    /// nobody prepares for what to do without it.
    fn can_fail(&self) -> bool {
        true
    }

    /// Returns how much of a request it decides in one atomic step.
    fn atomicity(&self) -> Atomicity {
        Atomicity::WholeRequest
    }

    /// Gives back in the background, each at most once, what `asks` ([`Op::GiveBack`](crate::Op::GiveBack))
    /// name: charges that a [partial answer](StoreError::answers) reported for a request that does not
    /// pass. Only a store whose errors carry such answers needs it.
    fn refund(&self, asks: &[Ask<'_>]) {
        let _ = asks;
    }

    /// Returns true if its time is that of a [machine's clock](crate::Clock::is_machine) in this process.
    fn has_machine_clock(&self) -> bool {
        false
    }

    /// Decides `asks` without waiting: for callers who are spared a future that way. A store that
    /// does it once does it always; `None`, from any other, means that nothing was done.
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        let _ = asks;
        None
    }

    /// The state that its instances share in addition to buckets; `None` if it has no such state.
    fn shared_state(&self) -> Option<&dyn SharedState> {
        None
    }
}

/// How much of a request a [`Store`] decides in one atomic step.
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

/// What a store keeps of one bucket.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The store's present instant.
    pub at: Timestamp,
    /// The state.
    pub bucket: Bucket,
}
