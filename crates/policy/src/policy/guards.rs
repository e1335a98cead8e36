//! The facts that guards read, in addition to those of the limits.

use super::Policy;
use crate::guard::Guards;

impl Policy {
    /// Makes frontends determine everything that `guards` look up, in addition to the data for its limits.
    pub fn guarded_by(&mut self, guards: &Guards) {
        let subjects = guards.subjects();
        self.matcher.read_too(guards.reads(), subjects);
        let marked = guards.marked();
        let mut plans = self.limits.iter().filter_map(|limit| limit.plan.as_ref());
        let foreseen = plans.find(|plan| Some(&plan.subject) == marked);
        self.foreseen = foreseen.map(|plan| plan.source);
    }
}
