//! The rules of a limiter: the policies of one version of a configuration.

use crate::addresses::AddressCounter;
use crate::error::{BuildError, CheckError};
use crate::lists::GuardLists;
use crate::permits::{PermitCounts, PermitRelay};
use crate::plans::{CurrentPlans, PreparedPlans};
use crate::request_limits::RequestLimits;
use crate::units::check_costs;
use crate::unknown_clients::UnknownClients;
use crate::wait_room::Rooms;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
#[cfg(feature = "config")]
use tidegate_config::Config;
#[cfg(feature = "config")]
use tidegate_config::source::PolicySource;
use tidegate_core::{Atomicity, LimitMode, Store, StoreError};
use tidegate_policy::addresses::AddressLimits;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::plan::PlanTable;
use tidegate_policy::plan_source::PlanSource;
use tidegate_policy::store::{LocalShare, StoreSettings};
use tidegate_policy::{
    Client, Guards, KeyPart, Limit, MissingIdentity, OnFailure, Policy, Request, SlotTag,
};

/// The rules of a limiter: the policies of one version of a configuration, and how clients are identified.
/// Immutable; a reload replaces them as a whole.
///
/// For frontends, which have to identify the client before they call the limiter.
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("per-client").key(KeyPart::Ip).band("10/s"))
///     .build()?;
/// let rules = limiter.rules()?;
/// assert!(rules.client().trusts("127.0.0.1".parse()?));
/// assert!(rules.policy(Some("default")).is_some());
/// assert!(rules.policy(Some("other")).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rules {
    /// In the order of the configuration; [`push`](Self::push) adds one more.
    pub(crate) policies: Vec<Policy>,
    /// Indexes of policies: frontends look them up several times per request.
    by_name: Numbers,
    by_domain: Numbers,
    /// Guards that refuse clients, or exempt them from all limits.
    pub(crate) guards: Guards,
    /// The lists of the guards, and other state that changes without a reload. Empty until a limiter uses
    /// these rules.
    pub(crate) lists: GuardLists,
    /// The settings for counting addresses.
    pub(crate) addresses: Option<AddressLimits>,
    /// The address counter; `None` until a limiter uses these rules.
    pub(crate) counting: Option<Arc<AddressCounter>>,
    pub(crate) client: Client,
    pub(crate) keys: KeyRules,
    /// `Shadow` if everything is in shadow mode; see [`Config::mode`].
    pub(crate) mode: LimitMode,
    /// True if callers are notified of identities that have no source; see [`notice`](Self::notice).
    has_notices: bool,
    /// The `on_failure` of limits without their own.
    pub(crate) on_failure: OnFailure,
    /// The share of a policy that this instance grants without the store.
    pub(crate) local_share: LocalShare,
    /// The id of the limiter that uses these rules; 0 until there is one.
    pub(crate) owner: u64,
    /// The place where permits are released; none until a limiter uses these rules.
    pub(crate) permits: PermitRelay,
    /// The decisions made by this machine's clock; none until a limiter uses these rules.
    pub(crate) machine_clock: MachineClock,
    /// The rooms in which requests wait; empty until a limiter uses these rules.
    pub(crate) rooms: Rooms,
    /// The permits that decisions hold; empty until a limiter uses these rules.
    pub(crate) in_flight: PermitCounts,
    /// The plan sources, for limits whose rate comes from a plan.
    pub(crate) plans: Vec<PlanSource>,
    /// Their current plans. They change independently of the rest, and a decision keeps the version it
    /// started with.
    pub(crate) planned: CurrentPlans,
    /// Requests without the address that limits need.
    pub(crate) unknown_clients: Arc<UnknownClients>,
}

/// The decisions that are made by the clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineClock {
    /// Decisions of the store.
    pub(crate) store: bool,
    /// Decisions without the store.
    pub(crate) local: bool,
}

/// Indexes of policies by name. Of two with the same name, the first wins.
type Numbers = HashMap<Box<str>, usize, RandomState>;

