//! The limiter: policies and a store.

use crate::build::{CodeOverrides, LimiterBuilder};
use crate::counting::{AddressCounter, Retired};
use crate::error::{BuildError, CheckError};
use crate::failure::Failover;
use crate::giving::Giving;
use crate::known::{GuardLists, ListSources};
use crate::naming::BucketRenamer;
use crate::planning::PlanSources;
use crate::reserving::ReservationState;
use crate::rules::{MachineClock, Rules};
use crate::waiting::{Rooms, WaitLines, WaitingAt};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread;
use tidegate_core::shared_state::SharedInstances;
use tidegate_core::{SharedState, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::Config;
use tidegate_policy::limit::AddressRules;
use tokio::sync::watch;

/// Decides whether requests may pass.
///
/// Clones are cheap and share all state. Dropping the last clone drops the store.
///
/// # Example
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("100/min"))
///     .build()?;
/// let decision = limiter.check_now(&Request::new().user("ann").cost(40))?;
/// assert_eq!(decision.binding().map(|band| band.remaining()), Some(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Limiter<S = MemoryStore> {
    shared: Arc<LimiterInner<S>>,
}

#[derive(Debug)]
pub(crate) struct LimiterInner<S> {
    /// The current rules. A reload replaces them as a whole; a decision keeps the version it started with.
    rules: ArcSwap<Rules>,
    /// Serializes reloads: each one builds on the rules it replaces.
    reloading: Mutex<()>,
    /// Settings made in code, applied on top of every reloaded configuration.
    told: CodeOverrides,
    store: S,
    /// Present only for a store that can fail.
    failover: Option<Box<Failover>>,
    /// Present only for a store that names buckets by their policies.
    naming: Option<BucketRenamer>,
    /// True if a decision may have to wait for the store.
    waits: bool,
    closed: AtomicBool,
    /// The id of this limiter, by which it recognizes its own rules.
    owner: u64,
    giving: Giving,
    lines: WaitLines,
    reserving: ReservationState,
    /// The sources of the guards' lists.
    sources: ListSources,
    /// Notified of every reload; closed when the limiter is dropped.
    reloads: watch::Sender<()>,
    /// The state of the plan sources.
    plan_sources: PlanSources,
    /// Address counters from before a reload.
    retired: Retired,
}

/// The next limiter id; ids are unique in this process.
static OWNERS: AtomicU64 = AtomicU64::new(1);

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Limiter {
    /// Returns a builder for a limiter defined in code.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    /// Builds a limiter from a self-contained configuration in YAML or JSON. Variables and files that the
    /// configuration names are not looked up; use [`LimiterBuilder::environment`] for that.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid or names a store across the network, or there is no memory for its
    /// buckets.
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
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        LimiterBuilder::new().file(path)?.build()
    }
}

impl<S: Store> Limiter<S> {
    pub(crate) fn new(
        told: CodeOverrides,
        mut rules: Rules,
        store: S,
        failover: Option<Failover>,
        naming: Option<BucketRenamer>,
    ) -> Self {
        let owner = OWNERS.fetch_add(1, Relaxed);
        rules.owner = owner;
        rules.machine_clock = MachineClock {
            store: store.has_machine_clock(),
            local: failover.as_ref().is_some_and(Failover::has_machine_clock),
        };
        rules.rooms = Rooms::of(&rules.policies, None);
        rules.known = GuardLists::of(&rules.guards, rules.keys.address, &[]);
        rules.known.read_files(&rules.guards, &[]);
        rules.counting = AddressCounter::of(rules.addresses.take(), rules.keys.address, None);
        Self {
            shared: Arc::new(LimiterInner {
                rules: ArcSwap::from_pointee(rules),
                reloading: Mutex::default(),
                told,
                waits: failover.is_some() || store.decide_at_once(&[]).is_none(),
                store,
                failover: failover.map(Box::new),
                naming,
                closed: AtomicBool::new(false),
                owner,
                giving: Giving::default(),
                lines: WaitLines::default(),
                reserving: ReservationState::default(),
                sources: ListSources::default(),
                reloads: watch::Sender::default(),
                plan_sources: PlanSources::default(),
                retired: Retired::default(),
            }),
        }
    }

