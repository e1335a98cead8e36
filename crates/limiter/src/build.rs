//! Building a limiter: from a file, from text, or in code.

use crate::error::BuildError;
use crate::limiter::Limiter;
use crate::rules::Rules;
use crate::spec::LimitSpec;
use std::path::Path;
use tidegate_core::{Clock, Store};
use tidegate_memory::{MemoryStore, SystemClock};
use tidegate_policy::config::{Environment, NoEnvironment};
use tidegate_policy::matching::KeyRules;
use tidegate_policy::{Config, Evaluate, Limit, Policy};

/// How many buckets are kept unless told.
const MAX_KEYS: u64 = 1_000_000;

/// The name of the policy that limits written in code belong to.
const DEFAULT_POLICY: &str = "default";

/// Begins a [`Limiter`].
///
/// A configuration and limits in code may come together: the limits in code form one more policy,
/// `default`, after those of the configuration.
#[derive(Debug)]
#[must_use]
pub struct Builder<C = SystemClock> {
    config: Option<Config>,
    evaluate: Evaluate,
    limits: Vec<LimitSpec>,
    max_keys: Option<u64>,
    clock: C,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            config: None,
            evaluate: Evaluate::All,
            limits: Vec::new(),
            max_keys: None,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> Builder<C> {
    /// Takes the policies and the store's settings from `config`.
    pub fn config(self, config: Config) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }

    /// Takes them from text in YAML or JSON, in which nothing is looked up in the environment.
    pub fn yaml(self, text: &str) -> Result<Self, BuildError> {
        self.text(text, "configuration", &NoEnvironment)
    }

    /// Takes them from a file, in which nothing is looked up in the environment.
    pub fn file(self, path: impl AsRef<Path>) -> Result<Self, BuildError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| BuildError::Read {
            path: path.into(),
            source,
        })?;
        self.text(&text, &path.display().to_string(), &NoEnvironment)
    }

    fn text(self, text: &str, name: &str, env: &dyn Environment) -> Result<Self, BuildError> {
        Ok(self.config(Config::parse(text, name, env)?))
    }

    /// Adds a limit to the policy `default`.
    pub fn limit(mut self, limit: LimitSpec) -> Self {
        self.limits.push(limit);
        self
    }

    /// Lets the first limit in code that matches decide alone.
    pub fn first_decides(self) -> Self {
        Self {
            evaluate: Evaluate::First,
            ..self
        }
    }

    /// Keeps up to `max_keys` buckets; a million unless told, here or in the configuration.
    pub fn max_keys(self, max_keys: u64) -> Self {
        Self {
            max_keys: Some(max_keys),
            ..self
        }
    }

    /// Takes the time from `clock`: for tests and simulations.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        Builder {
            config: self.config,
            evaluate: self.evaluate,
            limits: self.limits,
            max_keys: self.max_keys,
            clock,
        }
    }

    /// The limiter, with its buckets in this process.
    pub fn build(self) -> Result<Limiter<MemoryStore<C>>, BuildError> {
        if let Some(config) = &self.config
            && !config.store.url.is_memory()
        {
            return Err(BuildError::Store {
                url: config.store.url.to_string(),
            });
        }
        let configured = self.config.as_ref().map(|config| config.store.max_keys);
        let max_keys = self.max_keys.or(configured).unwrap_or(MAX_KEYS);
        let (rules, clock) = self.into_rules()?;
        let store = MemoryStore::builder()
            .clock(clock)
            .max_keys(usize::try_from(max_keys).unwrap_or(usize::MAX))
            .try_build()
            .ok_or(BuildError::Memory { max_keys })?;
        Ok(Limiter::new(rules, store))
    }

    /// The limiter, with its buckets in a store of the caller's. What the configuration says of
    /// stores, and the clock, are not looked at.
    pub fn build_with<S: Store>(self, store: S) -> Result<Limiter<S>, BuildError> {
        Ok(Limiter::new(self.into_rules()?.0, store))
    }

    fn into_rules(self) -> Result<(Rules, C), BuildError> {
        let mut rules = Rules {
            policies: Vec::new(),
            keys: KeyRules::default(),
        };
        if let Some(config) = self.config {
            rules = Rules::from(config);
        }
        if !self.limits.is_empty() {
            let limits = compile(self.limits)?;
            let name = DEFAULT_POLICY.to_owned();
            rules
                .policies
                .push(Policy::new(name, self.evaluate, limits));
        }
        if rules.policies.is_empty() {
            return Err(BuildError::NoPolicy);
        }
        Ok((rules, self.clock))
    }
}

/// Limits written in code; two of the same name would share their buckets.
fn compile(specs: Vec<LimitSpec>) -> Result<Vec<Limit>, BuildError> {
    let mut limits: Vec<Limit> = Vec::new();
    for spec in specs {
        let limit = spec.compile()?;
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
