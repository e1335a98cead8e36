//! A compiled policy: its limits and their common settings.

use crate::limit::{Band, ChargeTime, Limit};
use crate::matching::Matcher;
use crate::respond::{HeaderNames, Respond, speak};
use crate::told;
use std::iter;
use std::time::Duration;

/// A named list of limits.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is something that its limits have or have not, whatever else they have"
)]
pub struct Policy {
    /// The name; for a joined policy, all names, `a+b`.
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
    /// Finds the limits that apply to a request.
    pub(crate) matcher: Matcher,
    /// True if any limit queues requests.
    waits: bool,
    /// True if charges of any limit may be refunded.
    refundable: bool,
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
    pub const DEFAULT_TTL: Duration = Duration::from_mins(1);
    /// The default of [`max_ttl`](Self::max_ttl).
    pub const MAX_TTL: Duration = Duration::from_mins(10);
    /// The smallest value of either setting.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The largest value of either setting.
    pub const LONGEST: Duration = Duration::from_hours(1);

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
        limits.iter_mut().for_each(Limit::keep_block_apart);
        let hidden = told::hidden();
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
            matcher,
            waits: limits.iter().any(is_waiting),
            refundable: limits.iter().any(|limit| limit.refundable),
            planned: limits.iter().any(|limit| limit.plan.is_some()),
            foreseen: None,
            warns: limits.iter().any(|limit| limit.warn.is_some()),
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
    pub(crate) fn expect_descriptors(&mut self) {
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

    /// Returns the limit with this number, as in a [`Met`](crate::matching::Met): one of
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
    pub(crate) fn joined(policies: &[&Self]) -> Option<Self> {
        let [first, ..] = policies else {
            return None;
        };
        let names: Vec<&str> = policies.iter().map(|it| it.name.as_str()).collect();
        let name = names.join("+");
        let limits = joined_limits(policies);
        let scopes = policies
            .iter()
            .flat_map(|it| iter::repeat_n(it.name.as_str(), it.limits.len()));
        let hidden = told::hidden();
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
            hidden,
            origins: policies.iter().map(origin).collect(),
            waits: policies.iter().any(|it| it.waits),
            refundable: policies.iter().any(|it| it.refundable),
            planned: policies.iter().any(|it| it.planned),
            foreseen: None,
            warns: policies.iter().any(|it| it.warns),
            blocks: policies.iter().any(|it| it.blocks),
            limits,
        })
    }

    /// Returns true if it was joined from several policies that a route lists.
    pub fn is_joined(&self) -> bool {
        !self.origins.is_empty()
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
    pub fn planned_spoken(&self, limit: usize, band: &Band) -> Option<HeaderNames> {
        let name = self.spoken(limit, 0)?.name().to_owned();
        Some(HeaderNames::new(name, &band.quota))
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
    pub fn spoken(&self, limit: usize, band: usize) -> Option<&HeaderNames> {
        self.spoken.get(limit)?.get(band)
    }
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
