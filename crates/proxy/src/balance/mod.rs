//! Selection of the next upstream.
//!
//! | module | what it is |
//! |---|---|
//! | `set` | a set of upstreams, by index |
//! | `rota` | the order of upstreams by weight |

mod rota;
mod set;

#[cfg(test)]
mod tests;

pub(crate) use set::UPSTREAMS_MAX;
pub use set::UpstreamSet;

use super::upstream_health::{LazyNow, UpstreamCondition, UpstreamHealth, UpstreamLease};
use rota::Rota;
use std::sync::Arc;
use tidegate_policy::route::Balance;

/// The load balancer of one route.
///
/// Upstreams that are out are not chosen, unless all of them are: then none is known to be better than
/// another, and all are tried rather than none. An upstream whose ejection is over is chosen as any other,
/// for one request.
#[derive(Debug)]
pub struct Balancer {
    balance: Balance,
    upstreams: Box<[Arc<UpstreamHealth>]>,
    rota: Rota,
}

/// A snapshot of the upstreams of a route.
#[derive(Debug, Default)]
struct BalanceView {
    /// The upstreams that are in.
    well: UpstreamSet,
    /// The upstreams that one request may try.
    due: UpstreamSet,
    all: UpstreamSet,
    present: LazyNow,
}

impl Balancer {
    /// Creates a balancer for these upstreams with their weights. Only the first `UPSTREAMS_MAX` are ever
    /// chosen.
    pub fn new(
        upstreams: impl IntoIterator<Item = (Arc<UpstreamHealth>, u32)>,
        balance: Balance,
    ) -> Self {
        let (upstreams, weights): (Vec<_>, Vec<_>) =
            upstreams.into_iter().take(UPSTREAMS_MAX).unzip();
        Self {
            balance,
            upstreams: upstreams.into(),
            rota: Rota::new(&weights),
        }
    }

    /// Returns the upstreams, in the order given.
    pub fn upstreams(&self) -> &[Arc<UpstreamHealth>] {
        &self.upstreams
    }

    /// Returns a lease of the next upstream, except for those that the request has `tried` already. `None`
    /// means that no other is worth trying.
    pub fn pick(&self, tried: UpstreamSet) -> Option<UpstreamLease> {
        let mut view = self.look();
        loop {
            let usable = view.well.union(view.due);
            let is_desperate = usable.is_empty();
            let among = if is_desperate { view.all } else { usable };
            let index = self.choose(among.without(tried), tried)?;
            let standing = self.upstreams.get(index)?;
            let condition = match (is_desperate, view.due.has(index)) {
                (true, _) => UpstreamCondition::Out,
                (false, false) => UpstreamCondition::In,
                // Read again, for the number; another request may have taken the trial by now.
                (false, true) => standing.condition(&mut view.present),
            };
            let is_lost = !is_desperate && condition == UpstreamCondition::Out;
            if !is_lost
                && let Some(turn) =
                    UpstreamLease::begin(index, standing, condition, &mut view.present)
            {
                return Some(turn);
            }
            // Another request has the trial. Each iteration has one upstream fewer, so this ends.
            view.due = view.due.without(UpstreamSet::of(index));
        }
    }

    fn look(&self) -> BalanceView {
        let mut view = BalanceView::default();
        for (index, standing) in self.upstreams.iter().enumerate() {
            view.all.add(index);
            match standing.condition(&mut view.present) {
                UpstreamCondition::In => view.well.add(index),
                UpstreamCondition::Due(_) => view.due.add(index),
                UpstreamCondition::Out => {}
            }
        }
        view
    }

    fn choose(&self, among: UpstreamSet, tried: UpstreamSet) -> Option<usize> {
        let among = match self.balance {
            Balance::RoundRobin => among,
            Balance::LeastRequests => self.least_busy(among),
        };
        if tried.is_empty() {
            self.rota.next(among)
        } else {
            // A retry must not use up a place in the order: of two upstreams the failing one would get every
            // first attempt.
            self.rota.stand_in(among)
        }
    }

    /// Returns the upstreams with the fewest requests in flight relative to their weight.
    fn least_busy(&self, among: UpstreamSet) -> UpstreamSet {
        let mut least: Option<(u64, u64)> = None;
        let mut tied = UpstreamSet::default();
        for (index, standing) in self.upstreams.iter().enumerate() {
            if !among.has(index) {
                continue;
            }
            let busy = u64::from(standing.in_flight());
            let weight = u64::from(self.rota.weight(index));
            // Compare fractions crosswise: both factors have 32 bits.
            let order = least.map(|(other, its)| (busy * its).cmp(&(other * weight)));
            if order.is_none_or(std::cmp::Ordering::is_lt) {
                least = Some((busy, weight));
                tied = UpstreamSet::of(index);
            } else if order.is_some_and(std::cmp::Ordering::is_eq) {
                tied.add(index);
            }
        }
        tied
    }
}
