//! A prepared request without its borrows, to be sent later.

use super::{Buffers, PreparedRequest};
use crate::decision::MatchedLimits;
use crate::purpose::AskPurpose;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use tidegate_policy::unit::KeptCost;
use tidegate_policy::{Cost, Descriptor, DescriptorHits, PermitTerm, Policy, Request};

/// A [`PreparedRequest`] without its borrows. Together with the buffers it was prepared in, it can be sent
/// later.
#[derive(Debug)]
pub(crate) struct DetachedRequest {
    number: usize,
    purpose: AskPurpose,
    watched: u64,
    may_wait: bool,
    is_in_line: bool,
    /// The cost of the request; `descriptors` holds their hits.
    cost: KeptCost,
    descriptors: SmallVec<[KeptHits; 1]>,
    /// Boxed: few requests have one.
    permit: Option<Box<PermitTerm>>,
}

/// The hits of a descriptor.
#[derive(Debug)]
enum KeptHits {
    Plain(DescriptorHits<'static>),
    Units(KeptCost),
}

/// The parts of a request that its decision is counted by: its policy and its costs. See
/// [`Decision::limit_hits`](crate::Decision::limit_hits).
pub struct CountedRequest<'a> {
    policy: &'a str,
    cost: Cost<'a>,
    descriptors: SmallVec<[Descriptor<'a>; 1]>,
    permit: Option<&'a PermitTerm>,
}

impl CountedRequest<'_> {
    /// Returns these parts as a request without any other.
    pub fn request(&self) -> Request<'_> {
        Request {
            policy: Some(self.policy),
            cost: self.cost,
            descriptors: &self.descriptors,
            permit: self.permit,
            ..Request::new()
        }
    }
}

impl fmt::Debug for CountedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request().fmt(f)
    }
}

impl DetachedRequest {
    /// Rebuilds the prepared request with its asks. `rules` and `buffers` must be those it was prepared with.
    pub(crate) fn prepared<'a>(
        &self,
        rules: &'a Arc<Rules>,
        buffers: &'a Buffers,
    ) -> PreparedRequest<'a> {
        let policy = self.policy(rules);
        let planned = buffers.planned.as_ref();
        let mut prepared = PreparedRequest {
            matched: MatchedLimits {
                rules,
                number: self.number,
                policy,
                purpose: self.purpose,
                meeting: buffers.scratch.meeting(),
                brought: buffers.brought.as_ref(),
                planned: planned.filter(|_| policy.is_planned()),
                descriptors: u16::try_from(self.descriptors.len()).unwrap_or(u16::MAX),
                watched: self.watched,
            },
            asks: SmallVec::new(),
            may_wait: self.may_wait,
            is_in_line: self.is_in_line,
        };
        prepared.ask(&self.counted(rules).request(), self.purpose);
        prepared
    }

    /// Returns the parts of the request that its decision is counted by.
    pub(crate) fn counted<'a>(&'a self, rules: &'a Rules) -> CountedRequest<'a> {
        let descriptor = |hits: &'a KeptHits| Descriptor {
            entries: &[],
            hits: match hits {
                KeptHits::Plain(hits) => *hits,
                KeptHits::Units(cost) => DescriptorHits::Units(cost.cost()),
            },
            limit: None,
        };
        CountedRequest {
            policy: &self.policy(rules).name,
            cost: self.cost.cost(),
            descriptors: self.descriptors.iter().map(descriptor).collect(),
            permit: self.permit.as_deref(),
        }
    }

    fn policy<'a>(&self, rules: &'a Rules) -> &'a Policy {
        let policy = rules.policies.get(self.number);
        policy.expect("it was prepared by these rules")
    }
}

impl PreparedRequest<'_> {
    /// Returns a copy without borrows that can be sent later. `request` must be the one this was prepared
    /// from.
    pub(crate) fn keep(&self, request: &Request<'_>) -> DetachedRequest {
        let kept = |descriptor: &Descriptor<'_>| match descriptor.hits {
            DescriptorHits::AsRequest => KeptHits::Plain(DescriptorHits::AsRequest),
            DescriptorHits::Take(hits) => KeptHits::Plain(DescriptorHits::Take(hits)),
            DescriptorHits::GiveBack(hits) => KeptHits::Plain(DescriptorHits::GiveBack(hits)),
            DescriptorHits::Units(cost) => KeptHits::Units(KeptCost::from(cost)),
        };
        DetachedRequest {
            number: self.matched.number,
            purpose: self.matched.purpose,
            watched: self.matched.watched,
            may_wait: self.may_wait,
            is_in_line: self.is_in_line,
            cost: KeptCost::from(request.cost),
            descriptors: request.descriptors.iter().map(kept).collect(),
            permit: request.permit.map(|term| Box::new(*term)),
        }
    }
}