    /// Replaces the configuration with `config`, atomically. Decisions in flight keep the version they
    /// started with. Buckets keep their state if their limit and band keep their names.
    ///
    /// Settings made in code through the builder take precedence over `config`, as they did at build time:
    /// [`client`](LimiterBuilder::client), [`on_failure`](LimiterBuilder::on_failure),
    /// [`local_share`](LimiterBuilder::local_share), and all of [`store`](LimiterBuilder::store). Limits in
    /// code stay, as the policy `default` after the policies of `config`. If `config` has a policy of this
    /// name, the reload is an error.
    ///
    /// A guard's list stays in use if its name, subject and source are unchanged. If only its name changed,
    /// or its guard was turned off or on, it starts with the entries read last. Other lists in files are read
    /// immediately, which blocks this thread for up to the timeout of each guard. Other lists in Redis are
    /// read by the task that [keeps](Self::keep_lists) them, a moment later. [`read_ahead`](Self::read_ahead)
    /// reads both kinds beforehand, without blocking. The list of a guard that is off is not read.
    ///
    /// Of the store's settings in `config`, only `on_failure`, `local_share` and `key_secret` apply.
    /// Listeners are ignored. Keys of the open layout are named by the templates of `config`.
    ///
    /// # Errors
    ///
    /// [`BuildError::TwoDefaults`] as described, [`BuildError::Plans`] if a rate of the current plans is
    /// invalid for the new limits, [`BuildError::NoPolicy`] if there is no policy. The previous rules then
    /// stay active.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{Config, Limiter, Request};
    ///
    /// let limit = |rate| format!("policies: [{{ name: api, limits: [{{ name: all, rate: {rate} }}] }}]");
    /// let limiter = Limiter::from_yaml(&limit("2/h"))?;
    /// limiter.check_now(&Request::new().cost(2))?;
    ///
    /// limiter.reload(Config::from_yaml(&limit("10/h burst 20"))?)?;
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// From a file: [`reload_file`](Self::reload_file).
    pub fn reload(&self, config: Config) -> Result<(), BuildError> {
        let mut rules = self.shared.told.rules(Some(config))?;
        rules.owner = self.shared.owner;
        let reloading = self.shared.reloading.lock();
        let before = self.shared.rules.load_full();
        rules.machine_clock = before.machine_clock;
        rules.rooms = Rooms::of(&rules.policies, Some(&before));
        let ahead = self.shared.sources.take_ahead();
        let known = [before.known.slots(), &ahead].concat();
        rules.known = GuardLists::of(&rules.guards, rules.keys.address, &known);
        rules.known.read_files(&rules.guards, &known);
        let counting = before.counting.as_ref();
        rules.counting = AddressCounter::of(rules.addresses.take(), rules.keys.address, counting);
        rules.prepare(&self.shared.store);
        let now = rules.counting.clone();
        self.shared.replace(&before, rules)?;
        self.shared.retired.note(counting, now.as_ref());
        self.shared.reloads.send_replace(());
        drop(reloading);
        free(before);
        Ok(())
    }

