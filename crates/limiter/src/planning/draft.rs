//! What plans are to say next, put together beside what they say now.
//!
//! The bands of many rates take a while to make. Nobody is kept waiting meanwhile, neither whoever
//! decides nor whoever replaces something else: it is made of what was there at the beginning, and
//! counts only if that is still there in the end. Else it is made again, of what came between.

use super::planned::PreparedPlans;
use super::replace::PlansError;
use crate::limiter::Limiter;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::plan::PlanTable;

/// What plans are to say next.
#[derive(Clone)]
pub(super) struct PlanDraft {
    /// Whose limits ask.
    rules: Arc<Rules>,
    /// What plans said when it was begun.
    before: Arc<PreparedPlans>,
    tables: Vec<Option<Arc<PlanTable>>>,
}

impl PlanDraft {
    /// Makes it ready. The error says whose rate cannot be, for which limit, and why.
    pub(super) fn build(&self) -> Result<PreparedPlans, String> {
        PreparedPlans::build(&self.rules.policies, self.tables.clone())
    }
}

impl<S: Store> Limiter<S> {
    /// Begins to let `table` be what the source `name` tells.
    pub(super) fn draft_plans(
        &self,
        name: &str,
        table: &Arc<PlanTable>,
    ) -> Result<PlanDraft, PlansError> {
        let unknown = || PlansError::Unknown {
            name: name.to_owned(),
        };
        let rules = self.present();
        let number = rules.plans.iter().position(|source| source.name == name);
        let number = number.ok_or_else(unknown)?;
        let before = Arc::clone(&rules.planned.load());
        let mut tables = before.tables().to_vec();
        tables.resize(rules.plans.len(), None);
        *tables.get_mut(number).ok_or_else(unknown)? = Some(Arc::clone(table));
        Ok(PlanDraft {
            rules,
            before,
            tables,
        })
    }

    /// Lets plans say what was built of `draft`; `None` where something came between. `is_still` tells,
    /// while nobody else can do the same, whether it is still to be; `then` hears that it is.
    pub(super) fn settle_plans(
        &self,
        draft: &PlanDraft,
        built: Result<PreparedPlans, String>,
        is_still: impl FnOnce() -> bool,
        then: impl FnOnce(),
    ) -> Option<Result<(), PlansError>> {
        let mut replaced = self.plan_sources().writing.lock();
        if !is_still() {
            return Some(Ok(()));
        }
        let rules = self.present();
        let is_same =
            Arc::ptr_eq(&rules, &draft.rules) && Arc::ptr_eq(&rules.planned.load(), &draft.before);
        if !is_same {
            return None;
        }
        Some(match built {
            Ok(planned) => {
                replaced.add(rules.planned.replace(planned));
                then();
                Ok(())
            }
            Err(reason) => Err(PlansError::Rate { reason }),
        })
    }
}
