//! The purpose of a request, and the operation on each matched limit that follows from it.

use crate::permits::fresh_id;
use std::time::Duration;
use tidegate_core::ask::{PermitId, PermitTerms};
use tidegate_core::{Op, Receipt};
use tidegate_policy::{
    ChargeTime, Cost, Descriptor, DescriptorHits, Limit, PermitTerm, Policy, Request,
};

/// The purpose of a request: see [`Limiter::attempt`](crate::Limiter::attempt).
///
/// | purpose | charges | refuses | waits |
/// |---|---|---|---|
/// | [`Pass`](Self::Pass) | the cost, if it fits | yes | where a limit lets it |
/// | [`Reserve`](Self::Reserve) | the estimate, if it fits | yes | no |
/// | [`Test`](Self::Test) | nothing | as `Pass` would | no |
/// | [`Report`](Self::Report) | the cost, always | if nothing was left before | no |
/// | [`Guards`](Self::Guards) | nothing | if a guard does | no |
///
/// What a limit of requests in flight is charged is in use until the decision's [`Permit`](crate::Permit) is
/// dropped. A report does not charge it: the request is over.
///
/// A cost of 0 only reads the buckets; `Test` and `Reserve` then test for one unit. Descriptors that state
/// their hits are charged these in place of the cost, and one that states 0 hits tests if anything is left.
///
/// A limit is charged the amount of its unit. If the request asks for none of it, the limit is read, and
/// never refuses. That includes an amount of 0 in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskPurpose {
    /// To pass: consumes the cost if it fits, and waits for limits with `on_refusal: wait`. See
    /// [`Limiter::check`](crate::Limiter::check).
    Pass,
    /// To charge an estimate if it fits, without waiting. [`Limiter::reserve`](crate::Limiter::reserve) also
    /// creates the id for settling it.
    Reserve,
    /// To test if the request would pass, without consuming anything. See
    /// [`Limiter::test`](crate::Limiter::test).
    Test,
    /// To charge usage that has already happened. See [`Limiter::report`](crate::Limiter::report).
    Report,
    /// To pass the guards only: no limit applies. Counts for its address, like [`Pass`](Self::Pass). See
    /// [`Limiter::check_guards`](crate::Limiter::check_guards).
    Guards,
}

impl AskPurpose {
    /// Returns the operation on a limit of `policy`, which was matched by the descriptor of this index, or by
    /// the request as a whole.
    #[inline]
    pub(crate) fn op(
        self,
        request: &Request<'_>,
        (policy, limit): (&Policy, &Limit),
        descriptor: Option<u16>,
    ) -> Op {
        let op = match (self, descriptor) {
            (Self::Pass, None) if limit.charge != ChargeTime::EvenIfRefused => {
                let cost = policy.asked(request.cost, limit);
                cost.map(|cost| charge(request, cost, (limit, None)))
            }
            (Self::Reserve, _) => {
                let op = self.op_of(request, (policy, limit), descriptor);
                op.map(estimate)
            }
            _ => self.op_of(request, (policy, limit), descriptor),
        };
        op.unwrap_or(Op::Look)
    }

