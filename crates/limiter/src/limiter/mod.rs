//! The limiter: the one place where users call it. Each method delegates to the module that does the work.
//!
//! ```text
//! facade   limiter, build          methods that users call; they only delegate
//!            │
//! verbs    ask ─▶ queue            decide now, later, or after waiting
//!          reservations            charge an estimate, settle it later
//!          upkeep                  keep lists, plans and counts current
//!            │
//! state    backend ─▶ failure      the store, and the decisions without it
//!          request ─▶ guards       a request with its matched limits
//!          decision ─▶ charges     the result, and its refundable charges
//!          rules                   one version of the configuration
//!          lists, plans, addresses, rooms
//! ```
//!
//! Modules use only modules below them. A verb takes the parts of [`LimiterState`] that it needs.
//!
//! | module | methods |
//! |---|---|
//! | this one | building, reloading, closing |
//! | `check` | deciding requests |
//! | `reservations` | refunds and reservations |
//! | `permits` | permits of requests in flight, by id |
//! | `throttle` | single buckets under a quota of the caller |
//! | `store` | the store and its health |
//! | `upkeep` | lists, plans and counts by address |

mod check;
mod permits;
mod reservations;
mod store;
mod throttle;
mod upkeep;

use crate::addresses::{AddressCounter, RetiredCounters};
use crate::backend::Backend;
#[cfg(feature = "config")]
use crate::error::BuildError;
use crate::error::CheckError;
use crate::failure::Failover;
use crate::lists::{GuardLists, ListSources};
use crate::naming::BucketRenamer;
use crate::overrides::CodeOverrides;
use crate::permits::counts_of;
use crate::plans::PlanSources;
use crate::queue::WaitQueue;
use crate::reservations::ReservationState;
use crate::rules::{MachineClock, Rules};
use crate::snapshot::{OpenedSnapshot, SnapshotKeeper, SourceOf};
use crate::state::LimiterState;
use crate::wait_room::{QueueStatus, rooms_of, waiting};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::fmt;
#[cfg(feature = "config")]
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread;
#[cfg(feature = "config")]
use tidegate_config::Config;
use tidegate_core::Store;
use tidegate_core::shared_state::SharedInstances;
use tidegate_memory::MemoryStore;
use tokio::sync::watch;

/// Decides whether requests may pass.
///
/// A limiter combines rules, which a [reload](Self::reload) replaces, and a store that keeps the buckets. `S`
/// is the store: [`MemoryStore`] by default, [`AnyStore`](crate::AnyStore) if a configuration chooses it, or
/// any [`Store`].
///
/// Clones are cheap and share all state: clone a limiter into every task. Dropping the last clone drops the
/// store. All methods take `&self`.
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
pub struct Limiter<S = MemoryStore> {
    state: Arc<LimiterState<S>>,
}

/// The next limiter id; ids are unique in this process.
static OWNERS: AtomicU64 = AtomicU64::new(1);

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
        }
    }
}

/// Without the configuration and the buckets. They are of no use on one line, and metrics, which must have `Debug`,
/// hold a limiter: hundreds of kilobytes of a program would be unused code.
impl<S> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("closed", &self.state.closed)
            .finish_non_exhaustive()
    }
}

impl<S: Store> Limiter<S> {
    pub(crate) fn new(
        overrides: CodeOverrides,
        mut rules: Rules,
        backend: Backend<S>,
        naming: Option<BucketRenamer>,
    ) -> Self {
        let owner = OWNERS.fetch_add(1, Relaxed);
        rules.owner = owner;
        let permits = rules.permits.clone();
        let failover = backend.failover();
        rules.machine_clock = MachineClock {
            store: backend.store.has_machine_clock(),
            local: failover.is_some_and(Failover::has_machine_clock),
        };
        rules.rooms = rooms_of(&rules.policies, None);
        rules.in_flight = counts_of(&rules.policies, None);
        rules.lists = GuardLists::of(&rules.guards, rules.keys.address, &[]);
        rules.lists.read_files(&rules.guards, &[]);
        rules.counting = AddressCounter::of(rules.addresses.take(), rules.keys.address, None);
        Self {
            state: Arc::new(LimiterState {
                rules: ArcSwap::from_pointee(rules),
                reloading: Mutex::default(),
                overrides,
                backend,
                naming,
                closed: AtomicBool::new(false),
                owner,
                permits,
                queue: WaitQueue::default(),
                reservations: ReservationState::default(),
                list_sources: ListSources::default(),
                reloads: watch::Sender::default(),
                plan_sources: PlanSources::default(),
                retired: RetiredCounters::default(),
                snapshot: None,
            }),
        }
    }

