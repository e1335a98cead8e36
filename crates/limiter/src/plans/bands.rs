//! The bands of every rate of any subject, built in advance.

use arc_swap::{ArcSwap, Guard as Borrowed};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use tidegate_core::Quota;
use tidegate_policy::plan::{PlanTable, Tables};
use tidegate_policy::respond::HeaderNames;
use tidegate_policy::{Band, Policy};

/// One version of all plans, prepared for the limits of one version of the rules. A decision keeps the
/// version it started with.
#[derive(Default)]
pub(crate) struct PreparedPlans {
    /// The version number: unique, except for empty plans.
    number: u64,
    /// Indexed like the sources.
    tables: Vec<Option<Arc<PlanTable>>>,
    /// By policy and by limit; empty if no limit has a plan.
    bands: Vec<Vec<PlanBands>>,
}

/// The current plans.
#[derive(Debug, Default)]
pub(crate) struct CurrentPlans {
    planned: ArcSwap<PreparedPlans>,
    /// The version number of the plans, so that a thread that has cached them need not touch the reference
    /// count.
    number: AtomicU64,
}

/// The next version number; numbers are unique in this process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The bands of one limit, indexed like the values of its rate in the table of its source.
#[derive(Default)]
struct PlanBands {
    bands: Vec<Band>,
    spoken: Vec<HeaderNames>,
    /// The quotas of the limit's blocks, if it has a `block`.
    blocks: Vec<Option<Quota>>,
}

// === impl CurrentPlans ===

impl CurrentPlans {
    /// Returns a short borrow of the plans.
    pub(crate) fn load(&self) -> Borrowed<Arc<PreparedPlans>> {
        self.planned.load()
    }

    /// Replaces the plans, and returns the previous ones.
    pub(crate) fn replace(&self, planned: PreparedPlans) -> Arc<PreparedPlans> {
        let number = planned.number;
        let before = self.planned.swap(Arc::new(planned));
        // After the swap: a reader that sees this number finds its plans, or later ones.
        self.number.store(number, Release);
        before
    }

    /// Returns the current plans, after replacing the cached ones if they are outdated.
    #[inline]
    pub(crate) fn follow<'a>(
        &self,
        cached: &'a mut Option<Arc<PreparedPlans>>,
    ) -> &'a Arc<PreparedPlans> {
        let number = self.number.load(Acquire);
        if cached.as_ref().is_none_or(|it| it.number != number) {
            *cached = None;
        }
        cached.get_or_insert_with(|| self.planned.load_full())
    }
}

// === impl PreparedPlans ===

impl PreparedPlans {
    /// Builds the bands of all rates in `tables` for the limits of `policies`.
    ///
    /// # Errors
    ///
    /// Names the subject whose rate is invalid, the limit, and the reason.
    pub(crate) fn build(
        policies: &[Policy],
        tables: Vec<Option<Arc<PlanTable>>>,
    ) -> Result<Self, String> {
        if tables.iter().all(Option::is_none) {
            return Ok(Self {
                number: NUMBERS.fetch_add(1, Relaxed),
                tables,
                bands: Vec::new(),
            });
        }
        let bands = policies
            .iter()
            .map(|policy| of_policy(policy, &tables))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            number: NUMBERS.fetch_add(1, Relaxed),
            tables,
            bands,
        })
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the band of a rate for a limit.
    #[inline]
    pub(crate) fn band(&self, policy: usize, limit: usize, rate: u32) -> Option<&Band> {
        self.made(policy, limit)?
            .bands
            .get(usize::try_from(rate).ok()?)
    }

    /// Returns the quota of a limit's block for subjects with a rate, if it has one.
    #[inline]
    pub(crate) fn block(&self, policy: usize, limit: usize, rate: u32) -> Option<&Quota> {
        let made = self.made(policy, limit)?;
        made.blocks.get(usize::try_from(rate).ok()?)?.as_ref()
    }

    /// Returns the header names of the band of a rate.
    pub(crate) fn band_header_names(
        &self,
        policy: usize,
        limit: usize,
        rate: u32,
    ) -> Option<&HeaderNames> {
        self.made(policy, limit)?
            .spoken
            .get(usize::try_from(rate).ok()?)
    }

    #[inline]
    fn made(&self, policy: usize, limit: usize) -> Option<&PlanBands> {
        self.bands.get(policy)?.get(limit)
    }
}

fn of_policy(policy: &Policy, tables: &Tables) -> Result<Vec<PlanBands>, String> {
    if !policy.is_planned() {
        return Ok(Vec::new());
    }
    let limits = policy.limits.iter().enumerate();
    limits
        .map(|(number, limit)| {
            let mut made = PlanBands::default();
            let source = limit
                .plan
                .as_ref()
                .and_then(|plan| Some((tables.get(plan.source)?.as_deref()?, &plan.name)));
            let Some((table, name)) = source else {
                return Ok(made);
            };
            for (nth, rate) in table.rates(name).iter().enumerate() {
                let wrong = |why| {
                    let (whose, policy) = (table.owner_of_rate(name, nth), &policy.name);
                    format!(
                        "{whose}, for limit `{}` of policy `{policy}`: {why}",
                        limit.name
                    )
                };
                let band = limit.planned_band(*rate).map_err(wrong)?;
                let block = limit.planned_block(*rate).map_err(wrong)?;
                made.blocks.push(block.map(|block| block.quota));
                made.spoken
                    .extend(policy.planned_header_names(number, &band));
                made.bands.push(band);
            }
            Ok(made)
        })
        .collect()
}

// Implemented by hand: there are many bands.
impl fmt::Debug for PreparedPlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPlans")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_plans_are_replaced_by_the_current_ones_of_each_limiter() {
        let planned = || PreparedPlans::build(&[], vec![None]).unwrap();
        let (one, other) = (CurrentPlans::default(), CurrentPlans::default());
        let mut cached = None;
        let first = Arc::clone(one.follow(&mut cached));
        assert!(Arc::ptr_eq(one.follow(&mut cached), &first));

        one.replace(planned());
        let second = Arc::clone(one.follow(&mut cached));
        assert!(!Arc::ptr_eq(&second, &first));
        assert!(Arc::ptr_eq(one.follow(&mut cached), &second));

        // The plans of another limiter are not used.
        other.replace(planned());
        assert!(!Arc::ptr_eq(other.follow(&mut cached), &second));
        assert!(Arc::ptr_eq(one.follow(&mut cached), &second));
    }
}
