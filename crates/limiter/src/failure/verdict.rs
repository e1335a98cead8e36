//! The combined verdict of limits with known and unknown state.

use super::{DeniedLimits, FallbackTerms};
use crate::decision::{Answer, DecidedBy};
use tidegate_core::{Ask, LimitMode, Op};
use tidegate_policy::OnFailure;

/// The verdict on asks that the store did not answer, or only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureVerdict {
    /// A limit with a known state refuses, so the others do not matter.
    Refused,
    /// A limit with an unknown state has `on_failure: error`.
    Error,
    /// One has `on_failure: deny`; see [`denied`].
    Deny,
    /// All others continue.
    GoOn {
        /// The component that decides.
        by: DecidedBy,
    },
}

impl FailureVerdict {
    /// Returns the verdict. Only enforced limits count. If there is none, the limits in shadow mode determine
    /// the component that decides.
    pub(super) fn of(terms: FallbackTerms<'_>, asks: &[Ask<'_>], known: &[Option<Answer>]) -> Self {
        let (mut error, mut deny, mut by) = (false, false, DecidedBy::Store);
        if asks.iter().all(|ask| ask.mode == LimitMode::Shadow) {
            let by = failure_decider(terms, asks, known);
            return Self::GoOn { by };
        }
        let asks = asks.iter().zip(known);
        for (ask, answer) in asks.filter(|(ask, _)| ask.mode == LimitMode::Enforce) {
            match answer {
                Some(answer) if answer.outcome.is_allowed() => continue,
                Some(_) => return Self::Refused,
                None => {}
            }
            match terms.on_failure(ask) {
                OnFailure::Error => error = true,
                OnFailure::Deny if is_deniable(ask) => deny = true,
                OnFailure::Local => by = DecidedBy::Local,
                OnFailure::Deny | OnFailure::Allow if by == DecidedBy::Store => {
                    by = DecidedBy::Failure;
                }
                OnFailure::Deny | OnFailure::Allow => {}
            }
        }
        match deny {
            _ if error => Self::Error,
            true => Self::Deny,
            false => Self::GoOn { by },
        }
    }
}

/// Returns the component that decided asks that are all in shadow mode.
fn failure_decider(
    terms: FallbackTerms<'_>,
    asks: &[Ask<'_>],
    known: &[Option<Answer>],
) -> DecidedBy {
    let unknown = asks.iter().zip(known).filter(|(_, it)| it.is_none());
    let by = unknown.map(|(ask, _)| match terms.on_failure(ask) {
        OnFailure::Local => DecidedBy::Local,
        OnFailure::Allow | OnFailure::Deny | OnFailure::Error => DecidedBy::Failure,
    });
    by.reduce(|one, other| match one {
        DecidedBy::Local => one,
        DecidedBy::Store | DecidedBy::Failure => other,
    })
    .unwrap_or(DecidedBy::Store)
}

/// Returns the limits in shadow mode whose state is unknown, and that would refuse or fail for that reason.
pub(super) fn would_deny<'a>(
    terms: FallbackTerms<'a>,
    asks: &'a [Ask<'_>],
    known: &'a [Option<Answer>],
) -> impl Iterator<Item = usize> + 'a {
    let unknown = asks.iter().zip(known).filter(move |(ask, outcome)| {
        let denies = matches!(terms.on_failure(ask), OnFailure::Deny | OnFailure::Error);
        ask.mode == LimitMode::Shadow && outcome.is_none() && is_deniable(ask) && denies
    });
    let mut last = None;
    unknown.filter_map(move |(ask, _)| {
        let is_new = last.replace(ask.limit) != Some(ask.limit);
        is_new.then_some(usize::from(ask.limit))
    })
}

/// Returns the limits that refuse because their state is unknown: the first of them, and every other that was
/// matched by a descriptor, which reports it.
pub(super) fn denied(
    terms: FallbackTerms<'_>,
    asks: &[Ask<'_>],
    known: &[Option<Answer>],
) -> DeniedLimits {
    let mut denied = DeniedLimits::new();
    for (ask, outcome) in asks.iter().zip(known) {
        let nth = usize::from(ask.limit);
        if ask.mode == LimitMode::Enforce
            && outcome.is_none()
            && is_deniable(ask)
            && terms.on_failure(ask) == OnFailure::Deny
            && denied.last() != Some(&nth)
            && (denied.is_empty() || terms.is_described(nth))
        {
            denied.push(nth);
        }
    }
    denied
}

/// Returns false for a refund, which is never refused.
fn is_deniable(ask: &Ask<'_>) -> bool {
    !matches!(ask.op, Op::GiveBack(_))
}
