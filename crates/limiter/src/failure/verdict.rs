//! What the limits that are not known amount to, together with those that are.

use super::Denied;
use crate::decision::DecidedBy;
use crate::question::Question;
use tidegate_core::{Ask, Mode, Op, Outcome};
use tidegate_policy::OnFailure;

/// What to do about asks that the store did not answer, or only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A limit that is known refuses, so that nothing depends on the others.
    Refused,
    /// A limit that is not known wants an error.
    Error,
    /// One wants a refusal; see [`denied`].
    Deny,
    /// All others go on, and this is who then decided.
    GoOn {
        /// Who.
        by: DecidedBy,
    },
}

impl Verdict {
    /// Only enforced limits have a say.
    pub(super) fn of(question: &Question<'_>, asks: &[Ask<'_>], known: &[Option<Outcome>]) -> Self {
        let (mut error, mut deny, mut by) = (false, false, DecidedBy::Store);
        let asks = asks.iter().zip(known);
        for (ask, outcome) in asks.filter(|(ask, _)| ask.mode == Mode::Enforce) {
            match outcome {
                Some(outcome) if outcome.is_allowed() => continue,
                Some(_) => return Self::Refused,
                None => {}
            }
            match question.on_failure(ask) {
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

/// The limits that refuse because they are not known: the first of them, and every other that was met
/// by a descriptor, which is told of it.
pub(super) fn denied(
    question: &Question<'_>,
    asks: &[Ask<'_>],
    known: &[Option<Outcome>],
) -> Denied {
    let mut denied = Denied::new();
    for (ask, outcome) in asks.iter().zip(known) {
        let nth = usize::from(ask.limit);
        if ask.mode == Mode::Enforce
            && outcome.is_none()
            && is_deniable(ask)
            && question.on_failure(ask) == OnFailure::Deny
            && denied.last() != Some(&nth)
            && (denied.is_empty() || question.is_described(nth))
        {
            denied.push(nth);
        }
    }
    denied
}

/// Nobody is refused what they give back.
fn is_deniable(ask: &Ask<'_>) -> bool {
    !matches!(ask.op, Op::GiveBack(_))
}