    /// Returns `None` if the request asks for none of the limit's unit.
    #[inline]
    fn op_of(
        self,
        request: &Request<'_>,
        (policy, limit): (&Policy, &Limit),
        descriptor: Option<u16>,
    ) -> Option<Op> {
        let described = match (descriptor, request.descriptors) {
            (Some(nth), descriptors) => descriptors.get(usize::from(nth)),
            // The hits that a single descriptor states also apply to the request as a whole.
            (None, [only]) if limit.charge == ChargeTime::EvenIfRefused => Some(only),
            (None, _) => None,
        };
        let hits = described.map_or(DescriptorHits::AsRequest, |descriptor| descriptor.hits);
        let cost = match hits {
            DescriptorHits::AsRequest => request.cost,
            DescriptorHits::Units(cost) => cost,
            DescriptorHits::Take(hits) | DescriptorHits::GiveBack(hits) => Cost::from(hits),
        };
        let cost = policy.asked(cost, limit)?;
        Some(match (self, hits) {
            // A report is of usage that is over, and units without a receipt are other requests'.
            (Self::Report, _) | (_, DescriptorHits::GiveBack(_))
                if limit.algorithm.is_concurrent() =>
            {
                Op::Look
            }
            // A refund cannot be tested.
            (Self::Guards, _) | (Self::Test, DescriptorHits::GiveBack(_)) => Op::Look,
            (_, DescriptorHits::GiveBack(_)) if cost == 0 => Op::Look,
            (_, DescriptorHits::GiveBack(_)) => Op::GiveBack(Receipt::latest(cost)),
            // A descriptor with 0 hits tests if anything is left. Among debits it is a debit itself, so that
            // its refusal does not prevent the charges of the others.
            (Self::Pass | Self::Reserve, DescriptorHits::Take(0)) if is_debit(request, limit) => {
                Op::Debit(0)
            }
            (Self::Pass | Self::Reserve, DescriptorHits::Take(0)) => Op::Test(1),
            (Self::Pass | Self::Reserve, _) => charge(request, cost, (limit, descriptor)),
            (Self::Test, _) => Op::Test(cost.max(1)),
            (Self::Report, _) => used(cost),
        })
    }
}

/// Returns `op` for an estimate. It has not been used yet, so it must fit. Without a cost, the limit is tested
/// if anything is left; one that would get a refund is only read.
fn estimate(op: Op) -> Op {
    match (op, op.cost()) {
        (Op::GiveBack(_), _) => Op::Look,
        (_, 0) => Op::Test(1),
        (_, cost) => Op::Take(cost),
    }
}

/// Returns the operation that charges `cost` as `limit` specifies; a cost of 0 only reads.
#[inline]
fn charge(request: &Request<'_>, cost: u64, (limit, descriptor): (&Limit, Option<u16>)) -> Op {
    match (cost, limit.charge) {
        (0, _) => Op::Look,
        (cost, ChargeTime::Always) => Op::Force(cost),
        (cost, ChargeTime::EvenIfRefused) if states_cost(request) => Op::Debit(cost),
        (cost, ChargeTime::InFlight) => match request.permit {
            Some(term) => Op::Acquire(timed(cost, (limit, descriptor), term)),
            None => Op::Take(cost),
        },
        (cost, ChargeTime::IfFits | ChargeTime::EvenIfRefused) => Op::Take(cost),
    }
}

/// Returns permits that end by themselves. Two descriptors of a request may have one bucket, and then have two
/// ids in it.
#[cold]
fn timed(units: u64, (limit, nth): (&Limit, Option<u16>), term: &PermitTerm) -> PermitTerms {
    let hold = limit.hold.unwrap_or(Limit::HOLD);
    let PermitId([high, low]) = term.id.unwrap_or_else(fresh_id);
    let nth = nth.map_or(0, |nth| u64::from(nth).saturating_add(1));
    PermitTerms {
        id: PermitId([high, low.wrapping_add(nth)]),
        units,
        ttl_us: term.ttl_us.unwrap_or_else(|| micros(hold)),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns true if `limit` charges the cost that `request` states even if it refuses.
fn is_debit(request: &Request<'_>, limit: &Limit) -> bool {
    limit.charge == ChargeTime::EvenIfRefused && states_cost(request)
}

/// Returns true if the request states its cost. A request that does not costs 1 before it begins, and its
/// refusal is free. A stated cost may have been spent already: Envoy's `apply_on_stream_done` sends the same
/// message as a check before a request.
fn states_cost(request: &Request<'_>) -> bool {
    let states = |descriptor: &Descriptor<'_>| match descriptor.hits {
        DescriptorHits::Take(hits) => hits > 0,
        DescriptorHits::Units(cost) => cost.is_stated(),
        DescriptorHits::AsRequest | DescriptorHits::GiveBack(_) => false,
    };
    request.cost.is_stated() || request.descriptors.iter().any(states)
}

fn used(cost: u64) -> Op {
    match cost {
        0 => Op::Look,
        cost => Op::Force(cost),
    }
}