impl Rules {
    /// Returns rules without any policy, for a store with these settings.
    pub(crate) fn empty(store: &StoreSettings) -> Self {
        let client = Client::default();
        Self {
            policies: Vec::new(),
            by_name: Numbers::default(),
            by_domain: Numbers::default(),
            guards: Guards::default(),
            lists: GuardLists::default(),
            addresses: None,
            counting: None,
            keys: KeyRules {
                address: client.address_rules(),
                secret: store.hash_key(),
                literal: false,
            },
            client,
            mode: LimitMode::Enforce,
            has_notices: false,
            on_failure: store.on_failure,
            local_share: store.local_share,
            owner: 0,
            permits: PermitRelay::default(),
            machine_clock: MachineClock::default(),
            rooms: Rooms::default(),
            in_flight: PermitCounts::default(),
            plans: Vec::new(),
            planned: CurrentPlans::default(),
            unknown_clients: Arc::default(),
        }
    }

    /// Adds a policy after all others.
    pub(crate) fn push(&mut self, mut policy: Policy) {
        policy.guarded_by(&self.guards);
        if self.addresses.is_some() {
            policy.count_addresses();
        }
        if self.is_shadow() {
            policy.put_in_shadow();
        }
        let number = self.policies.len();
        let name = policy.name.as_str().into();
        self.by_name.entry(name).or_insert(number);
        // Joined policies are internal to the routes that join them; requests do not name them.
        if !policy.is_joined() {
            let domain = policy.domain().into();
            self.by_domain.entry(domain).or_insert(number);
        }
        self.policies.push(policy);
    }

