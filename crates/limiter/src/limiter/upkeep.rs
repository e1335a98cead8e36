//! Lists, plans and counts by address, which change without a reload.

use super::Limiter;
use crate::addresses::{AddressBan, CountingStatus};
use crate::lists::ListStatus;
use crate::plans::{LoadPlans, PlanState, PlansError};
use crate::refresh;
use crate::snapshot::SnapshotStatus;
use crate::upkeep::{self, ListRefresh, ListUpdates, PlanRefresh, PlanUpdates};
use std::sync::Arc;
#[cfg(feature = "config")]
use tidegate_config::Config;
use tidegate_core::Store;
use tidegate_policy::plan::{PlanDocument, PlanTable};

// === Lists of guards ===

impl<S: Store> Limiter<S> {
    /// Reads the lists of guards that are in files and in Redis, and reads them again after every `refresh`,
    /// for as long as the limiter exists. Follows reloads. The caller must drive the future once for all
    /// clones, usually as a separate task. `tidegate serve` does so automatically.
    ///
    /// Requests never wait for it: they are decided by the last list that could be read. The first failure is
    /// logged. A file that cannot be read is retried after two seconds, or `refresh` if that is shorter; a
    /// key that is not a set, after `refresh`. If Redis cannot be reached, the read is retried after a
    /// second, then after twice as long each time, up to 30 seconds, for three minutes in all; then after
    /// `refresh`. See [`lists`](Self::lists).
    ///
    /// It also removes bans that have ended, regardless of the instance that made them. That happens before
    /// each read of a set in the store's Redis by which a guard refuses addresses.
    ///
    /// Requires a `tokio` runtime with timers.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let limiter = tidegate::Limiter::builder().file("tidegate.yaml")?.start().await?;
    /// tokio::spawn(limiter.keep_lists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_lists(&self) -> impl Future<Output = ()> + Send + use<S> {
        let state = Arc::downgrade(&self.state);
        refresh::keep(state, self.state.reloads.subscribe(), ListRefresh)
    }

    /// Reads all lists that have never been read, each within the timeout of its guard. A list that cannot be
    /// read is empty. [`LimiterBuilder::start`](crate::LimiterBuilder::start) has already called this; a
    /// limiter with a store of the caller needs it before its first request.
    pub async fn load_lists(&self) {
        self.list_updates().load().await;
    }

    /// Reads the lists that `config` adds, and those of guards that it turns on again, each within the
    /// timeout of its guard and all within five seconds. A [reload](Self::reload) with `config` then starts
    /// with them. Otherwise they are empty until [`keep_lists`](Self::keep_lists) has read them, a moment
    /// later.
    ///
    /// Nothing changes until that reload. A list that cannot be read is empty, or keeps its last entries.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{Limiter, ProcessEnvironment};
    ///
    /// let limiter = Limiter::builder().file("tidegate.yaml")?.start().await?;
    /// let config = ProcessEnvironment::new().config("tidegate.yaml")?;
    /// limiter.preload_lists(&config).await;
    /// limiter.reload(config)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "config")]
    pub async fn preload_lists(&self, config: &Config) {
        let address = self.state.overrides.address_rules(config);
        self.list_updates().preload_lists(config, address).await;
    }

    /// Returns the status of the list of each guard, in the order of the configuration.
    ///
    /// ```
    /// use tidegate::Limiter;
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards: [{ name: offices, allow: ip, list: [192.0.2.0/24, 198.51.100.7] }]
    /// policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]
    /// ")?;
    /// let [list] = &limiter.lists()[..] else { panic!("there is one guard") };
    /// assert_eq!((list.guard.as_str(), list.members), ("offices", 2));
    /// assert!(list.error.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lists(&self) -> Vec<ListStatus> {
        let rules = self.state.present();
        let lists = rules.lists.slots().iter();
        lists.map(|list| list.status()).collect()
    }

    fn list_updates(&self) -> ListUpdates<'_> {
        ListUpdates {
            rules: &self.state.rules,
            sources: &self.state.list_sources,
            state: self.state.backend.shared_state(),
        }
    }
}

// === Plans ===