    /// Returns the limiter, whose permits are released from now on. Before that, none is held.
    pub(crate) fn releasing(self) -> Self
    where
        S: 'static,
    {
        let state: Weak<LimiterState<S>> = Arc::downgrade(&self.state);
        self.state.permits.set(state);
        self
    }

    /// Returns the limiter, which has no clones yet, with a snapshot of its store. Ids of reservations
    /// are sealed as they were by the process that wrote it.
    pub(crate) fn with_snapshot(
        mut self,
        opened: Option<OpenedSnapshot>,
        source: SourceOf<S>,
    ) -> Self {
        if let (Some(opened), Some(state)) = (opened, Arc::get_mut(&mut self.state)) {
            let note = opened.restored.as_ref().map(|restored| &*restored.note);
            if let Some(reservations) = note.and_then(ReservationState::from_note) {
                state.reservations = reservations;
            }
            let note = state.reservations.to_note();
            state.snapshot = Some(SnapshotKeeper::new(opened, source, note));
        }
        self
    }

    /// Replaces the configuration with `config`, atomically. Decisions in flight keep the version they
    /// started with. Buckets keep their state if their limit and band keep their names.
    ///
    /// Settings made in code through the builder take precedence over `config`, as they did at build time:
    /// [`client`](crate::LimiterBuilder::client), [`on_failure`](crate::LimiterBuilder::on_failure),
    /// [`local_share`](crate::LimiterBuilder::local_share), and all of [`store`](crate::LimiterBuilder::store). Limits in
    /// code stay, as the policy `default` after the policies of `config`. If `config` has a policy of this
    /// name, the reload is an error.
    ///
    /// A guard's list stays in use if its name, subject and source are unchanged. If only its name changed,
    /// or its guard was turned off or on, it starts with the entries read last. Other lists in files are read
    /// immediately, which blocks this thread for up to the timeout of each guard. Other lists in Redis are
    /// read by the task that [keeps](Self::keep_lists) them, a moment later. [`preload_lists`](Self::preload_lists)
    /// reads both kinds beforehand, without blocking. The list of a guard that is off is not read.
    ///
    /// Of the store's settings in `config`, only `on_failure`, `local_share` and `key_secret` apply.
    /// Listeners are ignored. Keys of the open layout are named by the templates of `config`.
    ///
    /// # Errors
    ///
    /// [`BuildError::TwoDefaults`] as described, [`BuildError::Limit`] if the store cannot hold the permits of a limit
    /// with `concurrent`, [`BuildError::Plans`] if a rate of the current plans is
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
    #[cfg(feature = "config")]
    pub fn reload(&self, config: Config) -> Result<(), BuildError> {
        let mut rules = self.state.overrides.rules_of(config)?;
        rules.owner = self.state.owner;
        rules.permits = self.state.permits.clone();
        let reloading = self.state.reloading.lock();
        let before = self.state.rules.load_full();
        rules.machine_clock = before.machine_clock;
        rules.unknown_clients = Arc::clone(&before.unknown_clients);
        rules.rooms = rooms_of(&rules.policies, Some((&before.policies, &before.rooms)));
        let earlier = (&*before.policies, &before.in_flight);
        rules.in_flight = counts_of(&rules.policies, Some(earlier));
        let ahead = self.state.list_sources.take_preloaded_lists();
        let known = [before.lists.slots(), &ahead].concat();
        rules.lists = GuardLists::of(&rules.guards, rules.keys.address, &known);
        rules.lists.read_files(&rules.guards, &known);
        let counting = before.counting.as_ref();
        rules.counting = AddressCounter::of(rules.addresses.take(), rules.keys.address, counting);
        rules.prepare(self.state.backend.store.inner())?;
        let now = rules.counting.clone();
        let replaced = self.plan_updates().carry_over(&before, rules, |rules| {
            if let Some(naming) = &self.state.naming {
                naming.follow(&rules.policies, &rules.keys);
            }
        });
        replaced.map_err(|reason| BuildError::Plans { reason })?;
        self.state.retired.note(counting, now.as_ref());
        self.state.reloads.send_replace(());
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
    /// assert!(limiter.validate_reload(Config::from_yaml(text)?).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn validate_reload(&self, config: Config) -> Result<(), BuildError> {
        let rules = self.state.overrides.rules_of(config)?;
        rules.check_permits(self.state.backend.store.inner())?;
        let last = self.state.rules.load_full();
        let planned = rules.plans_from(&last);
        planned
            .map(drop)
            .map_err(|reason| BuildError::Plans { reason })
    }

