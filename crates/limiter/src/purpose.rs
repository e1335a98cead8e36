//! What a request wants of the limits that it meets, and what that is of each.

use tidegate_core::{Op, Receipt};
use tidegate_policy::{ChargeTime, Descriptor, DescriptorHits, Limit, Request};

/// The purpose of a request: see [`Limiter::attempt`](crate::Limiter::attempt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskPurpose {
    /// To pass: takes the cost if it fits, and waits for limits with `on_refusal: wait`. See
    /// [`Limiter::check`](crate::Limiter::check).
    Pass,
    /// To take an estimate if it fits, without waiting. [`Limiter::reserve`](crate::Limiter::reserve) also
    /// makes the id by which it is settled.
    Reserve,
    /// To know whether the request would pass, without taking anything. See
    /// [`Limiter::test`](crate::Limiter::test).
    Test,
    /// To charge what has been used already. See [`Limiter::report`](crate::Limiter::report).
    Report,
    /// To pass guards: no limit applies to it. Counts for its address, as [`Pass`](Self::Pass) does. See
    /// [`Limiter::check_guards`](crate::Limiter::check_guards).
    Guards,
}

impl AskPurpose {
    /// What is asked of `limit`, which was met by the descriptor of this number, or by the request as a
    /// whole.
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
            // What the only descriptor states, the request as a whole takes.
            (None, [only]) if limit.charge == ChargeTime::EvenIfRefused => Some(only),
            (None, _) => None,
        };
        let hits = described.map_or(DescriptorHits::AsRequest, |descriptor| descriptor.hits);
        match (self, hits) {
            // Nothing can be tested of what is given back.
            (Self::Guards, _)
            | (Self::Test, DescriptorHits::GiveBack(_))
            | (_, DescriptorHits::GiveBack(0)) => Op::Look,
            (_, DescriptorHits::GiveBack(hits)) => Op::GiveBack(Receipt::latest(hits)),
            (Self::Pass | Self::Reserve, DescriptorHits::AsRequest) => {
                charge(request, request.cost, limit)
            }
            // A descriptor that takes nothing asks whether anything is left. Among debits it is one
            // itself, so that its refusal does not keep the others from being charged.
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

/// Takes `cost` as `limit` says it is to be taken; 0 only looks.
#[inline]
fn charge(request: &Request<'_>, cost: u64, limit: &Limit) -> Op {
    match (cost, limit.charge) {
        (0, _) => Op::Look,
        (cost, ChargeTime::Always) => Op::Force(cost),
        (cost, ChargeTime::EvenIfRefused) if states_cost(request) => Op::Debit(cost),
        (cost, _) => Op::Take(cost),
    }
}

/// Whether `limit` is charged with what `request` states even where it refuses.
fn is_debit(request: &Request<'_>, limit: &Limit) -> bool {
    limit.charge == ChargeTime::EvenIfRefused && states_cost(request)
}

/// Whether a request states what it takes. One that does not takes 1 before it begins, and a refusal
/// of it is free. What is stated may have been spent already: Envoy's `apply_on_stream_done` sends
/// the same message as a check before a request.
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
