//! Stores that name buckets by what a configuration says of them.

use std::fmt;
use tidegate_policy::Policy;
use tidegate_policy::matching::KeyRules;

/// Tells a store how the buckets of new policies are named, before anybody asks for one.
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

    /// `policies` are about to take effect, with `keys`. Of those that were joined, buckets are named by
    /// their origins.
    pub(crate) fn follow(&self, policies: &[Policy], keys: &KeyRules) {
        (self.0)(policies, keys);
    }
}

impl fmt::Debug for BucketRenamer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Naming").finish_non_exhaustive()
    }
}
