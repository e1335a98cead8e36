//! Counting in a window of any bounds.

use crate::{Outcome, Quota, Wait};

/// The result of a take from a window in which `counted` units are counted already.
pub(super) struct WindowTake {
    /// True if the units fit, and are counted.
    pub(super) fits: bool,
    /// The units that are counted if they fit.
    pub(super) used: u64,
    pub(super) outcome: Outcome,
}

impl WindowTake {
    /// Takes `cost` units from a window that ends in `left_us` microseconds.
    #[expect(
        clippy::inline_always,
        reason = "a call would put the state and the answer into memory"
    )]
    #[inline(always)]
    pub(super) fn new(quota: &Quota, counted: u64, cost: u64, left_us: u64) -> Self {
        let used = counted.saturating_add(cost);
        let fits = used <= quota.amount;
        let counted = if fits { used } else { counted };
        let outcome = Outcome {
            remaining: quota.amount.saturating_sub(counted),
            wait: Wait::from_micros(if fits { 0 } else { left_us }),
            overdrawn: counted.saturating_sub(quota.amount),
            reset_us: left_us,
            mark: 0,
        };
        Self {
            fits,
            used,
            outcome,
        }
    }
}
