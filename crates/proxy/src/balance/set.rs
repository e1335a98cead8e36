//! A set of upstreams, by index.

use tidegate_policy::route::Route;

/// The most upstreams of a route.
pub(crate) const UPSTREAMS_MAX: usize = Route::UPSTREAMS_MAX;

/// A subset of a route's upstreams in one word, so that each request can have one at no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamSet(u64);

impl UpstreamSet {
    /// Returns the set of this upstream only.
    pub fn of(index: usize) -> Self {
        let bit = u32::try_from(index).ok();
        Self(bit.and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0))
    }

    /// Adds this upstream.
    pub fn add(&mut self, index: usize) {
        *self = self.union(Self::of(index));
    }

    /// Returns true if the upstream with this index is in the set.
    pub fn has(self, index: usize) -> bool {
        self.0 & Self::of(index).0 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the set without `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}