    /// Returns true if everything is in shadow mode (`mode: shadow` at the top of the configuration): decided
    /// and counted, but nothing refuses.
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// mode: shadow
    /// policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]
    /// ")?;
    /// assert!(limiter.rules()?.is_shadow());
    /// assert!(limiter.check_now(&Request::new().cost(2))?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn is_shadow(&self) -> bool {
        self.mode == LimitMode::Shadow
    }

    /// Returns the guards, which are evaluated before any limit, in the order of the configuration. The first
    /// that decides wins.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Returns true if requests are counted by address.
    pub fn counts_addresses(&self) -> bool {
        self.counting.is_some()
    }

    /// Returns how clients are identified: which proxies are trusted, and where the user, the API key and the
    /// attributes of a request come from.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns a notice for the caller of a request without an identity that a limit counts by, if `client`
    /// has no source for it either: the limit counts the address in its place. Only with rules of `FluxGate`,
    /// whose callers expect a header to be read.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only a user and an attribute can be absent"
    )]
    pub fn notice(&self, request: &Request<'_>) -> Option<String> {
        if !self.has_notices {
            return None;
        }
        let (_, policy) = self.find(request).ok()?;
        let counted = |limit: &&Limit| limit.enabled && limit.missing == MissingIdentity::Address;
        policy.limits.iter().filter(counted).find_map(|limit| {
            let absent = |part: &&KeyPart| is_absent(part, request) && !self.client.knows(part);
            let (what, field, setting) = match limit.key.iter().find(absent)? {
                KeyPart::Attr(name) => (
                    format!("the attribute `{name}`"),
                    format!("attributes.{name}"),
                    format!("client.attributes.{name}"),
                ),
                _ => (
                    "user".to_owned(),
                    "user".to_owned(),
                    "client.user".to_owned(),
                ),
            };
            Some(format!(
                "limit `{}` counts by {what}, which is missing: the request has none, and \
                 `{setting}` is not configured; the client address is used instead. Send \
                 `{field}`, or configure `{setting}`",
                limit.name
            ))
        })
    }

    /// Returns the policies of the configuration and of limits in code, in order. Policies that routes join
    /// from several others are internal, and left out.
    pub fn written(&self) -> impl Iterator<Item = &Policy> {
        self.policies.iter().filter(|policy| !policy.is_joined())
    }

    /// Returns the policy of this name, or the first if `name` is `None`. Returns `None` if there is no
    /// policy of this name. A request that names it gets [`CheckError::UnknownPolicy`].
    pub fn policy(&self, name: Option<&str>) -> Option<&Policy> {
        self.meant(name).map(|(_, policy)| policy)
    }

    /// Checks if `request` can be decided: the policy that it names exists, the policy counts the units of
    /// its cost, and the limits that it carries are valid.
    /// Calls no store, and charges nothing. A batch of requests is validated with it before the first is
    /// charged.
    ///
    /// # Errors
    ///
    /// The error that [`Limiter::attempt`](crate::Limiter::attempt) would return for one of these reasons.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("5/h")).build()?;
    /// let rules = limiter.rules()?;
    /// assert!(rules.accepts(&Request::new()).is_ok());
    ///
    /// let error = rules.accepts(&Request::new().policy("shop")).unwrap_err();
    /// assert!(error.is_bad_request());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        let (_, policy) = self.find(request)?;
        check_costs(policy, request)?;
        RequestLimits::of(policy, request.descriptors).map(drop)
    }

    /// Returns the policy for a domain of Envoy's rate limit service: the one with this `domain`, or, without
    /// a `domain`, this name.
    ///
    /// ```
    /// use tidegate::Limiter;
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - { name: edge, domain: default/eg/http, limits: [{ name: all, rate: 10/s }] }
    ///   - { name: api, limits: [{ name: all, rate: 10/s }] }
    /// ")?;
    /// let rules = limiter.rules()?;
    /// let named = |domain| rules.policy_of_domain(domain).map(|policy| policy.name.as_str());
    /// assert_eq!(named("default/eg/http"), Some("edge"));
    /// assert_eq!((named("api"), named("edge")), (Some("api"), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy_of_domain(&self, domain: &str) -> Option<&Policy> {
        self.policies.get(*self.by_domain.get(domain)?)
    }

    #[inline]
    fn meant(&self, name: Option<&str>) -> Option<(usize, &Policy)> {
        let first = self.policies.first()?;
        match name {
            // Most often there is no other.
            Some(name) if first.name != name => {
                let number = *self.by_name.get(name)?;
                Some((number, self.policies.get(number)?))
            }
            _ => Some((0, first)),
        }
    }

    /// Returns the current table of the plan source of this name. Returns `None` if there is no such source,
    /// or it has not delivered anything yet.
    ///
    /// ```
    /// use tidegate::Limiter;
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, inline: { subjects: { ann: 100/h, bob: 5/h } } }]
    /// policies:
    ///   - name: api
    ///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
    /// ")?;
    /// let table = limiter.rules()?.plan_table("shop").expect("inline plans are loaded at once");
    /// assert_eq!(table.subjects(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plan_table(&self, name: &str) -> Option<Arc<PlanTable>> {
        let number = self.plans.iter().position(|source| source.name == name)?;
        self.planned.load().tables().get(number)?.clone()
    }

    /// Activates the plans that the configuration itself contains. Call it after [`prepare`](Self::prepare),
    /// which changes how limits count.
    pub(crate) fn plan_inline(self) -> Result<Self, BuildError> {
        let planned = self.plans_from(&self);
        let planned = planned.map_err(|reason| BuildError::Plans { reason })?;
        self.planned.replace(planned);
        Ok(self)
    }

    /// Returns the plans for these rules, from the tables of `last` for sources of the same names.
    ///
    /// # Errors
    ///
    /// Names a rate that is invalid under these rules.
    pub(crate) fn plans_from(&self, last: &Self) -> Result<PreparedPlans, String> {
        let planned = last.planned.load();
        let table = |source: &PlanSource| {
            // Inline plans belong to the configuration, and change with it.
            if let Some(inline) = source.inline() {
                return Some(Arc::clone(inline));
            }
            let same = |it: &PlanSource| it.name == source.name;
            let number = last.plans.iter().position(same)?;
            planned.tables().get(number)?.clone()
        };
        let tables = self.plans.iter().map(table).collect();
        PreparedPlans::build(&self.policies, tables)
    }

    /// Prepares for `store`. If the store may need several steps for a request, charges to buckets in
    /// different steps are made refundable.
    ///
    /// # Errors
    ///
    /// The store cannot hold the permits of a limit.
    pub(crate) fn prepare(&mut self, store: &impl Store) -> Result<(), BuildError> {
        self.check_permits(store)?;
        let tag = match store.atomicity() {
            Atomicity::WholeRequest => return Ok(()),
            Atomicity::PerSubject => SlotTag::Subject,
            Atomicity::PerPolicy => SlotTag::Policy,
        };
        // By origin: a joined policy may span groups although each of the joined policies does not, and all
        // users of a bucket must count in it the same way.
        let apart = self.policies.iter().filter(|it| it.spans_groups(tag));
        let origins = apart.flat_map(|it| (0..it.limits.len()).map(|limit| it.origin(limit)));
        let origins: BTreeSet<String> = origins.map(str::to_owned).collect();
        for policy in &mut self.policies {
            for limit in 0..policy.limits.len() {
                if origins.contains(policy.origin(limit)) {
                    keep_credits(policy.limits.get_mut(limit));
                }
            }
        }
        Ok(())
    }

    /// Checks that the store can hold the permits of all limits.
    pub(crate) fn check_permits(&self, store: &impl Store) -> Result<(), BuildError> {
        let mut limits = self.policies.iter().flat_map(|policy| &policy.limits);
        let concurrent = limits.find(|limit| limit.algorithm.is_concurrent());
        match concurrent.filter(|_| !store.holds_permits()) {
            None => Ok(()),
            Some(limit) => Err(BuildError::Limit {
                name: limit.name.clone(),
                reason: StoreError::no_permits().to_string(),
            }),
        }
    }

    /// Returns the policy of a request: the one it names, otherwise the first.
    pub(crate) fn find(&self, request: &Request<'_>) -> Result<(usize, &Policy), CheckError> {
        self.meant(request.policy).ok_or_else(|| {
            CheckError::unknown_policy(request.policy.unwrap_or_default(), &self.policies)
        })
    }

    pub(crate) fn limit(&self, policy: usize, limit: usize) -> Option<&Limit> {
        self.policies.get(policy)?.limit(limit)
    }

    /// Returns the `on_failure` of `limit`.
    pub(crate) fn on_failure(&self, limit: Option<&Limit>) -> OnFailure {
        let own = limit.and_then(|limit| limit.on_failure);
        own.unwrap_or(self.on_failure)
    }

    /// Returns true if anything can be allowed without the store: false if every limit then refuses or is an
    /// error.
    pub(crate) fn can_pass_without_store(&self) -> bool {
        let limits = self.policies.iter().flat_map(|policy| &policy.limits);
        let mut enforced = limits
            .filter(|limit| limit.enabled && limit.mode == LimitMode::Enforce)
            .map(|limit| self.on_failure(Some(limit)))
            .peekable();
        let goes_on = |it: OnFailure| matches!(it, OnFailure::Local | OnFailure::Allow);
        enforced.peek().is_none() || enforced.any(goes_on)
    }
}

/// Returns true if a request lacks a user or an attribute.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other parts of a key are never absent"
)]
fn is_absent(part: &KeyPart, request: &Request<'_>) -> bool {
    match part {
        KeyPart::User => request.user.is_none_or(str::is_empty),
        KeyPart::Attr(name) => request.attributes.iter().all(|(known, _)| known != name),
        _ => false,
    }
}

/// Lets the store refund its charges. Callers can refund no more than before.
fn keep_credits(limit: Option<&mut Limit>) {
    if let Some(limit) = limit {
        limit.keep_credits();
    }
}

#[cfg(feature = "config")]
impl From<Config> for Rules {
    fn from(config: Config) -> Self {
        let mut rules = Self {
            mode: config.mode,
            keys: config.key_rules(),
            has_notices: config.sources.iter().any(PolicySource::is_fluxgate),
            client: config.client,
            plans: config.plans,
            guards: config.guards,
            addresses: config.addresses,
            ..Self::empty(&config.store)
        };
        config
            .policies
            .into_iter()
            .for_each(|policy| rules.push(policy));
        rules
    }
}