    /// [Reloads](Self::reload) a file. Looks up the variables and files that it names through
    /// [`LimiterBuilder::environment`](crate::LimiterBuilder::environment) if one was set, otherwise in this
    /// process, like [`from_file`](Limiter::from_file). Blocks this thread while it reads.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`] if the file cannot be read, [`BuildError::Config`] if it is invalid, and the
    /// errors of [`reload`](Self::reload). The previous rules then stay active.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use tidegate::Limiter;
    ///
    /// let limiter = Limiter::from_file("tidegate.yaml")?;
    /// // On SIGHUP, for example:
    /// if let Err(error) = limiter.reload_file("tidegate.yaml") {
    ///     eprintln!("keeping the previous rules: {error}");
    /// }
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    #[cfg(feature = "config")]
    pub fn reload_file(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        self.reload(self.state.overrides.config(path.as_ref())?)
    }

    /// Returns the number of requests that currently wait at each limit with `on_refusal: wait`, in the order
    /// of the configuration. Limits that do not let requests wait are left out.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("jobs").band("1/s").wait(Duration::from_secs(5)))
    ///     .limit(LimitSpec::new("all").band("100/s"))
    ///     .build()?;
    /// let [queue] = &limiter.waiting()[..] else { panic!("one limit lets requests wait") };
    /// assert_eq!((queue.limit.as_str(), queue.count), ("jobs", 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waiting(&self) -> Vec<QueueStatus> {
        let rules = self.state.rules.load();
        waiting(&rules.rooms, &rules.policies)
    }

    /// Returns the number of requests without a client address that a limit needed one for. All of them share
    /// the bucket `unknown` of such a limit, so one client can use up the limit of the others.
    ///
    /// The first of them, the tenth, the hundredth and so on are also logged with the event
    /// `client_address_missing`.
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-client").key(KeyPart::Ip).band("10/s"))
    ///     .build()?;
    /// limiter.check_now(&Request::new().ip("192.0.2.1".parse()?))?;
    /// assert_eq!(limiter.unknown_clients(), 0);
    ///
    /// let decision = limiter.check_now(&Request::new())?;
    /// assert_eq!(decision.binding().map(|band| band.key()), Some("ip:unknown"));
    /// assert_eq!(limiter.unknown_clients(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unknown_clients(&self) -> u64 {
        self.state.rules.load().unknown_clients.count()
    }

    /// Returns the store, for its own statistics and settings. Buckets that are changed through it directly
    /// are not noticed by requests that wait.
    pub fn store(&self) -> &S {
        self.state.backend.store.inner()
    }

    /// Removes this instance from the list of instances that share the store, so that the others stop
    /// counting it. Call it at shutdown: the others notice a killed instance only after 15 seconds.
    ///
    /// May wait for the store, and logs a failure. A caller without time can drop the future. Does nothing
    /// for a store that lists no instances.
    pub async fn leave(&self) {
        // Instances that this does not reach notice a little later.
        if let Some(instances) = self.instances()
            && let Err(error) = instances.leave().await
        {
            tracing::debug!(event = "instance_leave_failed", %error, "cannot announce the shutdown to other instances");
        }
    }

    /// Returns the instances that share the store, or `None` if this one is not listed among them: see
    /// [`LimiterBuilder::announce`](crate::LimiterBuilder::announce).
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// assert!(limiter.instances().is_none(), "buckets in memory are not shared");
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn instances(&self) -> Option<&dyn SharedInstances> {
        self.state.backend.shared_state()?.instances()
    }

    /// Makes this limiter and all its clones reject further requests with [`CheckError::Closed`]. Requests in
    /// flight are decided.
    ///
    /// Dropping the last clone frees an in-memory store, and writes its [snapshot](Self::snapshot) if it has
    /// one.
    ///
    /// ```
    /// use tidegate::{CheckError, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// limiter.close();
    /// assert!(matches!(limiter.check_now(&Request::new()), Err(CheckError::Closed)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        self.state.closed.store(true, Relaxed);
    }

    /// Returns true if a decision may have to wait for the store: always for one across the network, never
    /// for one in memory. Limits with `on_refusal: wait` may queue a request in either case.
    #[inline]
    pub fn waits(&self) -> bool {
        self.state.backend.waits()
    }

    /// Returns the current rules: policies, guards and client identification. They stay valid after a
    /// [reload](Self::reload), so that a request is identified and decided by the same version.
    ///
    /// # Errors
    ///
    /// [`CheckError::Closed`] once the limiter is closed.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{CheckError, LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// let rules = limiter.rules()?;
    /// assert_eq!(rules.policy(None).map(|policy| policy.name.as_str()), Some("default"));
    /// limiter.close();
    /// assert!(matches!(limiter.rules(), Err(CheckError::Closed)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        if self.state.closed.load(Relaxed) {
            return Err(CheckError::Closed);
        }
        Ok(self.state.rules.load_full())
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
