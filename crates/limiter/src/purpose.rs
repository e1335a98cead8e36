//! What a request wants of the limits that it meets, and what that is of each.

use tidegate_core::{Op, Receipt};
use tidegate_policy::{Hits, Limit, Request};

/// What a request wants of the limits that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To pass: to take what it costs, if that fits.
    Pass,
    /// To know whether it would pass, and take nothing.
    Test,
    /// To tell what has been used already.
    Report,
}

impl Purpose {
    /// What is asked of `limit`, which was met by the descriptor of this number, or by the request as a
    /// whole.
    #[inline]
    pub(crate) fn op(self, request: &Request<'_>, limit: &Limit, descriptor: Option<u16>) -> Op {
        match (self, descriptor) {
            (Self::Pass, None) => charge(request.cost, limit),
            _ => self.op_of(request, limit, descriptor),
        }
    }

    fn op_of(self, request: &Request<'_>, limit: &Limit, descriptor: Option<u16>) -> Op {
        let described = descriptor.and_then(|nth| request.descriptors.get(usize::from(nth)));
        let hits = described.map_or(Hits::AsRequest, |descriptor| descriptor.hits);
        match (self, hits) {
            // Nothing can be tested of what is given back.
            (Self::Test, Hits::GiveBack(_)) | (_, Hits::GiveBack(0)) => Op::Look,
            (_, Hits::GiveBack(hits)) => Op::GiveBack(Receipt::latest(hits)),
            (Self::Pass, Hits::AsRequest) => charge(request.cost, limit),
            // Whoever says so wants to know whether anything is left.
            (Self::Pass, Hits::Take(0)) => Op::Test(1),
            (Self::Pass, Hits::Take(hits)) => charge(hits, limit),
            (Self::Test, Hits::AsRequest) => Op::Test(request.cost.max(1)),
            (Self::Test, Hits::Take(hits)) => Op::Test(hits.max(1)),
            (Self::Report, Hits::AsRequest) => used(request.cost),
            (Self::Report, Hits::Take(hits)) => used(hits),
        }
    }
}

/// Takes `cost` as `limit` says it is to be taken; 0 only looks.
#[inline]
fn charge(cost: u64, limit: &Limit) -> Op {
    match (cost, limit.charge_always) {
        (0, _) => Op::Look,
        (cost, false) => Op::Take(cost),
        (cost, true) => Op::Force(cost),
    }
}

fn used(cost: u64) -> Op {
    match cost {
        0 => Op::Look,
        cost => Op::Force(cost),
    }
}
