//! A compiled policy: its limits and their common settings.
//!
//! | module | contents |
//! |---|---|
//! | this one | a policy, and the joining of several |
//! | `meet`, `search` | the limits that apply to one request |
//! | `override_limit` | limits that requests carry themselves |
//! | `header_names` | the names of bands in header fields |
//! | `client` | the identity of a client, as far as a policy reads it |
//! | `guards`, `plan` | what a policy prepares for guards and plans |

mod client;
mod guards;
mod header_names;
mod meet;
mod override_limit;
mod plan;
mod search;

pub use meet::{MetLimit, MetLimits, Scratch, UnmetLimit};

use crate::band::Band;
use crate::limit::{ChargeTime, Limit};
use crate::matching::Matcher;
use crate::respond::{HeaderNames, Respond};
use crate::unit::{Cost, CostFault, Unit};
use header_names::speak;
use std::iter;
use std::time::Duration;

/// A named list of limits.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is an independent property of the limits"
)]
pub struct Policy {
    /// The name; for a joined policy, all names, `a+b`; for the shadow of one, `a (shadow)`.
    pub name: String,
    /// The way in which its limits combine.
    pub evaluate: Evaluate,
    /// The limits, in the order written, disabled ones included.
    pub limits: Vec<Limit>,
    /// The domain in Envoy's rate limit service, if it differs from the name.
    domain: Option<String>,
    /// True if requests may come with descriptors.
    described: bool,
    /// The rules for reservations; absent where the policy accepts none.
    reserving: Option<ReserveRules>,
    /// The limit for descriptors that carry their own: they supply its bands.
    pub(crate) hidden: Limit,
    /// The form of responses to clients.
    pub(crate) respond: Respond,
    /// The names of the bands in header fields, by limit.
    spoken: Vec<Box<[HeaderNames]>>,
    /// The policies that were joined into this one, each with the number of its limits; empty unless it was
    /// joined.
    origins: Vec<(String, usize)>,
    /// The units that its limits count, in the order written; never empty.
    units: Vec<Unit>,
    /// Finds the limits that apply to a request.
    pub(crate) matcher: Matcher,
    /// True if any limit queues requests.
    waits: bool,
    /// True if charges of any limit may be refunded.
    refundable: bool,
    /// True if any limit counts requests in flight.
    holds_permits: bool,
    /// True if decisions record charges: to refund them, or to release their permits.
    records: bool,
    /// True if any limit has its rate from a plan.
    planned: bool,
    /// The plan source whose subject the guards also look up, and before the limits do.
    pub(crate) foreseen: Option<usize>,
    /// True if any limit sends an alert when it is nearly used up.
    warns: bool,
    /// True if a refusal of any limit blocks.
    blocks: bool,
}

/// The way in which the limits of a policy combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluate {
    /// Every matching limit must allow. If one refuses, none counts the request.
    #[default]
    All,
    /// The first enforced limit that matches decides alone. For a request with descriptors, this holds for
    /// each of them.
    First,
    /// Every matching limit must allow, and each counts separately, regardless of the others, like Envoy's
    /// own rate limit service.
    Each,
}

/// The rules for reservations (`reserve`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveRules {
    /// The lifetime of a reservation that does not specify one.
    pub default_ttl: Duration,
    /// The longest lifetime. Longer requested lifetimes are cut to it.
    pub max_ttl: Duration,
}

// === impl ReserveRules ===

impl ReserveRules {
    /// The default of [`default_ttl`](Self::default_ttl).
    pub const DEFAULT_TTL: Duration = Duration::from_secs(60);
    /// The default of [`max_ttl`](Self::max_ttl).
    pub const MAX_TTL: Duration = Duration::from_secs(600);
    /// The smallest value of either setting.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The largest value of either setting.
    pub const LONGEST: Duration = Duration::from_secs(3_600);

