//! Settings made in code, in addition to a configuration.

use crate::error::BuildError;
#[cfg(feature = "config")]
use crate::process::{ProcessEnvironment, config_in};
use crate::rules::Rules;
use crate::spec::LimitSpec;
#[cfg(feature = "config")]
use std::fmt;
#[cfg(feature = "config")]
use std::path::Path;
#[cfg(feature = "config")]
use tidegate_config::{Config, Environment, NoEnvironment};
#[cfg(feature = "config")]
use tidegate_policy::limit::AddressRules;
use tidegate_policy::store::{LocalShare, StoreSettings};
use tidegate_policy::{Client, Evaluate, Limit, OnFailure, Policy, ReserveRules, Respond};

/// The name of the policy that limits written in code belong to.
const DEFAULT_POLICY: &str = "default";

/// The settings made in code. A limiter keeps them, so that a reload applies them on top of the new
/// configuration as the builder did on top of the first.
#[derive(Debug, Default)]
pub(crate) struct CodeOverrides {
    /// The environment in which a configuration looks up variables and files.
    #[cfg(feature = "config")]
    pub(crate) environment: ConfiguredEnvironment,
    /// Replaces the configuration's store settings.
    pub(crate) store: Option<StoreSettings>,
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) local_share: Option<LocalShare>,
    pub(crate) client: Option<Client>,
    pub(crate) limits: Vec<LimitSpec>,
    pub(crate) evaluate: Evaluate,
    pub(crate) respond: Respond,
    pub(crate) reserving: Option<ReserveRules>,
}

/// The environment of configurations, if one was set.
#[cfg(feature = "config")]
#[derive(Default)]
pub(crate) struct ConfiguredEnvironment(Option<Box<dyn Environment + Send + Sync>>);

#[cfg(feature = "config")]
static PROCESS: ProcessEnvironment = ProcessEnvironment::new();

#[cfg(feature = "config")]
impl ConfiguredEnvironment {
    pub(crate) fn new(environment: impl Environment + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(environment)))
    }

    /// Returns the environment for a file.
    pub(crate) fn of_files(&self) -> &dyn Environment {
        match &self.0 {
            Some(set) => set.as_ref(),
            None => &PROCESS,
        }
    }

    /// Returns the environment for text, which is self-contained by default.
    pub(crate) fn of_text(&self) -> &dyn Environment {
        match &self.0 {
            Some(set) => set.as_ref(),
            None => &NoEnvironment,
        }
    }
}

#[cfg(feature = "config")]
impl fmt::Debug for ConfiguredEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.0.as_ref().map(|_| "..");
        f.debug_tuple("ConfiguredEnvironment").field(&set).finish()
    }
}

impl CodeOverrides {
    /// Returns the rules of `config` with all these settings applied on top.
    #[cfg(feature = "config")]
    pub(crate) fn rules_of(&self, mut config: Config) -> Result<Rules, BuildError> {
        if let Some(store) = &self.store {
            config.store = store.clone();
        }
        self.apply(Rules::from(config))
    }

    /// Returns the rules of these settings alone.
    pub(crate) fn rules(&self) -> Result<Rules, BuildError> {
        let store = self.store.clone().unwrap_or_default();
        self.apply(Rules::empty(&store))
    }

    /// Applies all these settings on top of `rules`.
    fn apply(&self, mut rules: Rules) -> Result<Rules, BuildError> {
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
    #[cfg(feature = "config")]
    pub(crate) fn address_rules(&self, config: &Config) -> AddressRules {
        let client = self.client.as_ref();
        client.unwrap_or(&config.client).address_rules()
    }

    /// Reads a configuration file. The variables and files that it names are looked up in the environment
    /// that was set, otherwise in this process.
    #[cfg(feature = "config")]
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
                reason: "duplicate name; rename one of them".into(),
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
            return refuse(format!("a lifetime of {ttl:?} is not from 1ms to 1h"));
        }
    }
    if default_ttl > max_ttl {
        return refuse(format!(
            "the default lifetime {default_ttl:?} is longer than the maximum {max_ttl:?}"
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
