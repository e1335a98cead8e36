//! The limits that a request matched, for every component that decides it.

use crate::plans::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::request_limits::RequestLimits;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::{Op, Quota};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::policy::{MetLimit, MetLimits};
use tidegate_policy::{Band, Limit, Policy};

/// The limits that a request matched, and the rules they belong to.
#[derive(Clone, Copy)]
pub(crate) struct MatchedLimits<'a> {
    pub(crate) rules: &'a Arc<Rules>,
    /// The index of the policy.
    pub(crate) number: usize,
    pub(crate) policy: &'a Policy,
    /// The purpose the request is decided for.
    pub(crate) purpose: AskPurpose,
    pub(crate) meeting: MetLimits<'a>,
    /// The limits that the request carries itself.
    pub(crate) brought: Option<&'a Arc<RequestLimits>>,
    /// The current plans; absent if no limit of the policy has one.
    pub(crate) planned: Option<&'a Arc<PreparedPlans>>,
    /// The number of descriptors of the request.
    pub(crate) descriptors: u16,
    /// Guards in shadow mode that match the request, one bit each.
    pub(crate) watched: u64,
}

impl<'a> MatchedLimits<'a> {
    /// Returns a matched limit.
    #[inline]
    pub(crate) fn limit(&self, met: &MetLimit) -> Option<&'a Limit> {
        self.policy.limit(met.limit)
    }

    /// Returns the amount that the request consumes by `op`, or would in a test.
    #[inline]
    pub(crate) fn amount(&self, op: Op) -> u64 {
        if self.purpose == AskPurpose::Test {
            op.needs()
        } else {
            op.cost()
        }
    }

    /// Returns true if it is the hidden limit, whose bands come with the request.
    pub(crate) fn is_hidden(&self, met: &MetLimit) -> bool {
        met.limit == self.policy.limits.len()
    }

    /// Returns the matched limit of this index, from 0 in the order matched.
    pub(crate) fn nth(&self, nth: usize) -> Option<&'a Limit> {
        self.limit(self.meeting.met.get(nth)?)
    }

    /// Returns the bands of a matched limit: its own, or the one that the request carries. Empty if it is
    /// unlimited.
    #[inline]
    pub(crate) fn bands(&self, met: &MetLimit) -> &'a [Band] {
        match self.policy.limits.get(met.limit) {
            Some(limit) => match met.planned {
                PlanAnswer::NotAsked | PlanAnswer::UnknownBand => &limit.bands,
                PlanAnswer::Rate { number, .. } => self.bands_planned(met, number),
                PlanAnswer::Unlimited { .. }
                | PlanAnswer::UnknownUnlimited
                | PlanAnswer::UnknownSkipped
                | PlanAnswer::Refused { .. } => &[],
            },
            None => self.request_bands(met),
        }
    }

    /// Returns the band of a rate from a plan.
    fn bands_planned(&self, met: &MetLimit, rate: u32) -> &'a [Band] {
        let planned = self.planned;
        let band = planned.and_then(|planned| planned.band(self.number, met.limit, rate));
        band.map_or(&[], std::slice::from_ref)
    }

    /// Returns the quota of a matched limit's block, if it has one. Its ask comes after those of the bands.
    #[inline]
    pub(crate) fn block(&self, met: &MetLimit) -> Option<&'a Quota> {
        let limit = self.policy.limits.get(met.limit)?;
        let own = limit.block.as_ref()?;
        match met.planned {
            PlanAnswer::NotAsked | PlanAnswer::UnknownBand => {
                (!limit.bands.is_empty()).then_some(&own.quota)
            }
            PlanAnswer::Rate { number, .. } => self.planned?.block(self.number, met.limit, number),
            // The limit has no band for a client that its plan does not limit, so there is no ask for it at
            // all.
            PlanAnswer::Unlimited { .. }
            | PlanAnswer::UnknownUnlimited
            | PlanAnswer::UnknownSkipped
            | PlanAnswer::Refused { .. } => None,
        }
    }

    #[cold]
    fn request_bands(&self, met: &MetLimit) -> &'a [Band] {
        let brought = self.brought.zip(met.descriptor);
        let brought = brought.and_then(|(brought, nth)| brought.get(nth));
        brought.map_or(&[], |(band, _)| std::slice::from_ref(band))
    }
}

/// Returns an index in the form that a decision keeps. Configurations have bounds far below it.
pub(super) fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
