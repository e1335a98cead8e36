//! The charges of a request, and their locations.

use super::payload::{SealedBand, SealedCharge, SealedUnit, in_its_window};
use super::warned::SealedWarning;
use crate::decision::{Answers, ChargeHome};
use crate::request::PreparedRequest;
use tidegate_core::{Ask, Op, Receipt};
use tidegate_policy::{Policy, Request};

/// Returns the units of a policy, with the amounts that a request asks for.
pub(super) fn units_of(policy: &Policy, request: &Request<'_>) -> Vec<SealedUnit> {
    let sealed = policy.units().iter().map(|unit| SealedUnit {
        name: unit.as_str().into(),
        estimate: policy.asked_of(request.cost, unit).unwrap_or(0),
    });
    sealed.collect()
}

/// Returns the charges of a request that passes, in the store or in memory, grouped by bucket.
///
/// A band of a unit that the request asks nothing of is in it too: the commit may name that unit, and then
/// charges all of it.
pub(crate) fn charges_of(question: &PreparedRequest<'_>, answers: &Answers) -> Vec<SealedCharge> {
    let mut buckets: Vec<SealedCharge> = Vec::new();
    if !answers.passed {
        return buckets;
    }
    let policy = question.matched.policy;
    let asks = question.asks.iter().zip(question.numbers());
    for ((ask, met), answer) in asks.zip(&answers.list) {
        let Some(answer) = answer else {
            continue;
        };
        let is_unasked = ask.op == Op::Look && !policy.counts_one_unit();
        let unasked = is_unasked.then(|| Receipt::by_the_clock(answers.at, 0));
        let unit = unit_of(question, ask);
        let Some((receipt, unit)) = answer.receipt.or(unasked).zip(unit) else {
            continue;
        };
        let quota = match (answer.home, answers.share) {
            (ChargeHome::Here, Some(share)) => {
                ask.quota.at_share(share.numerator, share.denominator)
            }
            _ => *ask.quota,
        };
        let quota = in_its_window(&quota, receipt.at);
        let band = SealedBand {
            unit,
            quota,
            receipt,
            warning: SealedWarning::of(question, met).map(Box::new),
        };
        let mut known = buckets.iter_mut();
        match known.find(|it| it.home == answer.home && *it.name == *ask.bucket) {
            Some(bucket) => bucket.bands.push(band),
            None => buckets.push(SealedCharge {
                home: answer.home,
                name: ask.bucket.into(),
                scope: ask.scope,
                bands: vec![band],
            }),
        }
    }
    buckets
}

/// Returns the index of the unit that an ask counts. A block has none that could be settled: it is never
/// refunded.
fn unit_of(question: &PreparedRequest<'_>, ask: &Ask<'_>) -> Option<usize> {
    let limit = question.matched.nth(usize::from(ask.limit))?;
    let mut units = question.matched.policy.units().iter();
    units.position(|unit| *unit == limit.unit)
}
