//! Where buckets live: one trait, and the laws that every implementation obeys.

use crate::{Ask, Bucket, Outcome, Quota, Reply, Timestamp};
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
///    but for forced charges and debits (law 9) and for blocks (law 16).
/// 8. *Shadows are silent.* A shadow bucket never refuses a request, and is charged only if the
///    request passes and its whole limit would have allowed it.
/// 9. *Force charges.* An enforced [`Op::Force`](crate::Op::Force) or [`Op::Debit`](crate::Op::Debit)
///    is charged, even where it refuses itself, unless an enforced take or test refuses; never beyond
///    the overdraft. A debit refuses where its cost does not fit, a forced charge where nothing is
///    left.
/// 10. *Giving back is safe.* [`Op::GiveBack`](crate::Op::GiveBack) is carried out before anything
///     else of its request, and in any case; it never makes room that the quota would not have
///     had, had the units never been taken.
/// 11. *In order.* The reply has one outcome for each ask, in the order of the asks; a bucket asked
///     for twice is charged twice, the enforced asks before the shadows.
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

    /// Whether it may ever be unable to tell. One that says it cannot, never returns an error, and
    /// nobody prepares for what to do without it.
    fn can_fail(&self) -> bool {
        true
    }

    /// Whether a request may take it several steps, so that it gives back by itself what one step
    /// has charged and another refused. Charges then have to be such that they can be given back.
    fn takes_steps(&self) -> bool {
        false
    }

    /// Whether that can happen even among buckets of one policy, which are those whose names are the
    /// same up to the first `/`. Where it cannot, only requests that meet buckets of several policies
    /// take several steps.
    fn takes_steps_within_a_policy(&self) -> bool {
        self.takes_steps()
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

    /// A secret that all who share this store have in common, and nobody else: the one that is kept
    /// there, else `proposal`, which is random and kept from now on. Kept for at least a day after
    /// anybody has asked. `None` where nobody shares it.
    fn shared_secret(
        &self,
        proposal: [u8; 32],
    ) -> impl Future<Output = Result<Option<[u8; 32]>, StoreError>> + Send {
        let _ = proposal;
        std::future::ready(Ok(None))
    }
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
///
/// A store that decides a request in several groups may know what some of them said; see
/// [`answers`](StoreError::answers).
#[derive(Debug)]
pub struct StoreError {
    message: String,
    transient: bool,
    kind: StoreErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
    answers: Box<[Option<Answered>]>,
    hold: Option<Hold>,
}

/// Charges that stand although their request was not answered as a whole. Dropped, they are given
/// back, once and in the background, as far as that is safe; [kept](StoreError::keep), they stay.
pub struct Hold(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Hold {
    /// Charges that `give_back` gives back. It must not block.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").finish_non_exhaustive()
    }
}

/// What one ask was answered, although the request as a whole was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The store's instant at which it was decided.
    pub at: Timestamp,
    /// What the bucket answered.
    pub outcome: Outcome,
    /// Whether the bucket was charged, and still is.
    pub charged: bool,
}

/// What kind of failure it was: few enough to count each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer in time.
    Timeout,
    /// No connection, or it was lost.
    Unreachable,
    /// Not asked: it has failed so often of late that it is left alone, or too much is under way.
    Overloaded,
    /// It will not let us: a wrong password, a missing permission.
    Denied,
    /// It cannot at present: starting up, failing over, read-only, out of memory.
    Unable,
    /// What it keeps under the bucket's name is not ours, or broken.
    Corrupt,
    /// Anything else.
    #[default]
    Other,
}

impl StoreErrorKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Unreachable,
        Self::Overloaded,
        Self::Denied,
        Self::Unable,
        Self::Corrupt,
        Self::Other,
    ];

    /// The word for it in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Overloaded => "overloaded",
            Self::Denied => "denied",
            Self::Unable => "unable",
            Self::Corrupt => "corrupt",
            Self::Other => "other",
        }
    }
}

impl StoreError {
    /// A failure that may pass by itself, such as a timeout.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            transient: true,
            kind: StoreErrorKind::Other,
            source: None,
            answers: Box::default(),
            hold: None,
        }
    }

    /// A failure that somebody has to mend, such as a refused password.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            transient: false,
            ..Self::transient(message)
        }
    }

    /// Says of what kind it is.
    #[must_use]
    pub fn with_kind(self, kind: StoreErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds what was answered all the same: one for each ask, in order, `None` where it is not
    /// known; and what it charged, which is given back when this error is dropped.
    #[must_use]
    pub fn with_answers(self, answers: Box<[Option<Answered>]>, hold: Option<Hold>) -> Self {
        Self {
            answers,
            hold,
            ..self
        }
    }

    /// Lets stand what [`answers`](Self::answers) says was charged: the request passes all the same.
    pub fn keep(&mut self) {
        if let Some(hold) = self.hold.take() {
            hold.keep();
        }
    }

    /// Whether the same call may succeed later without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// Of what kind it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// What was answered all the same, one for each ask; empty where nothing was.
    pub fn answers(&self) -> &[Option<Answered>] {
        &self.answers
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

#[cfg(test)]
mod tests {
    use super::{Answered, Hold, StoreError, StoreErrorKind};
    use crate::{Outcome, Timestamp, Wait};
    use std::error::Error;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn an_error_carries_what_was_answered_all_the_same() {
        let answered = Answered {
            at: Timestamp::from_micros(7),
            outcome: Outcome {
                remaining: 3,
                wait: Wait::NONE,
                reset_us: 1,
                mark: 0,
            },
            charged: true,
        };
        let error = StoreError::permanent("a group did not answer")
            .with_kind(StoreErrorKind::Timeout)
            .with_answers(Box::new([Some(answered), None]), None)
            .caused_by("the wire is cut");
        assert_eq!(error.answers(), [Some(answered), None]);
        assert_eq!(error.kind().as_str(), "timeout");
        assert!(!error.is_transient() && error.source().is_some());
        assert_eq!(error.to_string(), "a group did not answer");
        assert_eq!(StoreError::transient("gone").answers(), []);
    }

    #[test]
    fn what_is_held_is_given_back_once_unless_it_is_kept() {
        let given_back = Arc::new(AtomicUsize::new(0));
        let held = || {
            let given_back = Arc::clone(&given_back);
            let hold = Hold::new(move || {
                given_back.fetch_add(1, Relaxed);
            });
            StoreError::transient("gone").with_answers(Box::default(), Some(hold))
        };
        let mut kept = held();
        kept.keep();
        kept.keep();
        drop(kept);
        assert_eq!(given_back.load(Relaxed), 0);
        let dropped = held().with_kind(StoreErrorKind::Timeout).caused_by("x");
        assert_eq!(given_back.load(Relaxed), 0, "not while it is there");
        drop(dropped);
        assert_eq!(given_back.load(Relaxed), 1);
        // Other answers take the place of these.
        let replaced = held().with_answers(Box::default(), None);
        assert_eq!(given_back.load(Relaxed), 2);
        drop(replaced);
        assert_eq!(given_back.load(Relaxed), 2);
    }

    #[test]
    fn kinds_have_words_of_their_own() {
        let mut words = StoreErrorKind::ALL.map(StoreErrorKind::as_str).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), StoreErrorKind::ALL.len());
    }
}