    /// Creates rules with this default lifetime. The longest lifetime is [`MAX_TTL`](Self::MAX_TTL), or
    /// `default_ttl` if that is longer.
    #[must_use]
    pub fn new(default_ttl: Duration) -> Self {
        Self {
            default_ttl,
            max_ttl: default_ttl.max(Self::MAX_TTL),
        }
    }
}

impl From<Duration> for ReserveRules {
    fn from(default_ttl: Duration) -> Self {
        Self::new(default_ttl)
    }
}

// === impl Policy ===

impl Policy {
    /// Creates a policy with these limits, which responds like [`Respond::default`].
    ///
    /// If one of them queues requests, charges of all limits can be refunded: a request that waits for one
    /// limit has been charged by all others already, and its client may leave before it passes.
    pub fn new(name: String, evaluate: Evaluate, mut limits: Vec<Limit>) -> Self {
        limits.iter_mut().for_each(Limit::separate_shadow_block);
        let units = counted(&limits);
        let hidden = override_limit::hidden(&units);
        let matcher = Matcher::new(&name, &limits, &hidden);
        let respond = Respond::default();
        let is_waiting = |limit: &Limit| limit.enabled && limit.waiting.is_some();
        let mut policy = Self {
            name,
            evaluate,
            domain: None,
            described: limits.iter().any(is_described),
            reserving: None,
            hidden,
            spoken: speak(&limits, respond.names),
            respond,
            origins: Vec::new(),
            units,
            matcher,
            waits: limits.iter().any(is_waiting),
            refundable: limits.iter().any(|limit| limit.refundable),
            holds_permits: limits.iter().any(is_concurrent),
            records: limits
                .iter()
                .any(|limit| limit.refundable || is_concurrent(limit)),
            planned: limits.iter().any(|limit| limit.plan.is_some()),
            foreseen: None,
            warns: limits.iter().any(|limit| !limit.warn.is_empty()),
            blocks: limits.iter().any(|limit| limit.block.is_some()),
            limits,
        };
        if policy.waits {
            policy.make_refundable();
        }
        policy
    }

    /// Makes every charge of this policy refundable. The identity of its bands does not change; their buckets
    /// store the state that refunds need.
    pub fn make_refundable(&mut self) {
        self.refundable = true;
        self.records = true;
        for limit in &mut self.limits {
            limit.refundable = true;
            limit.keep_credits();
        }
    }

    /// Switches all its limits to shadow mode, and also the limits that requests carry.
    pub fn put_in_shadow(&mut self) {
        self.waits = false;
        self.hidden.put_in_shadow();
        self.limits.iter_mut().for_each(Limit::put_in_shadow);
    }

    /// Declares that requests are counted by address, so that frontends determine the address even if no
    /// limit reads it.
    pub fn count_addresses(&mut self) {
        self.matcher.read_address();
    }

    /// Returns the units that its limits count, in the order written.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Returns true if all its limits count the same unit.
    #[inline]
    pub fn counts_one_unit(&self) -> bool {
        self.units.len() <= 1
    }

    /// Returns the amount of a limit's unit in a cost; `None` if the request asks for none of it.
    #[inline]
    pub fn asked(&self, cost: Cost<'_>, limit: &Limit) -> Option<u64> {
        self.asked_of(cost, &limit.unit)
    }

    /// Like [`asked`](Self::asked), for a unit.
    #[inline]
    pub fn asked_of(&self, cost: Cost<'_>, unit: &Unit) -> Option<u64> {
        cost.of(unit, self.counts_one_unit() || unit.is_requests())
    }

    /// Checks that its limits count the units of a cost.
    ///
    /// # Errors
    ///
    /// [`CostFault`], which names the units that they count.
    pub fn check_cost(&self, cost: Cost<'_>) -> Result<(), CostFault> {
        cost.check(&self.units)
    }

    /// Returns true if any limit queues requests instead of refusing them.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Returns true if charges of any limit may be refunded.
    #[inline]
    pub fn refundable(&self) -> bool {
        self.refundable
    }

