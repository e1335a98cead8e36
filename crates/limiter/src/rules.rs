//! What a limiter decides by: the policies of one version of a configuration.

use crate::error::CheckError;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::{Config, Limit, Policy, Request};

/// The policies of one version of a configuration, and how keys are made. Never changes; a reload
/// replaces it whole.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) policies: Vec<Policy>,
    pub(crate) keys: KeyRules,
}

impl Rules {
    /// The policy that a request means: the one it names, else the first.
    pub(crate) fn find(&self, request: &Request<'_>) -> Result<(usize, &Policy), CheckError> {
        let is_meant = |policy: &Policy| request.policy.is_none_or(|name| policy.name == name);
        self.policies
            .iter()
            .enumerate()
            .find(|(_, policy)| is_meant(policy))
            .ok_or_else(|| {
                CheckError::unknown_policy(request.policy.unwrap_or_default(), &self.policies)
            })
    }

    pub(crate) fn limit(&self, policy: usize, limit: usize) -> Option<&Limit> {
        self.policies.get(policy)?.limits.get(limit)
    }
}

impl From<Config> for Rules {
    fn from(config: Config) -> Self {
        Self {
            keys: config.key_rules(),
            policies: config.policies,
        }
    }
}
