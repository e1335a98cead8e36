//! The bands of every rate that any subject has, made before anybody asks.

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

/// What plans say, in one version, made ready for the limits of one version of the rules. A decision
/// keeps the version that it began with.
#[derive(Default)]
pub(crate) struct PreparedPlans {
    /// By which it is known: each has another, but for those that say nothing at all.
    number: u64,
    /// By the numbers of the sources.
    tables: Vec<Option<Arc<PlanTable>>>,
    /// By policy and by limit; none where no limit has a plan.
    bands: Vec<Vec<PlanBands>>,
}

/// What plans say at present.
#[derive(Debug, Default)]
pub(crate) struct CurrentPlans {
    planned: ArcSwap<PreparedPlans>,
    /// The number of that, so that whoever has it at hand need not count one more who has.
    number: AtomicU64,
}

/// Numbers of versions, each of this process once.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The bands of one limit, by the numbers of the rates in the table of its source.
#[derive(Default)]
struct PlanBands {
    bands: Vec<Band>,
    spoken: Vec<HeaderNames>,
    /// What a refusal closes the limit by, if it does.
    blocks: Vec<Option<Quota>>,
}

// === impl Present ===

impl CurrentPlans {
    /// What plans say, for a look.
    pub(crate) fn load(&self) -> Borrowed<Arc<PreparedPlans>> {
        self.planned.load()
    }

    /// Lets plans say something else, and tells what they said before.
    pub(crate) fn replace(&self, planned: PreparedPlans) -> Arc<PreparedPlans> {
        let number = planned.number;
        let before = self.planned.swap(Arc::new(planned));
        // Behind it: who sees the number finds what it belongs to, or later.
        self.number.store(number, Release);
        before
    }

    /// What plans say, in place of what was at hand if that is another.
    #[inline]
    pub(crate) fn follow<'a>(
        &self,
        at_hand: &'a mut Option<Arc<PreparedPlans>>,
    ) -> &'a Arc<PreparedPlans> {
        let number = self.number.load(Acquire);
        if at_hand.as_ref().is_none_or(|it| it.number != number) {
            *at_hand = None;
        }
        at_hand.get_or_insert_with(|| self.planned.load_full())
    }
}

// === impl Planned ===

impl PreparedPlans {
    /// Makes the bands of all rates in `tables` for the limits of `policies`. The error says whose rate
    /// cannot be, for which limit, and why.
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

    /// The band that a rate makes for a limit.
    #[inline]
    pub(crate) fn band(&self, policy: usize, limit: usize, rate: u32) -> Option<&Band> {
        self.made(policy, limit)?
            .bands
            .get(usize::try_from(rate).ok()?)
    }

    /// What a refusal closes a limit by for those who have a rate, if it does.
    #[inline]
    pub(crate) fn block(&self, policy: usize, limit: usize, rate: u32) -> Option<&Quota> {
        let made = self.made(policy, limit)?;
        made.blocks.get(usize::try_from(rate).ok()?)?.as_ref()
    }

    /// How header fields spell it.
    pub(crate) fn spoken(&self, policy: usize, limit: usize, rate: u32) -> Option<&HeaderNames> {
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
            let source = limit.plan.as_ref().and_then(|plan| tables.get(plan.source));
            let Some(Some(table)) = source else {
                return Ok(made);
            };
            for (nth, rate) in table.rates().iter().enumerate() {
                let wrong = |why| {
                    let (whose, policy) = (table.whose(nth), &policy.name);
                    format!(
                        "{whose}, for limit `{}` of policy `{policy}`: {why}",
                        limit.name
                    )
                };
                let band = limit.planned_band(*rate).map_err(wrong)?;
                let block = limit.planned_block(*rate).map_err(wrong)?;
                made.blocks.push(block.map(|block| block.quota));
                made.spoken.extend(policy.planned_spoken(number, &band));
                made.bands.push(band);
            }
            Ok(made)
        })
        .collect()
}

// By hand: there are many.
impl fmt::Debug for PreparedPlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_hand_is_followed_by_what_plans_say_now_whoever_it_was_of() {
        let planned = || PreparedPlans::build(&[], vec![None]).unwrap();
        let (one, other) = (CurrentPlans::default(), CurrentPlans::default());
        let mut at_hand = None;
        let first = Arc::clone(one.follow(&mut at_hand));
        assert!(Arc::ptr_eq(one.follow(&mut at_hand), &first));

        one.replace(planned());
        let second = Arc::clone(one.follow(&mut at_hand));
        assert!(!Arc::ptr_eq(&second, &first));
        assert!(Arc::ptr_eq(one.follow(&mut at_hand), &second));

        // What is another's is never taken for one's own.
        other.replace(planned());
        assert!(!Arc::ptr_eq(other.follow(&mut at_hand), &second));
        assert!(Arc::ptr_eq(one.follow(&mut at_hand), &second));
    }
}
