//! Building a limiter: from a file, from text, or in code.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the options, and buckets in this process or a store of the caller's |
//! | `told` | what is told in code, laid over a configuration: now, and at every reload |
//! | `source` | where settings come from: configuration, environment, store |
//! | `open` | buckets in the store that they name |

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

/// How many buckets are kept unless told.
const MAX_KEYS: u64 = 1_000_000;

/// Begins a [`Limiter`].
///
/// A configuration and limits in code may come together: the limits in code form one more policy,
/// `default`, after those of the configuration, which then must not have one of this name. Requests
/// that name no policy are decided by the first.
///
/// What is told here of clients, failures, the store and where things are looked up goes before what
/// a configuration says, and stays so when another one is [loaded](Limiter::reload) later.
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder<C = SystemClock> {
    config: Option<Config>,
    told: CodeOverrides,
    max_keys: Option<u64>,
    instances: Instances,
    /// Whether the others who share the store are told that this one lives, whatever the share.
    is_listed: bool,
    /// For a store that names buckets by their policies.
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

    /// Lets the first limit in code that matches decide alone.
    pub fn first_decides(mut self) -> Self {
        self.told.evaluate = Evaluate::First;
        self
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
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.told.on_failure = Some(on_failure);
        self
    }

    /// How much of a policy this instance grants while the store is away; as the configuration says
    /// unless told here.
    pub fn local_share(mut self, share: LocalShare) -> Self {
        self.told.local_share = Some(share);
        self
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
    pub fn client(mut self, client: Client) -> Self {
        self.told.client = Some(client);
        self
    }

    /// What clients of the limits in code are told.
    pub fn respond(mut self, respond: Respond) -> Self {
        self.told.respond = respond;
        self
    }

    /// Lets the limits in code take [reservations](Limiter::reserve), which live for so long unless they
    /// say so: a duration, or a [`ReserveRules`] with a maximum as well; both from a millisecond to an hour.
    /// None of these limits may let requests [wait](LimitSpec::wait).
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

    /// Where it is counted how many instances share the store, for [`LocalShare::Auto`]; 0 means
    /// that nobody knows yet. A store that counts them itself needs none.
    pub fn instances(self, count: Arc<AtomicU32>) -> Self {
        Self {
            instances: Instances(count),
            ..self
        }
    }

    /// Enters this instance into the list of those that share a store in Redis, so that they hear of each
    /// other, whether or not [`LocalShare::Auto`] needs them counted. Only for stores that
    /// [`connect`](Self::connect) and [`start`](Self::start) open.
    pub fn listed(self) -> Self {
        Self {
            is_listed: true,
            ..self
        }
    }

    /// Takes the time from `clock`: for tests and simulations. Other stores than the one in this
    /// process have their own; then this one is for deciding without them.
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
        let rules = self.told.rules(self.config)?.plan_inline()?;
        let store = memory(self.clock, max_keys)?;
        Ok(Limiter::new(self.told, rules, store, None, None))
    }

    /// The limiter, with its buckets in a store of the caller's. What the configuration says of
    /// where buckets live is not looked at, nor is what [`store`](Self::store) does.
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

    /// How many buckets are kept in this process.
    fn keys(&self) -> u64 {
        let known = self.store_settings().map(|store| store.max_keys);
        self.max_keys.or(known).unwrap_or(MAX_KEYS)
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
