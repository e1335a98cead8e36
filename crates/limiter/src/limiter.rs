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
/// Clones are cheap and share everything. Dropping the last one lets go of the store.
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
    /// Replaced whole by a reload; a decision keeps the version that it began with.
    rules: ArcSwap<Rules>,
    /// Whoever reloads goes on from what is there: one at a time.
    reloading: Mutex<()>,
    /// What every reload lays over the new configuration.
    told: CodeOverrides,
    store: S,
    /// Only for a store that can fail.
    failover: Option<Box<Failover>>,
    /// Only for a store that names buckets by their policies.
    naming: Option<BucketRenamer>,
    /// Whether a decision may have to wait for the store.
    waits: bool,
    closed: AtomicBool,
    /// The number of this limiter, by which it knows its rules.
    owner: u64,
    giving: Giving,
    lines: WaitLines,
    reserving: ReservationState,
    /// From where the lists of guards are read.
    sources: ListSources,
    /// Notified of every reload; closed by the end of the limiter.
    reloads: watch::Sender<()>,
    /// How the sources of plans are.
    plan_sources: PlanSources,
    /// What has counted addresses before a reload.
    retired: Retired,
}

/// Numbers of limiters, each of this process once.
static OWNERS: AtomicU64 = AtomicU64::new(1);

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Limiter {
    /// Begins a limiter in code.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    /// A limiter from a configuration in YAML or JSON that stands for itself: nothing that it names
    /// is looked up, neither variables nor files. [`LimiterBuilder::environment`] is for those.
    pub fn from_yaml(text: &str) -> Result<Self, BuildError> {
        LimiterBuilder::new().yaml(text)?.build()
    }

    /// A limiter from a configuration file. Variables and files that it names are looked up, and
    /// variables override it, as the program `tidegate` does it: see [`ProcessEnvironment`].
    ///
    /// Its buckets are in this process. A configuration that names Redis is refused; then
    /// [`LimiterBuilder::start`] and [`LimiterBuilder::connect`] are what it takes.
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

    /// Replaces the configuration by `config`, at once. Decisions under way keep the version that
    /// they began with. Buckets whose limit and band keep their names keep their state.
    ///
    /// What the builder was told in code goes before `config`, as it did when this was built:
    /// [`client`](LimiterBuilder::client), [`on_failure`](LimiterBuilder::on_failure),
    /// [`local_share`](LimiterBuilder::local_share), and all of [`store`](LimiterBuilder::store). Limits in code
    /// stay, as the policy `default` after those of `config`. Should `config` have one of this name,
    /// it is an error, and what runs goes on.
    ///
    /// Lists of guards that keep their name, their subject and where they come from go on as they are.
    /// One that only has another name, or whose guard was turned off or on, begins with what was read
    /// last. Others that are in files are read at once, which blocks this thread for up to the timeout of
    /// each guard, and those in Redis by the task that [keeps](Self::keep_lists) them, a moment later.
    /// [`read_ahead`](Self::read_ahead) reads both before, without blocking. Of a guard that is off, no
    /// list is read.
    ///
    /// Of the store's settings in `config` only `on_failure`, `local_share` and `key_secret` are
    /// looked at, and of listeners none. Keys of the open layout are named by its templates.
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

    /// Whether a [reload](Self::reload) with `config` would be an error, and which: for whoever writes
    /// it down somewhere first. Changes nothing.
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

    /// [Reloads](Self::reload) a file. What it names is looked up where
    /// [`LimiterBuilder::environment`] says, else in this process, as [`from_file`](Limiter::from_file)
    /// does it. Where it cannot be read or is refused, what runs goes on.
    pub fn reload_file(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        self.reload(self.shared.told.config(path.as_ref())?)
    }

    /// How many requests wait at present for each limit that lets them, in the order of the
    /// configuration.
    pub fn waiting(&self) -> Vec<WaitingAt> {
        let rules = self.shared.rules.load();
        let mut waiting = Vec::new();
        // Who waits in what routes join, waits in the rooms of its origins.
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

    /// The store.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Takes this instance off the list of those that share the store, so that they do not count it any
    /// longer. For the end of a program: one that is killed is missed after a quarter of a minute.
    ///
    /// It may wait for the store; callers without time drop it.
    pub async fn leave(&self) {
        // Instances that it does not reach notice a little later.
        if let Some(instances) = self.instances()
            && let Err(error) = instances.leave().await
        {
            tracing::debug!(%error, "the other instances were not told that this one goes");
        }
    }

    /// The instances that share the store, if this one is listed among them.
    pub fn instances(&self) -> Option<&dyn SharedInstances> {
        self.shared_state()?.instances()
    }

    pub(crate) fn shared_state(&self) -> Option<&dyn SharedState> {
        self.shared.store.shared_state()
    }

    /// Lets no further request be decided, here or through any clone.
    ///
    /// A store in this process has nothing to write back; dropping the last clone frees it.
    pub fn close(&self) {
        self.shared.closed.store(true, Relaxed);
    }

    /// Returns true if a decision may have to wait for the store.
    #[inline]
    pub fn waits(&self) -> bool {
        self.shared.waits
    }

    /// What is decided by at present: policies, and who asks. An error only once it is closed.
    #[inline]
    pub fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        if self.shared.closed.load(Relaxed) {
            return Err(CheckError::Closed);
        }
        Ok(self.shared.rules.load_full())
    }
}

/// How often whoever reloads looks whether others still decide by what was there before.
const LOOKS: usize = 256;

/// Frees what is not decided by any more, here and not in the midst of a request, which would take as
/// long for it as there are limits. Requests that are under way end within microseconds; one that
/// waits, for the store or for its turn, does not hold this up.
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
    /// Lets `rules` be what is decided by after `last`, with what plans said last. Only for whoever is
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

    /// What is decided by at present, closed or not.
    pub(crate) fn present(&self) -> Arc<Rules> {
        self.shared.rules.load_full()
    }

    /// Whether what is of the limiter numbered `owner` is this one's.
    #[inline]
    pub(crate) fn is_owner(&self, owner: u64) -> bool {
        self.shared.owner == owner
    }

    /// How addresses count once `config` has been loaded.
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
