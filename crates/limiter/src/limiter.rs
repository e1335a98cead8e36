//! The limiter: policies and a store.

use crate::any::AnyStore;
use crate::build::{Builder, Told};
use crate::decision::Decision;
use crate::error::{BuildError, CheckError};
use crate::failure::{Failover, StoreHealth};
use crate::giving::{Charges, Giving};
use crate::naming::Naming;
use crate::question::{Prepared, Question};
use crate::rules::Rules;
use crate::waiting::{self, Lines, Rooms, WaitingAt};
use arc_swap::ArcSwap;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tidegate_core::{Clock, Store, StoreError};
use tidegate_memory::MemoryStore;
use tidegate_policy::matching::Scratch;
use tidegate_policy::{Config, Request};

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
    shared: Arc<Shared<S>>,
}

#[derive(Debug)]
pub(crate) struct Shared<S> {
    /// Replaced whole by a reload; a decision keeps the version that it began with.
    rules: ArcSwap<Rules>,
    /// What every reload lays over the new configuration.
    told: Told,
    store: S,
    /// Only for a store that can fail.
    failover: Option<Box<Failover>>,
    /// Only for a store that names buckets by their policies.
    naming: Option<Naming>,
    /// Whether a decision may have to wait for the store.
    waits: bool,
    closed: AtomicBool,
    /// The number of this limiter, by which it knows its rules.
    owner: u64,
    giving: Giving,
    lines: Lines,
}

/// Numbers of limiters, each of this process once.
static OWNERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    // Buffers that stay warm, so that a decision allocates nothing.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Limiter {
    /// Begins a limiter in code.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A limiter from a configuration in YAML or JSON that stands for itself: nothing that it names
    /// is looked up, neither variables nor files. [`Builder::environment`] is for those.
    pub fn from_yaml(text: &str) -> Result<Self, BuildError> {
        Builder::new().yaml(text)?.build()
    }

    /// A limiter from a configuration file. Variables and files that it names are looked up, and
    /// variables override it, as the program `tidegate` does it: see [`ProcessEnvironment`].
    ///
    /// Its buckets are in this process. A configuration that names Redis is refused; then
    /// [`Builder::start`] and [`Builder::connect`] are what it takes.
    ///
    /// [`ProcessEnvironment`]: crate::ProcessEnvironment
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        Builder::new().file(path)?.build()
    }
}

impl<S: Store> Limiter<S> {
    pub(crate) fn new(
        told: Told,
        mut rules: Rules,
        store: S,
        failover: Option<Failover>,
        naming: Option<Naming>,
    ) -> Self {
        let owner = OWNERS.fetch_add(1, Relaxed);
        rules.owner = owner;
        rules.rooms = Rooms::of(&rules.policies, None);
        Self {
            shared: Arc::new(Shared {
                rules: ArcSwap::from_pointee(rules),
                told,
                waits: failover.is_some() || store.decide_at_once(&[]).is_none(),
                store,
                failover: failover.map(Box::new),
                naming,
                closed: AtomicBool::new(false),
                owner,
                giving: Giving::default(),
                lines: Lines::default(),
            }),
        }
    }

    /// Decides a request.
    ///
    /// A limit with `on_refusal: wait` may hold it back until it fits, for a bounded time and in order
    /// of arrival; see [`Decision::waited`]. That takes a runtime of `tokio` with its timers; without
    /// one, nobody waits. Dropping the future leaves the place to those behind it, who move up, and
    /// gives back all that was charged with it. In a store that others share, those behind it are those
    /// of this limiter and its clones, and the last place of these lapses.
    ///
    /// Where the store cannot tell, the limits that the request meets do as their `on_failure` says,
    /// and [`Decision::decided_by`] tells. It is an error only if one of them asks for that.
    pub async fn check(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.check_by(&self.rules()?, request).await
    }

