//! Settings made in code, in addition to a configuration.

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

/// The settings made in code. A limiter keeps them, so that a reload applies them on top of the new
/// configuration as the builder did on top of the first.
#[derive(Debug, Default)]
pub(crate) struct CodeOverrides {
    /// The environment in which a configuration looks up variables and files.
    pub(super) environment: Surroundings,
    /// Replaces the configuration's store settings.
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
    /// Returns the rules of `config` with all these settings applied on top.
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

    /// Returns the address rules of `config`, or those set here.
    pub(crate) fn address_rules(&self, config: &Config) -> AddressRules {
        let client = self.client.as_ref();
        client.unwrap_or(&config.client).address_rules()
    }

    /// Reads a configuration file. The variables and files that it names are looked up in the environment
    /// that was set, otherwise in this process.
    pub(crate) fn config(&self, path: &Path) -> Result<Config, BuildError> {
        config_in(path, self.environment.of_files())
    }
}

/// Compiles limits written in code. Two of the same name are an error: they would share their buckets.
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

/// Rejects settings that limits in code cannot combine with reservations, like the configuration does.
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
