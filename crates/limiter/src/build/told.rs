//! What is told in code, beside a configuration.

use super::source::Surroundings;
use crate::error::BuildError;
use crate::process::config_in;
use crate::rules::Rules;
use crate::spec::LimitSpec;
use std::path::Path;
use tidegate_policy::config::{LocalShare, StoreSettings};
use tidegate_policy::limit::AddressRules;
use tidegate_policy::{Client, Config, Evaluate, Limit, OnFailure, Policy, ReserveRules, Respond};

/// The name of the policy that limits written in code belong to.
const DEFAULT_POLICY: &str = "default";

/// What is told in code. A limiter keeps it, so that a reload lays it over the new configuration as
/// building it did over the first.
#[derive(Debug, Default)]
pub(crate) struct CodeOverrides {
    /// Where a configuration looks things up.
    pub(super) environment: Surroundings,
    /// Instead of what the configuration says of the store.
    pub(super) store: Option<StoreSettings>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) local_share: Option<LocalShare>,
    pub(super) client: Option<Client>,
    pub(super) limits: Vec<LimitSpec>,
    pub(super) evaluate: Evaluate,
    pub(super) respond: Respond,
    pub(super) reserving: Option<ReserveRules>,
}

impl CodeOverrides {
    /// What `config` says, with all that is told here laid over it.
    pub(crate) fn rules(&self, config: Option<Config>) -> Result<Rules, BuildError> {
        let mut rules = match (config, &self.store) {
            (Some(config), None) => Rules::from(config),
            (Some(mut config), Some(store)) => {
                config.store = store.clone();
                Rules::from(config)
            }
            (None, Some(store)) => Rules::empty(store),
            (None, None) => Rules::empty(&StoreSettings::default()),
        };
        rules.on_failure = self.on_failure.unwrap_or(rules.on_failure);
        rules.local_share = self.local_share.unwrap_or(rules.local_share);
        if let Some(client) = &self.client {
            rules.keys.address = client.address_rules();
            rules.client = client.clone();
        }
        if !self.limits.is_empty() {
            let limits = compile(&self.limits)?;
            if rules.policy(Some(DEFAULT_POLICY)).is_some() {
                return Err(BuildError::TwoDefaults);
            }
            if let Some(reserving) = self.reserving {
                check_reserving(reserving, &limits)?;
            }
            let policy = Policy::new(DEFAULT_POLICY.to_owned(), self.evaluate, limits)
                .with_respond(self.respond.clone())
                .with_reserving(self.reserving);
            rules.push(policy);
        }
        if rules.policies.is_empty() {
            return Err(BuildError::NoPolicy);
        }
        Ok(rules)
    }

    /// How addresses count by `config`, and by what is told here.
    pub(crate) fn address_rules(&self, config: &Config) -> AddressRules {
        let client = self.client.as_ref();
        client.unwrap_or(&config.client).address_rules()
    }

    /// The configuration in a file; what it names is looked up where that was told, else in this
    /// process.
    pub(crate) fn config(&self, path: &Path) -> Result<Config, BuildError> {
        config_in(path, self.environment.of_files())
    }
}

/// Limits written in code; two of the same name would share their buckets.
fn compile(specs: &[LimitSpec]) -> Result<Vec<Limit>, BuildError> {
    let mut limits: Vec<Limit> = Vec::new();
    for spec in specs {
        let limit = spec.clone().compile()?;
        if limits.iter().any(|other| other.name == limit.name) {
            return Err(BuildError::Limit {
                name: limit.name,
                reason: "there are two of this name; give each a name of its own".into(),
            });
        }
        limits.push(limit);
    }
    Ok(limits)
}

/// Refuses what limits in code cannot do beside taking reservations, as the configuration does.
fn check_reserving(reserving: ReserveRules, limits: &[Limit]) -> Result<(), BuildError> {
    let ReserveRules {
        default_ttl,
        max_ttl,
    } = reserving;
    let refuse = |reason: String| Err(BuildError::Reserve { reason });
    for ttl in [default_ttl, max_ttl] {
        if !(ReserveRules::SHORTEST..=ReserveRules::LONGEST).contains(&ttl) {
            return refuse(format!("{ttl:?} to live is not from 1ms to 1h"));
        }
    }
    if default_ttl > max_ttl {
        return refuse(format!(
            "{default_ttl:?} unless told is longer than {max_ttl:?}, which is the longest"
        ));
    }
    if let Some(limit) = limits.iter().find(|limit| limit.waiting.is_some()) {
        return refuse(format!(
            "requests wait for limit `{}`; remove `.wait(..)` there, or `.reserve(..)`",
            limit.name
        ));
    }
    Ok(())
}
