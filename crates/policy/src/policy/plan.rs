//! The early fetch of a plan entry.

use super::Policy;
use crate::plan::PlanLookup;

impl Policy {
    /// Starts to fetch the plan entry of the text in `told.marked`, if that is the guards'
    /// [`mark`](crate::Guards::mark). The memory access then overlaps with the evaluation of the guards.
    #[inline]
    pub fn fetch_plan(&self, told: PlanLookup<'_>) {
        let table = self.foreseen.and_then(|source| told.table(source));
        if let (Some(table), Some(marked)) = (table, told.marked) {
            table.fetch(marked);
        }
    }
}
