//! The names in a configuration, and their differences from the previous one.

use std::collections::BTreeSet;
use tidegate::Config;
use tracing::info;

/// The names in a configuration.
#[derive(Debug, Default)]
pub(super) struct ConfigNames {
    policies: BTreeSet<String>,
    /// Each prefixed with its policy, `api/per-client`.
    limits: BTreeSet<String>,
    routes: BTreeSet<String>,
}

impl ConfigNames {
    pub(super) fn of(config: &Config) -> Self {
        // Joined policies are omitted: the file contains their parts.
        let policies = config.written();
        let limits = policies.clone().flat_map(|policy| {
            let named = |limit| format!("{}/{limit}", policy.name);
            policy.limits.iter().map(move |it| named(&it.name))
        });
        Self {
            limits: limits.collect(),
            policies: policies.map(|it| it.name.clone()).collect(),
            routes: config.routes.iter().map(|it| it.name.clone()).collect(),
        }
    }

    pub(super) fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Logs that these are served from now on, and the differences from `before`.
    pub(super) fn report_since(&self, before: &Self) {
        info!(
            event = "config_reloaded",
            policies = self.policies.len(),
            routes = self.routes.len(),
            policies_added = listed(&self.policies, &before.policies),
            policies_removed = listed(&before.policies, &self.policies),
            limits_added = listed(&self.limits, &before.limits),
            limits_removed = listed(&before.limits, &self.limits),
            routes_added = listed(&self.routes, &before.routes),
            routes_removed = listed(&before.routes, &self.routes),
            "config reloaded"
        );
    }
}

/// Returns the names in `these` that are not in `others`; the log omits `None`.
fn listed(these: &BTreeSet<String>, others: &BTreeSet<String>) -> Option<String> {
    let names: Vec<&str> = these.difference(others).map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> ConfigNames {
        ConfigNames::of(&Config::from_yaml(text).unwrap())
    }

    #[test]
    fn added_and_removed_items_are_named_and_unchanged_ones_are_not() {
        let before = names(
            "
policies:
  - { name: api, limits: [{ name: all, rate: 1/s }, { name: each, key: ip, rate: 1/s }] }
  - { name: old, limits: [{ name: all, rate: 1/s }] }
",
        );
        let after = names(
            "
policies:
  - { name: api, limits: [{ name: all, rate: 2/s }] }
  - { name: new, limits: [{ name: fresh, rate: 1/s }] }
routes:
  - { name: b, upstreams: ['http://127.0.0.1:1'], policy: [api, new] }
  - { name: a, upstreams: ['http://127.0.0.1:2'] }
",
        );
        let came = |of: fn(&ConfigNames) -> &BTreeSet<String>| listed(of(&after), of(&before));
        let went = |of: fn(&ConfigNames) -> &BTreeSet<String>| listed(of(&before), of(&after));
        assert_eq!(came(|it| &it.policies).as_deref(), Some("new"));
        assert_eq!(went(|it| &it.policies).as_deref(), Some("old"));
        assert_eq!(came(|it| &it.limits).as_deref(), Some("new/fresh"));
        assert_eq!(went(|it| &it.limits).as_deref(), Some("api/each, old/all"));
        assert_eq!(came(|it| &it.routes).as_deref(), Some("a, b"));
        assert_eq!(went(|it| &it.routes), None);
    }
}
