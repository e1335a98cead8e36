//! Evaluating guards: before any limit, or alone.

use crate::lists::CachedLists;
use crate::rules::Rules;
use tidegate_policy::guard::{GuardScratch, GuardVerdict};
use tidegate_policy::{DigestedText, Request};

/// Buffers for evaluating guards, kept from one request to the next.
#[derive(Debug, Default)]
pub(crate) struct GuardBuffers {
    scratch: GuardScratch,
    pub(crate) lists: CachedLists,
}

impl GuardBuffers {
    /// Evaluates the guards of `rules` for a request, with the current lists.
    // Out of line: most configurations have no guards, and should pay only a branch.
    #[inline(never)]
    pub(crate) fn evaluate(
        &mut self,
        rules: &Rules,
        request: &Request<'_>,
        marked: Option<DigestedText<'_>>,
    ) -> GuardVerdict {
        let Self { scratch, lists } = self;
        rules.lists.follow(lists);
        let list = |number| lists.list(number);
        rules.guards.ask(request, list, scratch, marked)
    }
}
