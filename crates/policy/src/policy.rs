//! A policy as compiled: its limits, and what they have in common.

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
    /// Its name; of one that was joined, the names of all, `a+b`.
    pub name: String,
    /// How its limits come together.
    pub evaluate: Evaluate,
    /// The limits, in the order written, disabled ones included.
    pub limits: Vec<Limit>,
    /// What Envoy's rate limit service calls it, if not by its name.
    domain: Option<String>,
    /// Whether requests are to be expected that come with descriptors.
    described: bool,
    /// How it takes reservations, if it does.
    reserving: Option<ReserveRules>,
    /// The limit that descriptors meet which bring their own: its bands come with them.
    pub(crate) hidden: Limit,
    /// What clients are told.
    pub(crate) respond: Respond,
    /// How header fields spell the bands, by limit.
    spoken: Vec<Box<[HeaderNames]>>,
    /// The policies that were joined in it, each with how many limits it brought; none unless it
    /// was joined.
    origins: Vec<(String, usize)>,
    /// Finds the limits that a request meets.
    pub(crate) matcher: Matcher,
    /// Whether any limit makes requests wait.
    waits: bool,
    /// Whether charges of any limit may be given back.
    refundable: bool,
    /// Whether any limit has its rate from a plan.
    planned: bool,
    /// The source of a plan whose subject the guards look up too, and before.
    pub(crate) foreseen: Option<usize>,
    /// Whether any limit tells when it is nearly used up.
    warns: bool,
    /// Whether a refusal of any limit blocks.
    blocks: bool,
}

/// How the limits of a policy come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluate {
    /// Every limit that matches must allow; what one of them refuses, none has counted.
    #[default]
    All,
    /// The first enforced limit that matches decides alone; of a request with descriptors, the first
    /// for each of them.
    First,
    /// Every limit that matches must allow, and each counts by itself, whatever the others say: as
    /// Envoy's own rate limit service does it.
    Each,
}

/// How a policy takes reservations (`reserve`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveRules {
    /// How long a reservation lives that does not say so.
    pub default_ttl: Duration,
    /// How long any may live; who asks for more gets this.
    pub max_ttl: Duration,
}

// === impl Reserving ===

impl ReserveRules {
    /// How long a reservation lives unless anybody says so.
    pub const DEFAULT_TTL: Duration = Duration::from_mins(1);
    /// How long any may live, unless told.
    pub const MAX_TTL: Duration = Duration::from_mins(10);
    /// The shortest that either may be told.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest.
    pub const LONGEST: Duration = Duration::from_hours(1);

    /// Reservations that live this long unless they say so, and [`MAX_TTL`](Self::MAX_TTL) at most, or as
    /// long as that if it is longer.
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
    /// A policy of these limits, which answers as [`Respond::default`] says.
    ///
    /// Where one of them makes requests wait, charges of all can be given back: who waits for one
    /// limit has been charged by every other already, and may go before it passes.
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

    /// Lets every charge of this policy be given back. Its bands stay the same bands; their buckets
    /// remember what that needs.
    pub fn make_refundable(&mut self) {
        self.refundable = true;
        for limit in &mut self.limits {
            limit.refundable = true;
            limit.keep_credits();
        }
    }

    /// Puts all its limits into shadow mode, and limits that requests bring.
    pub fn put_in_shadow(&mut self) {
        self.waits = false;
        self.hidden.put_in_shadow();
        self.limits.iter_mut().for_each(Limit::put_in_shadow);
    }

    /// Tells that requests are counted by address, so that doors find it out whatever limits look at.
    pub fn count_addresses(&mut self) {
        self.matcher.read_address();
    }

    /// Whether any limit makes requests wait instead of refusing them.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether charges of any limit may be given back.
    #[inline]
    pub fn refundable(&self) -> bool {
        self.refundable
    }

    /// The same policy, which Envoy's rate limit service knows under another name.
    #[must_use]
    pub fn with_domain(self, domain: Option<String>) -> Self {
        Self {
            described: self.described || domain.is_some(),
            domain,
            ..self
        }
    }

