//! Building a limiter: from a file, from text, or in code.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the options, and building with buckets in memory or in a store of the caller |
//! | `source` | the sources of settings: configuration, environment, store |
//! | `open` | building with the store that the settings name |

mod open;
mod source;

use crate::backend::Backend;
use crate::error::BuildError;
use crate::failure::{Failover, SharedClock};
use crate::limiter::Limiter;
use crate::naming::BucketRenamer;
use crate::overrides::CodeOverrides;
use crate::rules::Rules;
use crate::share::Instances;
use crate::snapshot::{self, OpenedSnapshot, SourceOf};
use crate::spec::LimitSpec;
#[cfg(feature = "config")]
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
#[cfg(feature = "config")]
use tidegate_config::Config;
use tidegate_core::{Clock, Store};
use tidegate_memory::{MemoryStore, SystemClock};
use tidegate_policy::store::{LocalShare, SnapshotSettings};
use tidegate_policy::{Client, Evaluate, OnFailure, ReserveRules, Respond};

/// The default number of buckets.
const MAX_KEYS: u64 = 1_000_000;

/// Builds a [`Limiter`]. [`Limiter::builder`] creates one.
///
/// First the limits: a configuration ([`file`](Self::file), [`yaml`](Self::yaml), [`config`](Self::config)),
/// limits in code ([`limit`](Self::limit)), or both. Then the store, by the method that ends the chain:
///
/// | last call | buckets | if the store is unreachable |
/// |---|---|---|
/// | [`build`](Self::build) | in memory | cannot happen |
/// | [`start`](Self::start) | in the store that the settings name | starts without it, and uses it once it answers |
/// | [`connect`](Self::connect) | in the store that the settings name | fails |
/// | [`build_with`](Self::build_with) | in a store of the caller | up to the caller |
///
/// Limits in code form one more policy, `default`, after those of the configuration, which then must not have
/// a policy of this name. Requests that name no policy are decided by the first one.
///
/// Settings made here (client, failures, store, environment) take precedence over the configuration, and over
/// every configuration that is [loaded](Limiter::reload) later.
///
/// # Example
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .yaml("policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]")?
///     .limit(LimitSpec::new("exports").key(KeyPart::User).band("2/h"))
///     .max_keys(10_000)
///     .build()?;
/// assert_eq!(limiter.check_now(&Request::new())?.policy(), "api");
///
/// let export = Request::new().policy("default").user("ann");
/// assert_eq!(limiter.check_now(&export)?.policy(), "default");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder<C = SystemClock> {
    #[cfg(feature = "config")]
    config: Option<Config>,
    overrides: CodeOverrides,
    max_keys: Option<u64>,
    snapshot: Option<SnapshotSettings>,
    instances: Instances,
    /// True if the other instances that share the store are notified of this one, for any `local_share`.
    is_listed: bool,
    /// Present for a store that names buckets by their policies.
    naming: Option<BucketRenamer>,
    clock: C,
}

impl Limiter {
    /// Returns a builder: the one way to all settings. [`from_yaml`](Self::from_yaml) and
    /// [`from_file`](Self::from_file) are short forms for a configuration with its buckets in memory.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    /// Builds a limiter from a self-contained configuration in YAML or JSON, with its buckets in memory.
    /// Variables and files that the configuration names are not looked up; use
    /// [`LimiterBuilder::environment`] for that.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] with all mistakes, each with its line, if the configuration is invalid;
    /// [`BuildError::Store`] if it names a store across the network; [`BuildError::Memory`] if there is no
    /// memory for its buckets.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{BuildError, Limiter};
    ///
    /// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]")?;
    ///
    /// let error = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: fast }] }]");
    /// assert!(matches!(error, Err(BuildError::Config(_))));
    /// # Ok::<(), BuildError>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn from_yaml(text: &str) -> Result<Self, BuildError> {
        LimiterBuilder::new().yaml(text)?.build()
    }

    /// Builds a limiter from a configuration file. Looks up the variables and files that it names, and
    /// applies overrides from environment variables, like the program `tidegate`: see [`ProcessEnvironment`].
    ///
    /// Buckets are kept in memory. A configuration that names Redis is rejected; use
    /// [`LimiterBuilder::start`] or [`LimiterBuilder::connect`] for it.
    ///
    /// # Errors
    ///
    /// Those of [`from_yaml`](Self::from_yaml), and [`BuildError::Read`] if the file cannot be read.
    ///
    /// [`ProcessEnvironment`]: crate::ProcessEnvironment
    #[cfg(feature = "config")]
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        LimiterBuilder::new().file(path)?.build()
    }
}