    /// Decides a request by `rules`: for a door that has found out who asks by them, so that a reload
    /// in between cannot have it decided by others.
    ///
    /// They must be this limiter's, from [`rules`](Self::rules); those before a reload will do. By
    /// another's, requests would be counted in buckets of this store as the policies of that one say;
    /// a debug build panics.
    pub async fn check_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        match self.check_at_once(rules, request) {
            Some(decided) => decided,
            // Put aside: it is large, and would be part of every decision that does not wait.
            None => Box::pin(self.check_waiting(rules, request)).await,
        }
    }

    /// Decides a request by `rules`, as [`check_by`](Self::check_by) does and under the same
    /// condition, if that takes no waiting: neither for the store, nor for a limit that the request
    /// meets. `None` means that nothing was done; then `check_by` is what is left.
    #[inline]
    pub fn check_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Option<Result<Decision, CheckError>> {
        debug_assert_eq!(
            rules.owner, self.shared.owner,
            "these rules are another limiter's"
        );
        self.decide_here(rules, request, true)
    }

    /// Decides a request if the store does that without waiting; where it `may_wait` for a limit it
    /// meets, nothing is done.
    #[inline]
    fn decide_here(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        may_wait: bool,
    ) -> Option<Result<Decision, CheckError>> {
        if self.shared.waits {
            return None;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let prepared = Question::prepare(rules, request, scratch);
            // Looked at where it is: it is large, and moving it would be a good part of a decision.
            if let Ok(Prepared::Ask(question)) = &prepared {
                if question.may_wait && may_wait {
                    return None;
                }
                // Among those who wait, charges are made in the order of their instants.
                let _in_order = question.may_wait.then(|| self.giving().credits.hold());
                let reply = self.shared.store.decide_at_once(&question.asks);
                return reply.as_ref().map(|reply| Ok(question.answer(reply)));
            }
            match prepared {
                Ok(Prepared::Decided(decision)) => Some(Ok(decision)),
                Ok(Prepared::Ask(_)) => None,
                Err(error) => Some(Err(error)),
            }
        })
    }

    /// Whether a decision may have to wait for the store. If not, and if the policy does not
    /// [make requests wait](Rules::may_wait), [`check`](Self::check) is ready when it is first polled,
    /// and [`check_at_once`](Self::check_at_once) always decides.
    #[inline]
    pub fn waits(&self) -> bool {
        self.shared.waits
    }

    /// Whether any decision may have to wait at present: for the store, or for a limit.
    #[inline]
    pub fn may_wait(&self) -> bool {
        self.shared.waits || self.shared.rules.load().rooms.are_any()
    }

    async fn check_waiting(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        let mut scratch = Scratch::default();
        match Question::prepare(rules, request, &mut scratch)? {
            Prepared::Ask(question) if question.may_wait => waiting::decide(self, &question).await,
            Prepared::Ask(question) => self.ask(&question).await,
            Prepared::Decided(decision) => Ok(decision),
        }
    }

    /// Asks the store, as somebody who does not wait for limits.
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<Decision, CheckError> {
        let Shared {
            store, failover, ..
        } = &*self.shared;
        match (store.decide(&question.asks).await, failover) {
            (Ok(reply), failover) => {
                if let Some(failover) = failover {
                    failover.note(&question.asks, &reply);
                }
                Ok(question.answer(&reply))
            }
            (Err(error), Some(failover)) => {
                let answers = error.answers().to_vec();
                failover.decide(question, error, &answers)
            }
            (Err(error), None) => Err(CheckError::Store(error)),
        }
    }

    /// Whether `request` can be decided as it is: the policy that it names is there, and the limiter
    /// is not closed. Asks no store.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        self.rules()?.find(request).map(drop)
    }

    /// How the store is; `None` for one that cannot fail.
    pub fn store_health(&self) -> Option<StoreHealth> {
        let failover = self.shared.failover.as_deref()?;
        Some(failover.health())
    }

    /// Tells what was learnt of the store elsewhere: that it answers, or why it does not.
    pub fn note_store(&self, heard: Result<(), &StoreError>) {
        if let Some(failover) = &self.shared.failover {
            match heard {
                Ok(()) => failover.succeeded(),
                Err(error) => failover.failed(error),
            }
        }
    }

    /// Asks the store for something harmless, so that it is known how it is even if nobody else
    /// asks. Nothing is changed, in the store or in any bucket of this process.
    pub async fn probe_store(&self) -> Option<StoreHealth> {
        let failover = self.shared.failover.as_deref()?;
        let rules = self.shared.rules.load_full();
        let named = rules.policies.iter().find_map(|policy| {
            let limit = policy.limits.first()?;
            Some((policy, limit, limit.bands.first()?))
        });
        if let Some((policy, limit, band)) = named {
            let bucket = format!("{}/{}/probe", policy.name, limit.name);
            let asked = self.shared.store.inspect(bucket.as_bytes(), &band.quota);
            self.note_store(asked.await.as_ref().map(drop));
        }
        Some(failover.health())
    }

    /// Whether any limit lets requests pass while the store is away, at a share or all of them.
    pub fn goes_on_without_store(&self) -> bool {
        self.shared.rules.load().goes_on_without_store()
    }

    /// Replaces the configuration by `config`, at once. Decisions under way keep the version that
    /// they began with. Buckets whose limit and band keep their names keep their state.
    ///
    /// What the builder was told in code goes before `config`, as it did when this was built:
    /// [`client`](Builder::client), [`on_failure`](Builder::on_failure),
    /// [`local_share`](Builder::local_share), and all of [`store`](Builder::store). Limits in code
    /// stay, as the policy `default` after those of `config`. Should `config` have one of this name,
    /// it is an error, and what runs goes on.
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
        rules.rooms = Rooms::of(&rules.policies, Some(&self.shared.rules.load()));
        rules.prepare(&self.shared.store);
        if let Some(naming) = &self.shared.naming {
            naming.follow(&rules.policies);
        }
        self.shared.rules.store(Arc::new(rules));
        Ok(())
    }

    /// [Reloads](Self::reload) a file. What it names is looked up where
    /// [`Builder::environment`] says, else in this process, as [`from_file`](Limiter::from_file)
    /// does it. Where it cannot be read or is refused, what runs goes on.
    pub fn reload_file(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        self.reload(self.shared.told.config(path.as_ref())?)
    }

    /// Gives back what `decision` charged, as far as that is safe: because what it allowed did not
    /// happen after all. Tells whether there was anything to give back; each decision, clones
    /// included, is given back at most once, even if this fails.
    ///
    /// Only limits that are `refundable` are given back, and all of a policy in which requests wait.
    /// Those who wait behind it in the same bucket move up. A store that others share is given nothing
    /// back of token buckets that requests wait for: those who wait elsewhere could not move up, and
    /// would pass together with whoever gets what has come free.
    ///
    /// Nothing is given back of a decision that another limiter made, or that was made without the
    /// store.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("jobs").band("1/h").refundable())
    ///     .build()?;
    /// let decision = limiter.check(&Request::new()).await?;
    /// // The job could not be started.
    /// assert!(limiter.give_back(&decision).await?);
    /// assert!(!limiter.give_back(&decision).await?);
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn give_back(&self, decision: &Decision) -> Result<bool, CheckError> {
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => {
                let given = self.return_charges(charges).await;
                given.map(|()| true).map_err(CheckError::Store)
            }
            _ => Ok(false),
        }
    }

    /// The same without waiting, if the store does that; `None`, from any other, means that nothing
    /// was done.
    pub fn give_back_at_once(&self, decision: &Decision) -> Option<bool> {
        if self.shared.waits {
            return None;
        }
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => self.return_at_once(charges).map(|()| true),
            _ => Some(false),
        }
    }

    fn to_give_back<'a>(&self, decision: &'a Decision) -> Option<&'a Arc<Charges>> {
        let charges = decision.charges()?;
        let is_ours = decision.owner() == self.shared.owner;
        debug_assert!(is_ours, "this decision is another limiter's");
        (is_ours && self.is_returnable(charges)).then_some(charges)
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

    /// Lets no further request be decided, here or through any clone.
    ///
    /// A store in this process has nothing to write back; dropping the last clone frees it.
    pub fn close(&self) {
        self.shared.closed.store(true, Relaxed);
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

impl<S> Limiter<S> {
    pub(crate) fn downgrade(&self) -> Weak<Shared<S>> {
        Arc::downgrade(&self.shared)
    }

    pub(crate) fn of_shared(shared: Arc<Shared<S>>) -> Self {
        Self { shared }
    }

    pub(crate) fn giving(&self) -> &Giving {
        &self.shared.giving
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.shared.lines
    }

    pub(crate) fn failover(&self) -> Option<&Failover> {
        self.shared.failover.as_deref()
    }
}

impl<C: Clock> Limiter<AnyStore<C>> {
    /// Tells the instances that share the store that this one goes, so that they do not count it any
    /// longer. For the end of a program: whoever just dies is missed after a quarter of a minute.
    ///
    /// It may wait for the store; who has no time drops it.
    pub async fn leave(&self) {
        self.shared.store.leave().await;
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// Decides a request at once, for callers that are not asynchronous. The same as
    /// [`check`](Self::check), which with a store in this process does not wait for it either; but
    /// this does not wait for limits, whatever their `on_refusal` says: what does not fit now is
    /// refused. On a token bucket it cannot get before those who wait; on windows it may.
    #[expect(clippy::missing_panics_doc, reason = "this store never waits")]
    pub fn check_now(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let decided = self.decide_here(&self.rules()?, request, false);
        decided.expect("a store in this process decides at once")
    }
}
