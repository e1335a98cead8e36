//! The identity of a client, as far as a policy reads it.

use super::Policy;
use crate::client::{Client, ClientIdentity, Headers, RequestFacts};

impl Client {
    /// Like [`identify`](Self::identify), but skips a user or an API key that `policy` does not read.
    pub fn identify_for<'a, H: Headers<'a>>(
        &'a self,
        asking: &RequestFacts<'a, H>,
        policy: &Policy,
    ) -> ClientIdentity<'a> {
        self.identify_by(asking, policy.identity_needs())
    }
}
