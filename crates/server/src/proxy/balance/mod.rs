//! Which upstream is next.
//!
//! | module | what it is |
//! |---|---|
//! | `set` | a few upstreams, by number |
//! | `rota` | who is next by weight |

mod rota;
mod set;

#[cfg(test)]
mod tests;

pub(crate) use set::{UPSTREAMS_MAX, UpstreamSet};

use super::standing::{LazyNow, UpstreamCondition, UpstreamHealth, UpstreamLease};
use rota::Rota;
use std::sync::Arc;
use tidegate_policy::route::Balance;

/// Chooses among the upstreams of one route.
///
/// Upstreams that are out are not chosen, unless all of them are: then none is known to be better than
/// another, and all are tried rather than none. One whose ejection is over has its turn as any other,
/// for one request.
#[derive(Debug)]
pub(crate) struct Balancer {
    balance: Balance,
    upstreams: Box<[Arc<UpstreamHealth>]>,
    rota: Rota,
}

/// The upstreams of a route at one moment.
#[derive(Debug, Default)]
struct BalanceView {
    /// Those that are in.
    well: UpstreamSet,
    /// Those that one request may try.
    due: UpstreamSet,
    all: UpstreamSet,
    present: LazyNow,
}

impl Balancer {
    /// Chooses among these, each with its weight. Only the first [`UPSTREAMS_MAX`] are ever chosen.
    pub(crate) fn new(
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

    /// The upstreams, in the order given.
    pub(crate) fn upstreams(&self) -> &[Arc<UpstreamHealth>] {
        &self.upstreams
    }

    /// The next turn, with none of those that the request has `tried` already. `None` means that no
    /// other is worth trying.
    pub(crate) fn pick(&self, tried: UpstreamSet) -> Option<UpstreamLease> {
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
                // Looked up again, for the number; it may be somebody else's by now.
                (false, true) => standing.condition(&mut view.present),
            };
            let is_lost = !is_desperate && condition == UpstreamCondition::Out;
            if !is_lost
                && let Some(turn) =
                    UpstreamLease::begin(index, standing, condition, &mut view.present)
            {
                return Some(turn);
            }
            // Somebody else has the trial. Each time round there is one fewer, so this ends.
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
            // A second try must not use up a place in the order: of two upstreams the one that fails
            // would have every first try.
            self.rota.stand_in(among)
        }
    }

    /// Those that have the fewest requests under way for their weight.
    fn least_busy(&self, among: UpstreamSet) -> UpstreamSet {
        let mut least: Option<(u64, u64)> = None;
        let mut tied = UpstreamSet::default();
        for (index, standing) in self.upstreams.iter().enumerate() {
            if !among.has(index) {
                continue;
            }
            let busy = u64::from(standing.in_flight());
            let weight = u64::from(self.rota.weight(index));
            // Fractions, compared crosswise: both factors are of 32 bits.
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
