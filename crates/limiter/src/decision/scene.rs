//! What a decision is about, whoever makes it.

use super::Brought;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::{Mode, Quota};
use tidegate_policy::matching::{Meeting, Met};
use tidegate_policy::{Band, Limit, Policy};

/// What a decision is about: the limits that a request meets, and by which rules.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) rules: &'a Arc<Rules>,
    /// The number of the policy that is asked.
    pub(crate) number: usize,
    pub(crate) policy: &'a Policy,
    pub(crate) meeting: Meeting<'a>,
    /// What the request brings itself.
    pub(crate) brought: Option<&'a Arc<Brought>>,
    /// How many descriptors the request has.
    pub(crate) descriptors: u16,
}

impl<'a> Scene<'a> {
    /// A limit that is met.
    #[inline]
    pub(crate) fn limit(&self, met: &Met) -> Option<&'a Limit> {
        self.policy.limit(met.limit)
    }

    /// The limit met of this number, from 0 in the order met.
    pub(crate) fn nth(&self, nth: usize) -> Option<&'a Limit> {
        self.limit(self.meeting.met.get(nth)?)
    }

    /// What a limit that is met allows: its own bands, or the one that the request brings. None at all
    /// where it is unlimited.
    #[inline]
    pub(crate) fn bands(&self, met: &Met) -> &'a [Band] {
        match self.policy.limits.get(met.limit) {
            Some(limit) => &limit.bands,
            None => self.bands_brought(met),
        }
    }

    /// What a refusal by a limit that is met closes it by, if it does: asked after its bands.
    #[inline]
    pub(crate) fn block(&self, met: &Met) -> Option<&'a Quota> {
        let limit = self.policy.limits.get(met.limit)?;
        let block = limit.block.as_ref()?;
        (limit.mode == Mode::Enforce && !limit.is_unlimited()).then_some(&block.quota)
    }

    #[cold]
    fn bands_brought(&self, met: &Met) -> &'a [Band] {
        let brought = self.brought.zip(met.descriptor);
        let brought = brought.and_then(|(brought, nth)| brought.get(nth));
        brought.map_or(&[], |(band, _)| std::slice::from_ref(band))
    }
}