    /// Checks if a [reload](Self::reload) with `config` would fail, and returns that error. Changes nothing.
    /// Use it before storing a configuration somewhere.
    ///
    /// # Errors
    ///
    /// The error that [`reload`](Self::reload) would return.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{Config, Limiter};
    ///
    /// let text = "policies: [{ name: api, limits: [{ name: all, rate: 2/h }] }]";
    /// let limiter = Limiter::from_yaml(text)?;
    /// assert!(limiter.could_reload(Config::from_yaml(text)?).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn could_reload(&self, config: Config) -> Result<(), BuildError> {
        let rules = self.shared.told.rules(Some(config))?;
        let last = self.shared.rules.load_full();
        let planned = PlanSources::planned(&last, &rules);
        planned
            .map(drop)
            .map_err(|reason| BuildError::Plans { reason })
    }

    /// [Reloads](Self::reload) a file. Looks up the variables and files that it names through
    /// [`LimiterBuilder::environment`] if one was set, otherwise in this process, like
    /// [`from_file`](Limiter::from_file).
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid. The previous rules then stay active.
    pub fn reload_file(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        self.reload(self.shared.told.config(path.as_ref())?)
    }

    /// Returns the number of requests that currently wait at each limit with `on_refusal: wait`, in the order
    /// of the configuration.
    pub fn waiting(&self) -> Vec<WaitingAt> {
        let rules = self.shared.rules.load();
        let mut waiting = Vec::new();
        // A request under a joined policy waits in the rooms of the policies it was joined from.
        let policies = rules.policies.iter().enumerate();
        for (p, policy) in policies.filter(|(_, policy)| !policy.is_joined()) {
            for (l, limit) in policy.limits.iter().enumerate() {
                if let Some(room) = rules.rooms.get(p, l) {
                    waiting.push(WaitingAt {
                        policy: policy.name.clone(),
                        limit: limit.name.clone(),
                        count: room.waiting(),
                    });
                }
            }
        }
        waiting
    }

    /// Returns the store.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Removes this instance from the list of instances that share the store, so that the others stop
    /// counting it. Call it at shutdown: the others notice a killed instance only after 15 seconds.
    ///
    /// May wait for the store. A caller without time can drop the future.
    pub async fn leave(&self) {
        // Instances that this does not reach notice a little later.
        if let Some(instances) = self.instances()
            && let Err(error) = instances.leave().await
        {
            tracing::debug!(%error, "the other instances were not told that this one goes");
        }
    }

    /// Returns the instances that share the store, or `None` if this one is not listed among them.
    pub fn instances(&self) -> Option<&dyn SharedInstances> {
        self.shared_state()?.instances()
    }

    pub(crate) fn shared_state(&self) -> Option<&dyn SharedState> {
        self.shared.store.shared_state()
    }

    /// Makes this limiter and all its clones reject further requests with [`CheckError::Closed`].
    ///
    /// An in-memory store has nothing to write back; dropping the last clone frees it.
    pub fn close(&self) {
        self.shared.closed.store(true, Relaxed);
    }

    /// Returns true if a decision may have to wait for the store.
    #[inline]
    pub fn waits(&self) -> bool {
        self.shared.waits
    }

    /// Returns the current rules: policies, guards and client identification.
    ///
    /// # Errors
    ///
    /// [`CheckError::Closed`] once the limiter is closed.
    #[inline]
    pub fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        if self.shared.closed.load(Relaxed) {
            return Err(CheckError::Closed);
        }
        Ok(self.shared.rules.load_full())
    }
}

/// The number of times a reload checks if other threads still use the previous rules.
const LOOKS: usize = 256;

/// Frees the previous rules on this thread. Otherwise the last request that uses them would free them, which
/// takes time in proportion to the number of limits. Requests in flight end within microseconds; one that
/// waits for the store or for its turn does not hold this up.
fn free(before: Arc<Rules>) {
    for _ in 0..LOOKS {
        if Arc::strong_count(&before) == 1 {
            break;
        }
        thread::yield_now();
    }
    drop(before);
}

impl<S> LimiterInner<S> {
    /// Replaces the rules `last` with `rules` and carries over the current plans. Call only while holding
    /// `reloading`.
    fn replace(&self, last: &Rules, rules: Rules) -> Result<(), BuildError> {
        let replaced = self.plan_sources.carry_over(last, rules, |rules| {
            if let Some(naming) = &self.naming {
                naming.follow(&rules.policies, &rules.keys);
            }
            self.rules.store(Arc::new(rules));
        });
        replaced.map_err(|reason| BuildError::Plans { reason })
    }
}

impl<S> Limiter<S> {
    pub(crate) fn downgrade(&self) -> Weak<LimiterInner<S>> {
        Arc::downgrade(&self.shared)
    }

    pub(crate) fn of_shared(shared: Arc<LimiterInner<S>>) -> Self {
        Self { shared }
    }

    /// Returns the current rules, even if the limiter is closed.
    pub(crate) fn present(&self) -> Arc<Rules> {
        self.shared.rules.load_full()
    }

    /// Returns true if `owner` is the id of this limiter.
    #[inline]
    pub(crate) fn is_owner(&self, owner: u64) -> bool {
        self.shared.owner == owner
    }

    /// Returns the address rules that apply once `config` is loaded.
    pub(crate) fn address_rules_of(&self, config: &Config) -> AddressRules {
        self.shared.told.address_rules(config)
    }

    pub(crate) fn sources(&self) -> &ListSources {
        &self.shared.sources
    }

    pub(crate) fn reloads(&self) -> watch::Receiver<()> {
        self.shared.reloads.subscribe()
    }

    pub(crate) fn giving(&self) -> &Giving {
        &self.shared.giving
    }

    pub(crate) fn lines(&self) -> &WaitLines {
        &self.shared.lines
    }

    pub(crate) fn reserving(&self) -> &ReservationState {
        &self.shared.reserving
    }

    pub(crate) fn plan_sources(&self) -> &PlanSources {
        &self.shared.plan_sources
    }

    pub(crate) fn retired(&self) -> &Retired {
        &self.shared.retired
    }

    pub(crate) fn failover(&self) -> Option<&Failover> {
        self.shared.failover.as_deref()
    }
}