impl<S: Store> Limiter<S> {
    /// Replaces the plans of the source `name` atomically, for programs that manage their plans themselves.
    ///
    /// Returns once all later decisions use the new plans. With many subjects that takes a while and blocks
    /// the thread; on a runtime, call it where blocking is allowed. Requests never wait for it.
    ///
    /// Buckets are kept: a subject with another amount or another period keeps its usage.
    ///
    /// # Errors
    ///
    /// If there is no source `name`, or `document` or one of its rates is invalid. The last good plans then
    /// stay active.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::plan::PlanDocument;
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, file: plans.yaml }]
    /// policies:
    ///   - name: api
    ///     limits:
    ///       - name: per-user
    ///         key: user
    ///         rate: { plan: shop, subject: user, default: 1/h }
    /// ")?;
    /// limiter.replace_plans("shop", tidegate::plans_from_text("subjects: { ann: 100/h }", false)?)?;
    ///
    /// let remaining = |user| -> Result<_, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&Request::new().user(user))?;
    ///     Ok(decision.binding().map(|band| band.remaining()))
    /// };
    /// assert_eq!(remaining("ann")?, Some(99));
    /// assert_eq!(remaining("bob")?, Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_plans(&self, name: &str, document: PlanDocument) -> Result<(), PlansError> {
        self.plan_updates().replace(name, document)
    }

    /// Like [`replace_plans`](Self::replace_plans), with a table, for callers that inspect it first. `tag`
    /// identifies this version of the plans, as [`LoadPlans`] returns it: the next load compares with it.
    /// Without one, the next load reads the plans again.
    ///
    /// # Errors
    ///
    /// Those of [`replace_plans`](Self::replace_plans), except [`PlansError::Document`].
    ///
    /// # Example
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate::plan::UnsetShare;
    /// use tidegate::{Limiter, plans_from_text};
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, file: plans.yaml }]
    /// policies:
    ///   - name: api
    ///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
    /// ")?;
    /// let source = limiter.plans().remove(0);
    /// assert_eq!((source.name.as_str(), source.subjects), ("shop", 0));
    ///
    /// let document = plans_from_text("subjects: { ann: 100/h, bob: 5/h }", false)?;
    /// let table = Arc::new(document.table(UnsetShare::default())?);
    /// limiter.validate_plans("shop", &table)?;
    /// limiter.use_plans("shop", table, Some("2026-11".to_owned()))?;
    /// assert_eq!(limiter.plans()[0].subjects, 2);
    /// assert_eq!(limiter.plans_tag("shop").as_deref(), Some("2026-11"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn use_plans(
        &self,
        name: &str,
        table: Arc<PlanTable>,
        tag: Option<String>,
    ) -> Result<(), PlansError> {
        self.plan_updates().use_table(name, table, tag)
    }

    /// Returns the tag of the current plans of the source `name`: the one that a [loader](LoadPlans) or
    /// [`use_plans`](Self::use_plans) gave them. `None` if there is no such source, or its plans have no tag.
    pub fn plans_tag(&self, name: &str) -> Option<String> {
        self.plan_updates().tag(name)
    }

    /// Checks if `table` is valid for the source `name`; changes nothing. Takes as long as
    /// [`use_plans`](Self::use_plans). Use it before storing plans somewhere.
    ///
    /// # Errors
    ///
    /// Those of [`use_plans`](Self::use_plans).
    ///
    /// # Example
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate::plan::UnsetShare;
    /// use tidegate::{Limiter, plans_from_text};
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, file: plans.yaml }]
    /// policies:
    ///   - name: api
    ///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
    /// ")?;
    /// let table = Arc::new(plans_from_text("subjects: { ann: 100/h }", false)?.table(UnsetShare::default())?);
    /// assert!(limiter.validate_plans("shop", &table).is_ok());
    /// assert!(limiter.validate_plans("store", &table).is_err(), "there is no such source");
    /// assert_eq!(limiter.plans()[0].subjects, 0, "nothing has changed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn validate_plans(&self, name: &str, table: &Arc<PlanTable>) -> Result<(), PlansError> {
        self.plan_updates().could_use(name, table)
    }

    /// Loads the plans of all sources once, concurrently. Returns the errors, with the names of their
    /// sources. A source with an error keeps its last good plans; before its first load, it knows no subject.
    ///
    /// Call it before serving requests, and drive [`keep_plans`](Self::keep_plans) from then on.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{FilePlans, Limiter};
    ///
    /// let limiter = Limiter::from_file("tidegate.yaml")?;
    /// for (source, error) in limiter.load_plans(&FilePlans).await {
    ///     eprintln!("plans `{source}`: {error}");
    /// }
    /// tokio::spawn(limiter.keep_plans(FilePlans));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn load_plans(&self, loader: &impl LoadPlans) -> Vec<(String, PlansError)> {
        self.plan_updates().load_all(loader).await
    }

    /// Loads the plans of all sources, and loads them again after every `refresh`, for as long as the limiter
    /// exists. Follows reloads. The caller must drive the future once for all clones, usually as a separate
    /// task. `tidegate serve` does so automatically.
    ///
    /// Requests never wait for it: they are decided by the last plans that could be loaded. The first failure
    /// is logged. An invalid document is loaded again after `refresh`, and a file after two seconds at most.
    /// A source that cannot be reached is retried after a second, then after twice as long each time, but
    /// after `refresh` at the latest. See [`plans`](Self::plans).
    ///
    /// Requires a `tokio` runtime with timers.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{FilePlans, Limiter};
    ///
    /// let limiter = Limiter::from_file("tidegate.yaml")?;
    /// tokio::spawn(limiter.keep_plans(FilePlans));
    /// for plan in limiter.plans() {
    ///     if let Some(time) = plan.failing_for {
    ///         eprintln!("plans `{}` have failed to load for {time:?}", plan.name);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_plans<L: LoadPlans>(
        &self,
        loader: L,
    ) -> impl Future<Output = ()> + Send + use<S, L> {
        let state = Arc::downgrade(&self.state);
        let reloads = self.state.reloads.subscribe();
        refresh::keep(state, reloads, PlanRefresh(loader))
    }

    /// Returns the state of the plan sources, in the order of the configuration: how many subjects each
    /// knows, how old its plans are, and why the last load failed.
    pub fn plans(&self) -> Vec<PlanState> {
        let rules = self.state.present();
        let sources = &self.state.plan_sources;
        sources.states(&rules.plans, &rules.planned)
    }

    pub(super) fn plan_updates(&self) -> PlanUpdates<'_> {
        PlanUpdates {
            rules: &self.state.rules,
            sources: &self.state.plan_sources,
        }
    }
}

