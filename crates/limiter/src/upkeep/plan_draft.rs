//! The next version of the plans, built while the current one stays active.
//!
//! Building the bands of many rates takes a while. No request and no other replacement waits for it: a draft
//! is based on the state at its start, and is published only if that state is still current at the end.
//! Otherwise it is built again from the newer state.

use super::PlanUpdates;
use crate::plans::{PlansError, PreparedPlans};
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_policy::plan::PlanTable;

/// The next version of the plans.
#[derive(Clone)]
pub(super) struct PlanDraft {
    /// The rules whose limits use the plans.
    rules: Arc<Rules>,
    /// The plans at the start of the draft.
    before: Arc<PreparedPlans>,
    tables: Vec<Option<Arc<PlanTable>>>,
}

impl PlanDraft {
    /// Builds the plans.
    ///
    /// # Errors
    ///
    /// Names the subject whose rate is invalid, the limit, and the reason.
    pub(super) fn build(&self) -> Result<PreparedPlans, String> {
        PreparedPlans::build(&self.rules.policies, self.tables.clone())
    }
}

impl PlanUpdates<'_> {
    /// Starts a draft in which `table` is the table of the source `name`.
    pub(super) fn draft(self, name: &str, table: &Arc<PlanTable>) -> Result<PlanDraft, PlansError> {
        let unknown = || PlansError::Unknown {
            name: name.to_owned(),
        };
        let rules = self.rules.load_full();
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

    /// Publishes the plans that were built from `draft`; returns `None` if rules or plans changed in the
    /// meantime. Calls `is_still` under the lock, and publishes nothing if it returns false. Calls `then`
    /// after publishing.
    pub(super) fn apply(
        self,
        draft: &PlanDraft,
        built: Result<PreparedPlans, String>,
        is_still: impl FnOnce() -> bool,
        then: impl FnOnce(),
    ) -> Option<Result<(), PlansError>> {
        let mut replaced = self.sources.writing.lock();
        if !is_still() {
            return Some(Ok(()));
        }
        let rules = self.rules.load_full();
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