    /// Returns true if any limit counts requests in flight, so that a request that passes holds permits.
    #[inline]
    pub fn holds_permits(&self) -> bool {
        self.holds_permits
    }

    /// Returns true if a decision records what it charged: to refund it, or to release its permits.
    #[inline]
    pub fn records_charges(&self) -> bool {
        self.records
    }

    /// Sets the domain by which Envoy's rate limit service finds this policy.
    #[must_use]
    pub fn with_domain(self, domain: Option<String>) -> Self {
        Self {
            described: self.described || domain.is_some(),
            domain,
            ..self
        }
    }

    /// Sets when limits that requests carry charge a cost that does not fit.
    #[must_use]
    pub fn with_charge(mut self, charge: ChargeTime) -> Self {
        self.hidden.charge = charge;
        self
    }

    /// Declares that requests may come with descriptors although no limit reads them: descriptors may carry
    /// limits themselves.
    pub fn expect_descriptors(&mut self) {
        self.described = true;
    }

    /// Returns true if requests may come with descriptors.
    pub(crate) fn expects_descriptors(&self) -> bool {
        self.described
    }

    /// Returns the domain in Envoy's rate limit service: the configured one, or else the name.
    #[inline]
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or(&self.name)
    }

    /// Makes the policy accept reservations. Every charge can then be refunded.
    #[must_use]
    pub fn with_reserving(mut self, reserving: Option<ReserveRules>) -> Self {
        self.reserving = reserving;
        if reserving.is_some() {
            self.make_refundable();
            self.limits.iter_mut().for_each(Limit::lend);
        }
        self
    }

    /// Returns the rules for reservations, or `None` if it accepts none.
    #[inline]
    pub fn reserving(&self) -> Option<ReserveRules> {
        self.reserving
    }

    /// Returns the limit with this number, as in a [`MetLimit`]: one of
    /// [`limits`](Self::limits) or, after the last of them, the hidden limit for descriptors that carry their
    /// own.
    #[inline]
    pub fn limit(&self, number: usize) -> Option<&Limit> {
        match self.limits.get(number) {
            None if number == self.limits.len() => Some(&self.hidden),
            limit => limit,
        }
    }

    /// Joins these policies into one, which is decided atomically and responds like the first of them. Each
    /// limit keeps the buckets of the policy it comes from, so existing counts stay valid. Returns `None` if
    /// there are no policies.
    pub fn joined(policies: &[&Self]) -> Option<Self> {
        let [first, ..] = policies else {
            return None;
        };
        let names: Vec<&str> = policies.iter().map(|it| it.name.as_str()).collect();
        let name = names.join("+");
        let limits = joined_limits(policies);
        let scopes = policies
            .iter()
            .flat_map(|it| iter::repeat_n(it.name.as_str(), it.limits.len()));
        let units = counted(&limits);
        let hidden = override_limit::hidden(&units);
        let origin = |it: &&Self| (it.name.clone(), it.limits.len());
        Some(Self {
            evaluate: Evaluate::All,
            domain: None,
            described: policies.iter().any(|it| it.described),
            reserving: None,
            spoken: speak(&limits, first.respond.names),
            respond: first.respond.clone(),
            matcher: Matcher::of(
                scopes.zip(&limits).chain([(name.as_str(), &hidden)]),
                &limits,
            ),
            name,
            units,
            hidden,
            origins: policies.iter().map(origin).collect(),
            waits: policies.iter().any(|it| it.waits),
            refundable: policies.iter().any(|it| it.refundable),
            holds_permits: policies.iter().any(|it| it.holds_permits),
            records: policies.iter().any(|it| it.records),
            planned: policies.iter().any(|it| it.planned),
            foreseen: None,
            warns: policies.iter().any(|it| it.warns),
            blocks: policies.iter().any(|it| it.blocks),
            limits,
        })
    }

    /// The end of the name of a shadow. No written policy can have it.
    const SHADOW: &str = " (shadow)";

    /// Returns these policies, joined into one and in shadow mode. A single one evaluates its limits as
    /// before. Returns `None` if there are no policies.
    pub fn shadow_of(policies: &[&Self]) -> Option<Self> {
        let mut shadow = Self::joined(policies)?;
        if let [only] = policies {
            shadow.evaluate = only.evaluate;
        }
        shadow.name = Self::shadow_name(&shadow.name);
        shadow.put_in_shadow();
        Some(shadow)
    }

    /// Returns the name of the shadow of a policy.
    pub fn shadow_name(name: &str) -> String {
        format!("{name}{}", Self::SHADOW)
    }

    /// Returns true if routes require it in addition to the written policies: it joins several of them, or
    /// has their limits in shadow mode.
    pub fn is_joined(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Returns true if it has the limits of other policies in shadow mode, for routes in shadow mode.
    pub fn is_shadow(&self) -> bool {
        self.is_joined() && self.name.ends_with(Self::SHADOW)
    }

    /// Returns the name of the policy in the bucket keys of a limit: this one's name, unless it was joined.
    pub fn origin(&self, limit: usize) -> &str {
        let mut limits = 0_usize;
        let found = self.origins.iter().find(|(_, count)| {
            limits = limits.saturating_add(*count);
            limit < limits
        });
        found.map_or(&self.name, |(name, _)| name)
    }

    /// Sets the form of its responses.
    #[must_use]
    pub fn with_respond(self, respond: Respond) -> Self {
        Self {
            spoken: speak(&self.limits, respond.names),
            respond,
            ..self
        }
    }

    /// Returns the form of responses to clients.
    pub fn respond(&self) -> &Respond {
        &self.respond
    }

    /// Returns the header names of a band that a plan supplied for the limit with this number.
    pub fn planned_header_names(&self, limit: usize, band: &Band) -> Option<HeaderNames> {
        let name = self.band_header_names(limit, 0)?.name().to_owned();
        let unit = &self.limits.get(limit)?.unit;
        Some(HeaderNames::new(name, &band.quota, unit))
    }

    /// Returns true if any limit has its rate from a plan.
    #[inline]
    pub fn is_planned(&self) -> bool {
        self.planned
    }

    /// Returns true if any limit sends an alert when it is nearly used up.
    #[inline]
    pub fn warns(&self) -> bool {
        self.warns
    }

    /// Returns true if a refusal of any limit blocks (`block`).
    #[inline]
    pub fn blocks(&self) -> bool {
        self.blocks
    }

    /// Returns the header names of a band, by the indices of its limit and of the band.
    #[inline]
    pub fn band_header_names(&self, limit: usize, band: usize) -> Option<&HeaderNames> {
        self.spoken.get(limit)?.get(band)
    }
}

