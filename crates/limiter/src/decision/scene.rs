//! What a decision is about, whoever makes it.

use super::RequestLimits;
use crate::planning::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::Quota;
use tidegate_policy::matching::{Met, MetLimits};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::{Band, Limit, Policy};

/// What a decision is about: the limits that a request meets, and by which rules.
#[derive(Clone, Copy)]
pub(crate) struct MatchedLimits<'a> {
    pub(crate) rules: &'a Arc<Rules>,
    /// The number of the policy that is asked.
    pub(crate) number: usize,
    pub(crate) policy: &'a Policy,
    /// What the request is decided for.
    pub(crate) purpose: AskPurpose,
    pub(crate) meeting: MetLimits<'a>,
    /// What the request brings itself.
    pub(crate) brought: Option<&'a Arc<RequestLimits>>,
    /// What plans say; absent where no limit of the policy has one.
    pub(crate) planned: Option<&'a Arc<PreparedPlans>>,
    /// How many descriptors the request has.
    pub(crate) descriptors: u16,
    /// Guards that only watch and know the request, a bit each.
    pub(crate) watched: u64,
}

impl<'a> MatchedLimits<'a> {
    /// A limit that is met.
    #[inline]
    pub(crate) fn limit(&self, met: &Met) -> Option<&'a Limit> {
        self.policy.limit(met.limit)
    }

    /// Whether it is the hidden limit, whose bands come with the request.
    pub(crate) fn is_hidden(&self, met: &Met) -> bool {
        met.limit == self.policy.limits.len()
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
            Some(limit) => match met.planned {
                PlanAnswer::NotAsked | PlanAnswer::UnknownBand => &limit.bands,
                PlanAnswer::Rate { number, .. } => self.bands_planned(met, number),
                PlanAnswer::Unlimited { .. }
                | PlanAnswer::UnknownUnlimited
                | PlanAnswer::UnknownSkipped
                | PlanAnswer::Refused { .. } => &[],
            },
            None => self.bands_brought(met),
        }
    }

    /// The band of a rate that a plan tells.
    fn bands_planned(&self, met: &Met, rate: u32) -> &'a [Band] {
        let planned = self.planned;
        let band = planned.and_then(|planned| planned.band(self.number, met.limit, rate));
        band.map_or(&[], std::slice::from_ref)
    }

    /// What a refusal by a limit that is met closes it by, if it does: asked after its bands.
    #[inline]
    pub(crate) fn block(&self, met: &Met) -> Option<&'a Quota> {
        let limit = self.policy.limits.get(met.limit)?;
        let own = limit.block.as_ref()?;
        match met.planned {
            PlanAnswer::NotAsked | PlanAnswer::UnknownBand => {
                (!limit.bands.is_empty()).then_some(&own.quota)
            }
            PlanAnswer::Rate { number, .. } => self.planned?.block(self.number, met.limit, number),
            // Whom a plan does not limit, the limit has no band for: then nothing is asked of it at all.
            PlanAnswer::Unlimited { .. }
            | PlanAnswer::UnknownUnlimited
            | PlanAnswer::UnknownSkipped
            | PlanAnswer::Refused { .. } => None,
        }
    }

    #[cold]
    fn bands_brought(&self, met: &Met) -> &'a [Band] {
        let brought = self.brought.zip(met.descriptor);
        let brought = brought.and_then(|(brought, nth)| brought.get(nth));
        brought.map_or(&[], |(band, _)| std::slice::from_ref(band))
    }
}
