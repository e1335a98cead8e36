//! The answers to the asks of a request: those of the store, or fallback answers if the store does not answer.

use crate::share::Share;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{Ask, Outcome, Receipt, Reply, Timestamp};

/// The time after which to retry if the wait is unknown, because the store did not answer and `on_failure:
/// deny` refused: by then the store may be back. Also reported if a cost is too large for the share of this
/// instance, though not for the limit.
pub const RETRY_AFTER_FAILURE: Duration = Duration::from_micros(RETRY_AFTER_FAILURE_US);

pub(crate) const RETRY_AFTER_FAILURE_US: u64 = 1_000_000;

/// The component that decided. Anything but [`Store`](Self::Store) means that the store did not answer, and
/// that the limit's `on_failure` applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The store; also if no limit applied.
    Store,
    /// Local buckets in memory, because the store did not answer.
    Local,
    /// The failure policy (`on_failure`), because the store did not answer.
    Failure,
}

impl DecidedBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Store, Self::Local, Self::Failure];

    /// Returns the name used in logs, responses and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Local => "local",
            Self::Failure => "failure",
        }
    }
}

/// The answer to each ask of a request, and the combined result.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The time of the decision, by the clock that decided.
    pub(crate) at: Timestamp,
    pub(crate) passed: bool,
    pub(crate) decided_by: DecidedBy,
    /// One entry per ask, in order; `None` if neither the store nor local buckets decided it.
    pub(crate) list: SmallVec<[Option<Answer>; 4]>,
    /// Limits that refuse because the state of their buckets is unknown, by their indexes among the matched
    /// limits. Limits in shadow mode that would refuse come last. If these limits decide, the first is
    /// reported.
    pub(crate) denied: SmallVec<[usize; 1]>,
    /// Among matched limits of which one that allows is enough: the limit that is reported for those that
    /// refuse. `None` if one allows.
    pub(crate) spokesman: Option<usize>,
    /// The share of the quotas at which local buckets decided, if they did.
    pub(crate) share: Option<Share>,
}

/// The answer to one ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// The receipt of the charge, if one was made.
    pub(crate) receipt: Option<Receipt>,
    /// The location of the bucket.
    pub(crate) home: ChargeHome,
    /// False if the caller cannot refund the charge.
    pub(crate) is_refundable: bool,
}

/// The location of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeHome {
    /// In the store.
    Store,
    /// In the memory of this process, which decided in place of the store.
    Here,
}

impl Answer {
    /// Returns an answer that charged nothing.
    pub(crate) fn free(outcome: Outcome) -> Self {
        Self {
            outcome,
            receipt: None,
            home: ChargeHome::Store,
            is_refundable: true,
        }
    }
}

impl Answers {
    /// Returns the store's own answers.
    pub(crate) fn of(asks: &[Ask<'_>], reply: &Reply) -> Self {
        Self {
            list: each_of(asks, reply, ChargeHome::Store).map(Some).collect(),
            ..Self::new(reply.at, reply.passed, DecidedBy::Store)
        }
    }

    /// Returns a refusal with answers of the store that charged nothing.
    pub(crate) fn refused(
        at: Timestamp,
        outcomes: impl IntoIterator<Item = Option<Outcome>>,
    ) -> Self {
        let outcomes = outcomes.into_iter();
        Self {
            list: outcomes.map(|it| it.map(Answer::free)).collect(),
            ..Self::new(at, false, DecidedBy::Store)
        }
    }

    pub(crate) fn new(at: Timestamp, passed: bool, decided_by: DecidedBy) -> Self {
        Self {
            at,
            passed,
            decided_by,
            list: SmallVec::new(),
            denied: SmallVec::new(),
            spokesman: None,
            share: None,
        }
    }

    /// Returns the answer to the `nth` ask, if there is one.
    pub(crate) fn answer(&self, nth: usize) -> Option<Answer> {
        *self.list.get(nth)?
    }

    /// Records that the store refunds its charges.
    pub(crate) fn refunded(mut self) -> Self {
        let in_store = |it: &&mut Answer| it.home == ChargeHome::Store;
        let answers = self.list.iter_mut().flatten().filter(in_store);
        answers.for_each(|it| it.receipt = None);
        self
    }

    /// Returns true if the store did not decide every ask.
    pub(crate) fn is_fallback(&self) -> bool {
        self.share.is_some()
            || self.decided_by != DecidedBy::Store
            || self.list.iter().any(Option::is_none)
    }

    /// Returns the outcome of each ask.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = Option<Outcome>> {
        let outcome = |answer: &Option<Answer>| Some(answer.as_ref()?.outcome);
        self.list.iter().map(outcome)
    }
}

/// Returns the answers in a reply.
pub(crate) fn each_of<'a>(
    asks: &'a [Ask<'_>],
    reply: &'a Reply,
    home: ChargeHome,
) -> impl Iterator<Item = Answer> + 'a {
    let outcomes = reply.outcomes.iter();
    let numbered = asks.iter().zip(outcomes).enumerate();
    numbered.map(move |(nth, (ask, outcome))| Answer {
        outcome: *outcome,
        receipt: reply.receipt(nth, ask.op),
        home,
        is_refundable: true,
    })
}