impl LimiterBuilder {
    fn new() -> Self {
        Self {
            #[cfg(feature = "config")]
            config: None,
            overrides: CodeOverrides::default(),
            max_keys: None,
            snapshot: None,
            instances: Instances::default(),
            is_listed: false,
            naming: None,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> LimiterBuilder<C> {
    /// Adds a limit to the policy `default`. All limits that match a request are charged together, or none
    /// is: a request that one of them refuses consumes nothing.
    pub fn limit(mut self, limit: LimitSpec) -> Self {
        self.overrides.limits.push(limit);
        self
    }

    /// Makes the first matching limit in code decide alone. Default: all matching limits decide together.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("search").path("/search").band("1/h"))
    ///     .limit(LimitSpec::new("rest").band("100/h"))
    ///     .first_decides()
    ///     .build()?;
    /// let decision = limiter.check_now(&Request::new().path("/search"))?;
    /// assert_eq!((decision.limit(), decision.applied().count()), (Some("search"), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_decides(mut self) -> Self {
        self.overrides.evaluate = Evaluate::First;
        self
    }

    /// Keeps up to `max_keys` buckets in memory; for a store across the network, that many local buckets
    /// while it is unreachable. Default: the configuration's value, or 1,000,000.
    ///
    /// A bucket takes 32 bytes, and up to 240 more if it does not fit a word. Beyond the bound, keys that
    /// find no place share buckets with others, until older buckets are full again.
    pub fn max_keys(self, max_keys: u64) -> Self {
        Self {
            max_keys: Some(max_keys),
            ..self
        }
    }

    /// Keeps the buckets in memory over a restart, in a file: the buckets in it are read now, adapted to the
    /// limits as on a [reload](Limiter::reload). Drive [`Limiter::keep_snapshots`] so that a crash loses
    /// little; dropping the last clone of the limiter writes the file as well, so that a clean stop loses
    /// nothing. Default: the configuration's value (`store.snapshot`), or none.
    ///
    /// Each process needs its own file. It has hashed keys and secrets, so only this user can read it.
    /// Ignored for stores that are not in memory.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request, SnapshotSettings};
    ///
    /// let folder = std::env::temp_dir().join(format!("tidegate-doc-{}", std::process::id()));
    /// std::fs::create_dir_all(&folder)?;
    /// let limiter = || {
    ///     let limit = LimitSpec::new("all").band("10/d");
    ///     Limiter::builder().limit(limit).snapshot(SnapshotSettings::new(folder.join("buckets"))).build()
    /// };
    /// let first = limiter()?;
    /// first.check_now(&Request::new().cost(7))?;
    /// drop(first);
    ///
    /// let second = limiter()?;
    /// let decision = second.check_now(&Request::new())?;
    /// assert_eq!(decision.binding().map(|band| band.remaining()), Some(2));
    /// # drop(second);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "snapshot")]
    pub fn snapshot(self, snapshot: SnapshotSettings) -> Self {
        Self {
            snapshot: Some(snapshot),
            ..self
        }
    }

    /// Sets the behavior of limits without their own `on_failure` if the store does not answer. Default: the
    /// configuration's value, or [`OnFailure::Local`].
    ///
    /// | value | a request that needs this limit |
    /// |---|---|
    /// | [`OnFailure::Local`] | is decided by local buckets, at a [share](Self::local_share) of the limit |
    /// | [`OnFailure::Allow`] | passes without this limit |
    /// | [`OnFailure::Deny`] | is refused, with [`RETRY_AFTER_FAILURE`](crate::RETRY_AFTER_FAILURE) |
    /// | [`OnFailure::Error`] | gets [`CheckError::Store`](crate::CheckError::Store) |
    ///
    /// [`Decision::decided_by`](crate::Decision::decided_by) reports which of them applied.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.overrides.on_failure = Some(on_failure);
        self
    }

    /// Sets the share of a limit that this instance grants while the store is unreachable: with `n` instances
    /// at a share of `1/n` each, all of them together grant the whole limit. Default: the configuration's
    /// value, or one half. [`LocalShare::Auto`] divides by the number of instances that share the store.
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, LocalShare};
    ///
    /// // Three instances, each with a third of every limit while Redis is unreachable.
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("90/min"))
    ///     .local_share(LocalShare::Millionths(333_333))
    ///     .build()?;
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn local_share(mut self, share: LocalShare) -> Self {
        self.overrides.local_share = Some(share);
        self
    }

    /// Sets how frontends identify the client, and how addresses are grouped. Default: the configuration's
    /// value.
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-client").key(KeyPart::Ip).band("10/s"))
    ///     .client(tidegate::client_from_yaml("{ trusted_proxies: [10.0.0.0/8], ipv6_prefix: 48 }")?)
    ///     .build()?;
    /// assert!(limiter.rules()?.client().trusts("10.0.0.7".parse()?));
    ///
    /// let decision = limiter.check_now(&Request::new().ip("2001:db8:1:2::3".parse()?))?;
    /// assert_eq!(decision.binding().map(|band| band.key()), Some("ip:2001:db8:1::/48"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn client(mut self, client: Client) -> Self {
        self.overrides.client = Some(client);
        self
    }

    /// Sets the response settings of the limits in code: the headers of a response, and the status and body
    /// of a refusal. Frontends such as `tidegate-tower` use them; a limiter alone sends nothing.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request, respond_from_yaml};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("all").band("1/h"))
    ///     .respond(respond_from_yaml("{ status: 503 }")?)
    ///     .build()?;
    /// assert_eq!(limiter.check_now(&Request::new())?.refusal().status, 503);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn respond(mut self, respond: Respond) -> Self {
        self.overrides.respond = respond;
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
        self.overrides.reserving = Some(reserving.into());
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
    /// [`connect`](Self::connect) and [`start`](Self::start) open. See [`Limiter::instances`], and
    /// [`Limiter::leave`] for shutdown.
    pub fn announce(self) -> Self {
        Self {
            is_listed: true,
            ..self
        }
    }

    /// Sets the clock, for tests and simulations. Stores other than the in-memory one have their own clock;
    /// for them, this clock applies to decisions made without the store.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, ManualClock, Request, Timestamp};
    ///
    /// let clock = ManualClock::at(Timestamp::from_millis(1));
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("all").band("1/s"))
    ///     .clock(clock.clone())
    ///     .build()?;
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// assert!(!limiter.check_now(&Request::new())?.is_allowed());
    ///
    /// clock.advance_micros(1_000_000);
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<D> {
        LimiterBuilder {
            #[cfg(feature = "config")]
            config: self.config,
            overrides: self.overrides,
            max_keys: self.max_keys,
            snapshot: self.snapshot,
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
    /// - [`BuildError::Store`] if the settings name a store across the network: end with
    ///   [`start`](Self::start) or [`connect`](Self::connect) instead.
    /// - [`BuildError::Limit`] or [`BuildError::Reserve`] if a limit in code is invalid.
    /// - [`BuildError::TwoDefaults`] or [`BuildError::NoPolicy`] if the policies cannot be combined.
    /// - [`BuildError::Plans`] if a rate of an inline plan does not fit a limit that uses it.
    /// - [`BuildError::Memory`] if there is no memory for [`max_keys`](Self::max_keys) buckets.
    /// - [`BuildError::Snapshot`] if another process uses the file of the snapshot, or it cannot be read.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{BuildError, LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-second").band("10/s"))
    ///     .limit(LimitSpec::new("per-hour").band("1000/h"))
    ///     .build()?;
    /// assert_eq!(limiter.rules()?.policy(None).map(|policy| policy.limits.len()), Some(2));
    /// let empty = Limiter::builder().limit(LimitSpec::new("api")).build();
    /// assert!(matches!(empty, Err(BuildError::Limit { .. })), "a limit needs a band");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(mut self) -> Result<Limiter<MemoryStore<C>>, BuildError>
    where
        C: 'static,
    {
        if let Some(store) = self.store_settings()
            && !store.target.is_memory()
        {
            return Err(BuildError::Store {
                url: store.target.to_string(),
            });
        }
        let (max_keys, settings) = (self.keys(), self.snapshot_settings());
        let rules = self.rules()?.plan_inline()?;
        let (store, snapshot) = memory(self.clock, max_keys, settings.as_ref())?;
        let backend = Backend::new(store, None);
        let limiter = Limiter::new(self.overrides, rules, backend, None);
        Ok(limiter
            .with_snapshot(snapshot, |store| Some(store))
            .releasing())
    }

    /// Builds the limiter with its buckets in a store of the caller: any [`Store`], for example one with its
    /// own clock, or one that wraps another. Ignores the store's location in the configuration and in
    /// [`store`](Self::store).
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), except [`BuildError::Store`]. A store that can fail needs memory for
    /// the local buckets that replace it.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, MemoryStore, Request};
    ///
    /// let store = MemoryStore::builder().max_keys(1_000).try_build().expect("32 KiB");
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/h")).build_with(store)?;
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// assert_eq!(limiter.store().stats().buckets, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_with<S: Store + 'static>(self, store: S) -> Result<Limiter<S>, BuildError>
    where
        C: 'static,
    {
        self.build_over(store, (None, |_| None))
    }

    /// Builds the limiter over a store that may have a snapshot.
    fn build_over<S: Store + 'static>(
        mut self,
        store: S,
        (snapshot, source): (Option<OpenedSnapshot>, SourceOf<S>),
    ) -> Result<Limiter<S>, BuildError>
    where
        C: 'static,
    {
        let max_keys = self.keys();
        let mut rules = self.rules()?;
        rules.prepare(&store)?;
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
        let backend = Backend::new(store, failover);
        let limiter = Limiter::new(self.overrides, rules, backend, self.naming);
        let limiter = limiter.with_snapshot(snapshot, source).releasing();
        Ok(limiter.with_background())
    }

    /// Returns the rules of the configuration, if there is one, with the settings in code on top.
    fn rules(&mut self) -> Result<Rules, BuildError> {
        #[cfg(feature = "config")]
        if let Some(config) = self.config.take() {
            return self.overrides.rules_of(config);
        }
        self.overrides.rules()
    }

    /// Returns the snapshot of a store in memory, if it has one.
    fn snapshot_settings(&self) -> Option<SnapshotSettings> {
        let known = || self.store_settings()?.snapshot.clone();
        self.snapshot.clone().or_else(known)
    }

    /// Returns the number of buckets to keep in memory.
    fn keys(&self) -> u64 {
        let known = self.store_settings().map(|store| store.max_keys);
        self.max_keys.or(known).unwrap_or(MAX_KEYS)
    }
}

/// Creates an in-memory store, with the content of its snapshot if it has one.
fn memory<C: Clock>(
    clock: C,
    max_keys: u64,
    settings: Option<&SnapshotSettings>,
) -> Result<(MemoryStore<C>, Option<OpenedSnapshot>), BuildError> {
    let builder = MemoryStore::builder()
        .clock(clock)
        .max_keys(usize::try_from(max_keys).unwrap_or(usize::MAX));
    if let Some(settings) = settings {
        let (store, opened) = snapshot::open(settings, builder, max_keys)?;
        return Ok((store, Some(opened)));
    }
    let store = builder.try_build().ok_or(BuildError::Memory { max_keys })?;
    Ok((store, None))
}
