//! The terms for asks that the store does not answer.

use crate::decision::MatchedLimits;
use crate::rules::Rules;
use tidegate_core::Ask;
use tidegate_policy::OnFailure;

/// The terms for asks that the store does not answer: the rules, and the limits that the asks belong to.
#[derive(Clone, Copy)]
pub(crate) struct FallbackTerms<'a> {
    pub(crate) rules: &'a Rules,
    /// Absent for asks of no limit.
    pub(crate) matched: Option<&'a MatchedLimits<'a>>,
}

impl FallbackTerms<'_> {
    /// Returns the `on_failure` of the limit that `ask` belongs to.
    pub(crate) fn on_failure(&self, ask: &Ask<'_>) -> OnFailure {
        let limit = self
            .matched
            .and_then(|matched| matched.nth(usize::from(ask.limit)));
        self.rules.on_failure(limit)
    }

    /// Returns true if the matched limit `nth` was matched by a descriptor, which has its own answer.
    pub(crate) fn is_described(&self, nth: usize) -> bool {
        let met = self
            .matched
            .and_then(|matched| matched.meeting.met.get(nth));
        met.is_some_and(|met| met.descriptor.is_some())
    }
}