// === Counts by address ===

impl<S: Store> Limiter<S> {
    /// Sends the counts by address, closes periods when they end, and bans addresses over the threshold, for
    /// as long as the limiter exists. Follows reloads. Calls `tell` for every ban that this instance makes.
    /// The caller must drive the future once for all clones, usually as a separate task. `tidegate serve`
    /// does so automatically.
    ///
    /// Requests never wait for it. A failed send is retried after a second, then after twice as long each
    /// time, up to 30 seconds; meanwhile counts are buffered, up to a bound. If one map cannot be written,
    /// because its key holds another type, the other map is not affected.
    ///
    /// Bans end through the lists that contain them: see [`keep_lists`](Self::keep_lists).
    ///
    /// Requires a `tokio` runtime with timers.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let limiter = tidegate::Limiter::builder().file("tidegate.yaml")?.start().await?;
    /// tokio::spawn(limiter.keep_counts(|ban| {
    ///     println!("{} sent {} requests and is banned for {:?}", ban.address, ban.count, ban.length);
    /// }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_counts<F>(&self, tell: F) -> impl Future<Output = ()> + Send + use<S, F>
    where
        F: Fn(AddressBan) + Send + Sync + 'static,
    {
        let state = Arc::downgrade(&self.state);
        upkeep::keep_counts(state, self.state.reloads.subscribe(), Box::new(tell))
    }

    /// Sends the counts that have not been sent yet, for shutdown. Counts that cannot be sent are lost, which
    /// is logged.
    pub async fn send_counts(&self) {
        upkeep::send_counts(&self.state).await;
    }

    /// Returns the totals of counting by address since the start of this process, or `None` if addresses are
    /// not counted.
    pub fn counting(&self) -> Option<CountingStatus> {
        let status = self.state.present().counting.as_ref()?.status();
        Some(CountingStatus {
            lifted: self.state.list_sources.lifted(),
            ..status
        })
    }
}

// === Snapshots ===

impl<S: Store + 'static> Limiter<S> {
    /// Writes the snapshot of the store at once and then at its interval,
    /// for as long as the limiter exists. Returns at once if there is none. The caller must drive the future
    /// once for all clones, usually as a separate task. `tidegate serve` does so automatically.
    ///
    /// Requests never wait for it. A write that fails leaves the last snapshot as it was; the first failure
    /// is logged. If nothing has changed, nothing is written.
    ///
    /// Requires a `tokio` runtime with timers.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let limiter = tidegate::Limiter::builder().file("tidegate.yaml")?.start().await?;
    /// tokio::spawn(limiter.keep_snapshots());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_snapshots(&self) -> impl Future<Output = ()> + Send + use<S> {
        let state = Arc::downgrade(&self.state);
        upkeep::keep_snapshots(state, self.state.reloads.subscribe())
    }

    /// Writes the snapshot of the store now, on a thread that may block.
    /// Call it when no more requests arrive, so that a clean stop loses nothing. Dropping the last clone
    /// does the same, and blocks. Returns false if there is none.
    ///
    /// # Errors
    ///
    /// Those of the file system. The last snapshot is then as it was.
    pub async fn write_snapshot(&self) -> std::io::Result<bool> {
        let written = upkeep::write_snapshot(&self.state).await?;
        Ok(written.is_some())
    }
}

impl<S: Store> Limiter<S> {
    /// Returns the state of the snapshot; `None` if there is none.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/s")).build()?;
    /// assert!(limiter.snapshot().is_none());
    /// # Ok::<(), tidegate::BuildError>(())
    /// ```
    pub fn snapshot(&self) -> Option<SnapshotStatus> {
        Some(self.state.snapshot.as_ref()?.status())
    }
}
