//! The units that a request names, compared with those that its policy counts.

use crate::error::CheckError;
use std::iter;
use tidegate_policy::{DescriptorHits, Policy, Request};

/// Checks that the policy counts the units that the request names.
// Out of line: most requests name none.
#[inline(never)]
pub(crate) fn check_costs(policy: &Policy, request: &Request<'_>) -> Result<(), CheckError> {
    let hits = request.descriptors.iter().filter_map(|it| match it.hits {
        DescriptorHits::Units(cost) => Some(cost),
        DescriptorHits::AsRequest | DescriptorHits::Take(_) | DescriptorHits::GiveBack(_) => None,
    });
    for cost in iter::once(request.cost).chain(hits) {
        if let Err(fault) = policy.check_cost(cost) {
            return Err(CheckError::bad_cost(policy, fault));
        }
    }
    Ok(())
}
