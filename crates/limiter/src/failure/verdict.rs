//! What the limits that are not known amount to, together with those that are.

use crate::decision::DecidedBy;
use crate::question::Question;
use tidegate_core::{Mode, Outcome};
use tidegate_policy::OnFailure;

/// What to do about a question that the store did not answer, or only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A limit that is known refuses, so that nothing depends on the others.
    Refused,
    /// A limit that is not known wants an error.
    Error,
    /// One wants a refusal; which of the limits met.
    Deny {
        /// From 0, in the order met.
        nth: usize,
    },
    /// All others go on, and this is who then decided.
    GoOn {
        /// Who.
        by: DecidedBy,
    },
}

impl Verdict {
    /// Only enforced limits have a say.
    pub(super) fn of(question: &Question<'_>, known: &[Option<Outcome>]) -> Self {
        let (mut error, mut denied, mut by) = (false, None, DecidedBy::Store);
        let asks = question.asks.iter().zip(known);
        for (ask, outcome) in asks.filter(|(ask, _)| ask.mode == Mode::Enforce) {
            match outcome {
                Some(outcome) if outcome.is_allowed() => continue,
                Some(_) => return Self::Refused,
                None => {}
            }
            match question.on_failure(ask) {
                OnFailure::Error => error = true,
                OnFailure::Deny => denied = denied.or(Some(usize::from(ask.limit))),
                OnFailure::Local => by = DecidedBy::Local,
                OnFailure::Allow if by == DecidedBy::Store => by = DecidedBy::Failure,
                OnFailure::Allow => {}
            }
        }
        match denied {
            _ if error => Self::Error,
            Some(nth) => Self::Deny { nth },
            None => Self::GoOn { by },
        }
    }
}
