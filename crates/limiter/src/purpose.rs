//! The purpose of a request, and the operation on each matched limit that follows from it.

use tidegate_core::{Op, Receipt};
use tidegate_policy::{ChargeTime, Descriptor, DescriptorHits, Limit, Request};

/// The purpose of a request: see [`Limiter::attempt`](crate::Limiter::attempt).
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
    /// Returns the operation on `limit`, which was matched by the descriptor of this index, or by the request
    /// as a whole.
    #[inline]
    pub(crate) fn op(self, request: &Request<'_>, limit: &Limit, descriptor: Option<u16>) -> Op {
        match (self, descriptor) {
            (Self::Pass, None) if limit.charge != ChargeTime::EvenIfRefused => {
                charge(request, request.cost, limit)
            }
            // An estimate has not been used yet: it must fit.
            (Self::Reserve, _) => match self.op_of(request, limit, descriptor) {
                op if op.is_forced() && op.cost() > 0 => Op::Take(op.cost()),
                op => op,
            },
            _ => self.op_of(request, limit, descriptor),
        }
    }

    #[inline]
    fn op_of(self, request: &Request<'_>, limit: &Limit, descriptor: Option<u16>) -> Op {
        let described = match (descriptor, request.descriptors) {
            (Some(nth), descriptors) => descriptors.get(usize::from(nth)),
            // The hits that a single descriptor states also apply to the request as a whole.
            (None, [only]) if limit.charge == ChargeTime::EvenIfRefused => Some(only),
            (None, _) => None,
        };
        let hits = described.map_or(DescriptorHits::AsRequest, |descriptor| descriptor.hits);
        match (self, hits) {
            // A refund cannot be tested.
            (Self::Guards, _)
            | (Self::Test, DescriptorHits::GiveBack(_))
            | (_, DescriptorHits::GiveBack(0)) => Op::Look,
            (_, DescriptorHits::GiveBack(hits)) => Op::GiveBack(Receipt::latest(hits)),
            (Self::Pass | Self::Reserve, DescriptorHits::AsRequest) => {
                charge(request, request.cost, limit)
            }
            // A descriptor with 0 hits tests if anything is left. Among debits it is a debit itself, so that
            // its refusal does not prevent the charges of the others.
            (Self::Pass | Self::Reserve, DescriptorHits::Take(0)) if is_debit(request, limit) => {
                Op::Debit(0)
            }
            (Self::Pass | Self::Reserve, DescriptorHits::Take(0)) => Op::Test(1),
            (Self::Pass | Self::Reserve, DescriptorHits::Take(hits)) => {
                charge(request, hits, limit)
            }
            (Self::Test, DescriptorHits::AsRequest) => Op::Test(request.cost.max(1)),
            (Self::Test, DescriptorHits::Take(hits)) => Op::Test(hits.max(1)),
            (Self::Report, DescriptorHits::AsRequest) => used(request.cost),
            (Self::Report, DescriptorHits::Take(hits)) => used(hits),
        }
    }
}

/// Returns the operation that charges `cost` as `limit` specifies; a cost of 0 only reads.
#[inline]
fn charge(request: &Request<'_>, cost: u64, limit: &Limit) -> Op {
    match (cost, limit.charge) {
        (0, _) => Op::Look,
        (cost, ChargeTime::Always) => Op::Force(cost),
        (cost, ChargeTime::EvenIfRefused) if states_cost(request) => Op::Debit(cost),
        (cost, _) => Op::Take(cost),
    }
}

/// Returns true if `limit` charges the cost that `request` states even if it refuses.
fn is_debit(request: &Request<'_>, limit: &Limit) -> bool {
    limit.charge == ChargeTime::EvenIfRefused && states_cost(request)
}

/// Returns true if the request states its cost. A request that does not costs 1 before it begins, and its
/// refusal is free. A stated cost may have been spent already: Envoy's `apply_on_stream_done` sends the same
/// message as a check before a request.
fn states_cost(request: &Request<'_>) -> bool {
    let states = |descriptor: &Descriptor<'_>| matches!(descriptor.hits, DescriptorHits::Take(1..));
    request.cost > 1 || request.descriptors.iter().any(states)
}

fn used(cost: u64) -> Op {
    match cost {
        0 => Op::Look,
        cost => Op::Force(cost),
    }
}