    /// The same policy, in which limits that requests bring charge costs that do not fit as `charge`
    /// says.
    #[must_use]
    pub fn with_charge(mut self, charge: ChargeTime) -> Self {
        self.hidden.charge = charge;
        self
    }

    /// Tells that requests are to be expected that come with descriptors, though none of its limits asks
    /// for any: they may bring limits themselves.
    pub(crate) fn expect_descriptors(&mut self) {
        self.described = true;
    }

    /// Whether requests are to be expected that come with descriptors.
    pub(crate) fn expects_descriptors(&self) -> bool {
        self.described
    }

    /// What Envoy's rate limit service calls it: its domain, or else its name.
    #[inline]
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or(&self.name)
    }

    /// The same policy, which takes reservations: then every charge of it can be given back.
    #[must_use]
    pub fn with_reserving(mut self, reserving: Option<ReserveRules>) -> Self {
        self.reserving = reserving;
        if reserving.is_some() {
            self.make_refundable();
            self.limits.iter_mut().for_each(Limit::lend);
        }
        self
    }

    /// How it takes reservations; `None` where it takes none.
    #[inline]
    pub fn reserving(&self) -> Option<ReserveRules> {
        self.reserving
    }

    /// The limit of this number, as a [`Met`](crate::matching::Met) has it: one of
    /// [`limits`](Self::limits), or, after the last of them, the hidden one that descriptors meet
    /// which bring a limit of their own.
    #[inline]
    pub fn limit(&self, number: usize) -> Option<&Limit> {
        match self.limits.get(number) {
            None if number == self.limits.len() => Some(&self.hidden),
            limit => limit,
        }
    }

    /// The limits of all of these as one policy, decided in one step and answered as the first of
    /// them says. Each limit keeps the buckets that it has in the policy it comes from, so that
    /// whoever is counted there is counted on.
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

    /// Whether it was made of several policies, which a route lists.
    pub fn is_joined(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The policy that the buckets of a limit are named after: this one, unless it was joined.
    pub fn origin(&self, limit: usize) -> &str {
        let mut limits = 0_usize;
        let found = self.origins.iter().find(|(_, count)| {
            limits = limits.saturating_add(*count);
            limit < limits
        });
        found.map_or(&self.name, |(name, _)| name)
    }

    /// The same policy, which answers as `respond` says.
    #[must_use]
    pub fn with_respond(self, respond: Respond) -> Self {
        Self {
            spoken: speak(&self.limits, respond.names),
            respond,
            ..self
        }
    }

    /// What clients are told.
    pub fn respond(&self) -> &Respond {
        &self.respond
    }

    /// How header fields spell a band that a plan told for a limit of this number.
    pub fn planned_spoken(&self, limit: usize, band: &Band) -> Option<HeaderNames> {
        let name = self.spoken(limit, 0)?.name().to_owned();
        Some(HeaderNames::new(name, &band.quota))
    }

    /// Whether any limit has its rate from a plan.
    #[inline]
    pub fn is_planned(&self) -> bool {
        self.planned
    }

    /// Whether any limit tells when it is nearly used up.
    #[inline]
    pub fn warns(&self) -> bool {
        self.warns
    }

    /// Whether a refusal of any limit blocks (`block`).
    #[inline]
    pub fn blocks(&self) -> bool {
        self.blocks
    }

    /// How header fields spell a band, by the numbers of its limit and of itself.
    #[inline]
    pub fn spoken(&self, limit: usize, band: usize) -> Option<&HeaderNames> {
        self.spoken.get(limit)?.get(band)
    }
}

/// Whether a limit looks at descriptors.
fn is_described(limit: &Limit) -> bool {
    let conditions = &limit.conditions;
    limit.enabled
        && (limit.counts_by_descriptor() || conditions.iter().any(|it| it.descriptor.is_some()))
}

/// The limits of all of these, one after the other. Those that a limit replaces have moved with it.
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
