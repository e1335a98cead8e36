//! Building a limiter: from a file, from text, or in code.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the options, and building with buckets in memory or in a store of the caller |
//! | `told` | settings made in code, applied on top of a configuration: now, and at every reload |
//! | `source` | the sources of settings: configuration, environment, store |
//! | `open` | building with the store that the settings name |

mod open;
mod source;
mod told;

use crate::error::BuildError;
use crate::failure::{Failover, Instances, SharedClock};
use crate::limiter::Limiter;
use crate::naming::BucketRenamer;
use crate::spec::LimitSpec;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tidegate_core::{Clock, Store};
use tidegate_memory::{MemoryStore, SystemClock};
use tidegate_policy::config::LocalShare;
use tidegate_policy::{Client, Config, Evaluate, OnFailure, ReserveRules, Respond};

pub(crate) use told::CodeOverrides;

/// The default number of buckets.
const MAX_KEYS: u64 = 1_000_000;

/// Builds a [`Limiter`].
///
/// A configuration and limits in code may be combined. The limits in code form one more policy, `default`,
/// after those of the configuration, which then must not have a policy of this name. Requests that name no
/// policy are decided by the first one.
///
/// Settings made here (client, failures, store, environment) take precedence over the configuration, and over
/// every configuration that is [loaded](Limiter::reload) later.
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder<C = SystemClock> {
    config: Option<Config>,
    told: CodeOverrides,
    max_keys: Option<u64>,
    instances: Instances,
    /// True if the other instances that share the store are notified of this one, for any `local_share`.
    is_listed: bool,
    /// Present for a store that names buckets by their policies.
    naming: Option<BucketRenamer>,
    clock: C,
}

impl LimiterBuilder {
    pub(crate) fn new() -> Self {
        Self {
            config: None,
            told: CodeOverrides::default(),
            max_keys: None,
            instances: Instances::default(),
            is_listed: false,
            naming: None,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> LimiterBuilder<C> {
    /// Adds a limit to the policy `default`.
    pub fn limit(mut self, limit: LimitSpec) -> Self {
        self.told.limits.push(limit);
        self
    }

    /// Makes the first matching limit in code decide alone.
    pub fn first_decides(mut self) -> Self {
        self.told.evaluate = Evaluate::First;
        self
    }

    /// Keeps up to `max_keys` buckets in memory. Default: the configuration's value, or 1,000,000.
    pub fn max_keys(self, max_keys: u64) -> Self {
        Self {
            max_keys: Some(max_keys),
            ..self
        }
    }

    /// Sets the behavior of limits without their own `on_failure` if the store does not answer. Default: the
    /// configuration's value.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.told.on_failure = Some(on_failure);
        self
    }

    /// Sets the share of a policy that this instance grants while the store is unreachable. Default: the
    /// configuration's value.
    pub fn local_share(mut self, share: LocalShare) -> Self {
        self.told.local_share = Some(share);
        self
    }

    /// Sets how frontends identify the client, and how addresses are grouped. Default: the configuration's
    /// value.
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
    pub fn client(mut self, client: Client) -> Self {
        self.told.client = Some(client);
        self
    }

    /// Sets the response settings of the limits in code.
    pub fn respond(mut self, respond: Respond) -> Self {
        self.told.respond = respond;
        self
    }

    /// Lets the limits in code take [reservations](Limiter::reserve). `reserving` is the default time to
    /// live: a duration, or a [`ReserveRules`] that also has a maximum. Both range from a millisecond to an
    /// hour. None of these limits may let requests [wait](LimitSpec::wait).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("tokens").key(KeyPart::User).band("1000/h"))
    ///     .reserve(Duration::from_secs(60))
    ///     .build()?;
    /// let ann = Request::new().user("ann");
    ///
    /// let reservation = limiter.reserve(&ann.cost(800), None).await?;
    /// assert_eq!(reservation.expires_after(), Some(Duration::from_secs(60)));
    /// limiter.commit(reservation.id().expect("there is room"), 150).await?;
    /// assert!(limiter.check(&ann.cost(850)).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(mut self, reserving: impl Into<ReserveRules>) -> Self {
        self.told.reserving = Some(reserving.into());
        self
    }

    /// Sets the counter of the instances that share the store, for [`LocalShare::Auto`]; 0 means that the
    /// number is not known yet. Not needed for a store that counts them itself.
    pub fn instances(self, count: Arc<AtomicU32>) -> Self {
        Self {
            instances: Instances(count),
            ..self
        }
    }

    /// Enters this instance into the list of instances that share a store in Redis, even if
    /// [`LocalShare::Auto`] does not need them counted. Applies only to stores that
    /// [`connect`](Self::connect) and [`start`](Self::start) open.
    pub fn listed(self) -> Self {
        Self {
            is_listed: true,
            ..self
        }
    }

    /// Sets the clock, for tests and simulations. Stores other than the in-memory one have their own clock;
    /// for them, this clock applies to decisions made without the store.
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<D> {
        LimiterBuilder {
            config: self.config,
            told: self.told,
            max_keys: self.max_keys,
            instances: self.instances,
            is_listed: self.is_listed,
            naming: self.naming,
            clock,
        }
    }

    /// Builds the limiter with its buckets in memory.
    ///
    /// # Errors
    ///
    /// [`BuildError::Store`] if the settings name a store across the network; other errors if the settings
    /// are invalid or memory is insufficient.
    pub fn build(self) -> Result<Limiter<MemoryStore<C>>, BuildError> {
        if let Some(store) = self.store_settings()
            && !store.target.is_memory()
        {
            return Err(BuildError::Store {
                url: store.target.to_string(),
            });
        }
        let max_keys = self.keys();
        let rules = self.told.rules(self.config)?.plan_inline()?;
        let store = memory(self.clock, max_keys)?;
        Ok(Limiter::new(self.told, rules, store, None, None))
    }

    /// Builds the limiter with its buckets in a store of the caller. Ignores the store's location in the
    /// configuration and in [`store`](Self::store).
    ///
    /// # Errors
    ///
    /// If the settings are invalid, or there is no memory for the local buckets of a store that can fail.
    pub fn build_with<S: Store + 'static>(self, store: S) -> Result<Limiter<S>, BuildError>
    where
        C: 'static,
    {
        let max_keys = self.keys();
        let mut rules = self.told.rules(self.config)?;
        rules.prepare(&store);
        let rules = rules.plan_inline()?;
        let failover = if store.can_fail() {
            let room = usize::try_from(max_keys).unwrap_or(usize::MAX);
            let counted = store.shared_state().and_then(|state| state.instances());
            let instances = counted.map_or(self.instances, |it| Instances(it.count()));
            let failover = Failover::new(SharedClock::new(self.clock), room, instances);
            Some(failover.ok_or(BuildError::Memory { max_keys })?)
        } else {
            None
        };
        let limiter = Limiter::new(self.told, rules, store, failover, self.naming);
        Ok(limiter.with_background())
    }

    /// Returns the number of buckets to keep in memory.
    fn keys(&self) -> u64 {
        let known = self.store_settings().map(|store| store.max_keys);
        self.max_keys.or(known).unwrap_or(MAX_KEYS)
    }
}

/// Creates an in-memory store.
fn memory<C: Clock>(clock: C, max_keys: u64) -> Result<MemoryStore<C>, BuildError> {
    MemoryStore::builder()
        .clock(clock)
        .max_keys(usize::try_from(max_keys).unwrap_or(usize::MAX))
        .try_build()
        .ok_or(BuildError::Memory { max_keys })
}