/// Returns the units that these limits count, in the order written. A limit that counts nothing (`rate:
/// unlimited`) has none, unless it names one: callers then send its amounts while it is lifted.
fn counted(limits: &[Limit]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for limit in limits {
        let counts = !limit.is_unlimited() || !limit.unit.is_requests();
        if counts && !units.contains(&limit.unit) {
            units.push(limit.unit.clone());
        }
    }
    if units.is_empty() {
        units.push(Unit::default());
    }
    units
}

/// Returns true if the limit is enabled and reads descriptors.
fn is_described(limit: &Limit) -> bool {
    let conditions = &limit.conditions;
    limit.enabled
        && (limit.counts_by_descriptor() || conditions.iter().any(|it| it.descriptor.is_some()))
}

/// Returns the limits of all these policies in order. The indices in `replaces` are shifted accordingly.
fn joined_limits(policies: &[&Policy]) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for policy in policies {
        let before = limits.len();
        limits.extend(policy.limits.iter().map(|limit| {
            let mut limit = limit.clone();
            for replaced in &mut limit.replaces {
                *replaced = replaced.saturating_add(before);
            }
            limit
        }));
    }
    limits
}

/// Returns true if a limit counts requests in flight.
fn is_concurrent(limit: &Limit) -> bool {
    limit.enabled && limit.algorithm.is_concurrent()
}
