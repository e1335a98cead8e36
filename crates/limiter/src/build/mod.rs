//! Building a limiter: from a file, from text, or in code.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the options, limits in code, and buckets in this process or a store of the caller's |
//! | `source` | where settings come from: configuration, environment, store |
//! | `open` | buckets in the store that they name |

mod open;
mod source;

use crate::error::BuildError;
use crate::failure::{Failover, Instances, SharedClock};
use crate::limiter::Limiter;
use crate::naming::Naming;
use crate::rules::Rules;
use crate::spec::LimitSpec;
use source::Surroundings;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tidegate_core::{Clock, Store};
use tidegate_memory::{MemoryStore, SystemClock};
use tidegate_policy::config::{LocalShare, StoreSettings};
use tidegate_policy::{Client, Config, Evaluate, Limit, OnFailure, Policy, Respond};

/// How many buckets are kept unless told.
const MAX_KEYS: u64 = 1_000_000;

/// The name of the policy that limits written in code belong to.
const DEFAULT_POLICY: &str = "default";

/// Begins a [`Limiter`].
///
/// A configuration and limits in code may come together: the limits in code form one more policy,
/// `default`, after those of the configuration, which then must not have one of this name. Requests
/// that name no policy are decided by the first.
#[derive(Debug)]
#[must_use]
pub struct Builder<C = SystemClock> {
    config: Option<Config>,
    /// Where a configuration looks things up.
    environment: Surroundings,
    /// Instead of what the configuration says of the store.
    store: Option<StoreSettings>,
    evaluate: Evaluate,
    limits: Vec<LimitSpec>,
    max_keys: Option<u64>,
    on_failure: Option<OnFailure>,
    local_share: Option<LocalShare>,
    client: Option<Client>,
    respond: Respond,
    instances: Instances,
    /// For a store that names buckets by their policies.
    naming: Option<Naming>,
    clock: C,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            config: None,
            environment: Surroundings::default(),
            store: None,
            evaluate: Evaluate::All,
            limits: Vec::new(),
            max_keys: None,
            on_failure: None,
            local_share: None,
            client: None,
            respond: Respond::default(),
            instances: Instances::default(),
            naming: None,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> Builder<C> {
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

    /// What limits do when the store cannot tell, unless they say otherwise; as the configuration
    /// says unless told here.
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        Self {
            on_failure: Some(on_failure),
            ..self
        }
    }

    /// How much of a policy this instance grants while the store is away; as the configuration says
    /// unless told here.
    pub fn local_share(self, share: LocalShare) -> Self {
        Self {
            local_share: Some(share),
            ..self
        }
    }

    /// How doors find out who asks, and what an address counts as; as the configuration says unless
    /// told here.
    ///
    /// ```
    /// use tidegate::{Client, KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-client").key(KeyPart::Ip).band("10/s"))
    ///     .client(Client::from_yaml("{ trusted_proxies: [10.0.0.0/8], ipv6_prefix: 48 }")?)
    ///     .build()?;
    /// assert!(limiter.rules()?.client().trusts("10.0.0.7".parse()?));
    ///
    /// let decision = limiter.check_now(&Request::new().ip("2001:db8:1:2::3".parse()?))?;
    /// assert_eq!(decision.binding().map(|band| band.key()), Some("ip:2001:db8:1::/48"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn client(self, client: Client) -> Self {
        Self {
            client: Some(client),
            ..self
        }
    }

    /// What clients of the limits in code are told.
    pub fn respond(self, respond: Respond) -> Self {
        Self { respond, ..self }
    }

    /// Where it is counted how many instances share the store, for [`LocalShare::Auto`]; 0 means
    /// that nobody knows yet. A store that counts them itself needs none.
    pub fn instances(self, count: Arc<AtomicU32>) -> Self {
        Self {
            instances: Instances(count),
            ..self
        }
    }

    /// Takes the time from `clock`: for tests and simulations. Other stores than the one in this
    /// process have their own; then this one is for deciding without them.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        Builder {
            config: self.config,
            environment: self.environment,
            store: self.store,
            evaluate: self.evaluate,
            limits: self.limits,
            max_keys: self.max_keys,
            on_failure: self.on_failure,
            local_share: self.local_share,
            client: self.client,
            respond: self.respond,
            instances: self.instances,
            naming: self.naming,
            clock,
        }
    }

    /// The limiter, with its buckets in this process. Refuses a store across the network.
    pub fn build(self) -> Result<Limiter<MemoryStore<C>>, BuildError> {
        if let Some(store) = self.store_settings()
            && !store.target.is_memory()
        {
            return Err(BuildError::Store {
                url: store.target.to_string(),
            });
        }
        let max_keys = self.keys();
        let (rules, clock) = self.into_rules()?;
        Ok(Limiter::new(rules, memory(clock, max_keys)?, None, None))
    }

    /// The limiter, with its buckets in a store of the caller's. What the configuration says of
    /// where buckets live is not looked at, nor is what [`store`](Self::store) does.
    pub fn build_with<S: Store>(mut self, store: S) -> Result<Limiter<S>, BuildError>
    where
        C: 'static,
    {
        let max_keys = self.keys();
        let instances = self.instances.clone();
        let naming = self.naming.take();
        let (mut rules, clock) = self.into_rules()?;
        rules.prepare(&store);
        let failover = if store.can_fail() {
            let room = usize::try_from(max_keys).unwrap_or(usize::MAX);
            let failover = Failover::new(SharedClock::new(clock), room, instances);
            Some(failover.ok_or(BuildError::Memory { max_keys })?)
        } else {
            None
        };
        Ok(Limiter::new(rules, store, failover, naming))
    }

    /// How many buckets are kept in this process.
    fn keys(&self) -> u64 {
        let known = self.store_settings().map(|store| store.max_keys);
        self.max_keys.or(known).unwrap_or(MAX_KEYS)
    }

    fn into_rules(self) -> Result<(Rules, C), BuildError> {
        let mut rules = match (self.config, self.store) {
            (Some(mut config), store) => {
                config.store = store.unwrap_or(config.store);
                Rules::from(config)
            }
            (None, store) => Rules::empty(&store.unwrap_or_default()),
        };
        rules.on_failure = self.on_failure.unwrap_or(rules.on_failure);
        rules.local_share = self.local_share.unwrap_or(rules.local_share);
        if let Some(client) = self.client {
            rules.keys.address = client.address_rules();
            rules.client = client;
        }
        if !self.limits.is_empty() {
            let limits = compile(self.limits)?;
            let name = DEFAULT_POLICY.to_owned();
            if rules.policy(Some(&name)).is_some() {
                return Err(BuildError::TwoDefaults);
            }
            let policy = Policy::new(name, self.evaluate, limits);
            rules.policies.push(policy.with_respond(self.respond));
        }
        if rules.policies.is_empty() {
            return Err(BuildError::NoPolicy);
        }
        Ok((rules, self.clock))
    }
}

/// A store in this process.
fn memory<C: Clock>(clock: C, max_keys: u64) -> Result<MemoryStore<C>, BuildError> {
    MemoryStore::builder()
        .clock(clock)
        .max_keys(usize::try_from(max_keys).unwrap_or(usize::MAX))
        .try_build()
        .ok_or(BuildError::Memory { max_keys })
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
