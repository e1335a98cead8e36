//! Stores that name buckets by the configuration.

use std::fmt;
use tidegate_policy::Policy;
use tidegate_policy::matching::KeyRules;

/// Passes the naming rules of new policies to a store, before any request uses them.
pub(crate) struct BucketRenamer(Box<Rename>);

type Rename = dyn Fn(&[Policy], &KeyRules) + Send + Sync;

impl BucketRenamer {
    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "a store in this process names nothing")
    )]
    pub(crate) fn new(rename: impl Fn(&[Policy], &KeyRules) + Send + Sync + 'static) -> Self {
        Self(Box::new(rename))
    }

    /// Notifies the store that `policies` are about to take effect, with `keys`. The buckets of joined
    /// policies are named by their origins.
    pub(crate) fn follow(&self, policies: &[Policy], keys: &KeyRules) {
        (self.0)(policies, keys);
    }
}

impl fmt::Debug for BucketRenamer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BucketRenamer").finish_non_exhaustive()
    }
}
