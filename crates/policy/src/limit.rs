//! A policy as compiled: what the configuration means, with nothing left to look up.

use crate::matching::{HostPattern, Matcher, PathPattern};
use crate::respond::{Refusal, Respond, Spoken, speak};
use crate::template::Template;
use ipnet::IpNet;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Algorithm, Mode, Quota};

/// A named list of limits.
#[derive(Debug)]
pub struct Policy {
    /// Its name; of one that was joined, the names of all, `a+b`.
    pub name: String,
    /// Whether every limit that matches must allow, or the first decides alone.
    pub evaluate: Evaluate,
    /// The limits, in the order written, disabled ones included.
    pub limits: Vec<Limit>,
    /// What clients are told.
    respond: Respond,
    /// How header fields spell the bands, by limit.
    spoken: Vec<Box<[Spoken]>>,
    /// The policies that were joined in it, each with how many limits it brought; none unless it
    /// was joined.
    origins: Vec<(String, usize)>,
    /// Finds the limits that a request meets.
    pub(crate) matcher: Matcher,
    /// Whether any limit makes requests wait.
    waits: bool,
    /// Whether charges of any limit may be given back.
    refundable: bool,
}

impl Policy {
    /// A policy of these limits, which answers as [`Respond::default`] says.
    ///
    /// Where one of them makes requests wait, charges of all can be given back: who waits for one
    /// limit has been charged by every other already, and may go before it passes.
    pub fn new(name: String, evaluate: Evaluate, limits: Vec<Limit>) -> Self {
        let matcher = Matcher::new(&name, &limits);
        let respond = Respond::default();
        let is_waiting = |limit: &Limit| limit.enabled && limit.waiting.is_some();
        let mut policy = Self {
            name,
            evaluate,
            spoken: speak(&limits, respond.names),
            respond,
            origins: Vec::new(),
            matcher,
            waits: limits.iter().any(is_waiting),
            refundable: limits.iter().any(|limit| limit.refundable),
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
            for band in &mut limit.bands {
                band.quota = band.quota.with_refundable(true);
            }
        }
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

    /// The limits of all of these as one policy, decided in one step and answered as the first of
    /// them says. Each limit keeps the buckets that it has in the policy it comes from, so that
    /// whoever is counted there is counted on.
    pub(crate) fn joined(policies: &[&Self]) -> Option<Self> {
        let [first, ..] = policies else {
            return None;
        };
        let names: Vec<&str> = policies.iter().map(|it| it.name.as_str()).collect();
        let limits: Vec<Limit> = policies.iter().flat_map(|it| it.limits.clone()).collect();
        let scopes = policies
            .iter()
            .flat_map(|it| iter::repeat_n(it.name.as_str(), it.limits.len()));
        let origin = |it: &&Self| (it.name.clone(), it.limits.len());
        Some(Self {
            name: names.join("+"),
            evaluate: Evaluate::All,
            spoken: speak(&limits, first.respond.names),
            respond: first.respond.clone(),
            matcher: Matcher::of(scopes.zip(&limits), &limits),
            origins: policies.iter().map(origin).collect(),
            waits: policies.iter().any(|it| it.waits),
            refundable: policies.iter().any(|it| it.refundable),
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

    /// How header fields spell a band, by the numbers of its limit and of itself.
    #[inline]
    pub fn spoken(&self, limit: usize, band: usize) -> Option<&Spoken> {
        self.spoken.get(limit)?.get(band)
    }
}

/// How the limits of a policy come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evaluate {
    /// Every limit that matches must allow.
    #[default]
    All,
    /// The first enforced limit that matches decides alone.
    First,
}

/// Whom it applies to, whose bucket, how much.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Its name, unique in its policy.
    pub name: String,
    /// Disabled limits match nothing.
    pub enabled: bool,
    /// It applies if any of these holds; without any, to every request.
    pub conditions: Vec<Condition>,
    /// Whose bucket: one part or several.
    pub key: Vec<KeyPart>,
    /// What to do where a part of the key is absent.
    pub missing: Missing,
    /// How much: one band or several. All share the algorithm.
    pub bands: Vec<Band>,
    /// How the bands count.
    pub algorithm: Algorithm,
    /// Enforced, or only watched.
    pub mode: Mode,
    /// Whether a cost that does not fit is taken all the same (`charge: always`).
    pub charge_always: bool,
    /// How requests wait that do not fit; absent where they are refused.
    pub waiting: Option<Waiting>,
    /// Whether charges may be given back.
    pub refundable: bool,
    /// What to do when the store cannot tell; the store's own setting where absent.
    pub on_failure: Option<OnFailure>,
    /// What its refusals look like; as the policy says where absent.
    pub refusal: Option<Arc<Refusal>>,
    /// How its keys are named where the store keeps them in the open layout; absent where it keeps
    /// them packed.
    pub template: Option<Template>,
}

/// How requests wait that do not fit yet (`on_refusal: wait`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How long one waits at most; who would have to wait longer is refused.
    pub max_wait: Duration,
    /// How many wait at most, of all subjects together, in one process.
    pub max_waiting: u32,
}

impl Waiting {
    /// How many wait at most unless told.
    pub const MAX_WAITING: u32 = 1_000;
    /// The most that may be told.
    pub const MAX_WAITING_MAX: u32 = 1_000_000;
    /// The shortest `max_wait`: timers know no less.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest.
    pub const LONGEST: Duration = Duration::from_hours(1);
}

/// One way in which a limit applies: all of what it names must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The path.
    pub path: Option<PathPattern>,
    /// Any of these methods, upper case; none = any method.
    pub methods: Vec<String>,
    /// Any of these hosts; none = any host.
    pub hosts: Vec<HostPattern>,
    /// All of these headers; names and values ignore case.
    pub headers: Vec<(String, String)>,
    /// The client's address lies in any of these; none = any address.
    pub clients: Vec<IpNet>,
    /// All of these attributes.
    pub attributes: Vec<(String, String)>,
}

/// What tells one bucket of a limit from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The client's address; IPv6 by prefix.
    Ip,
    /// The user.
    User,
    /// The API key: a secret, kept only as a hash.
    ApiKey,
    /// A header's value, by lower-case name.
    Header(String),
    /// An attribute's value.
    Attr(String),
    /// The route that a gateway chose.
    Route,
    /// The host.
    Host,
    /// The method.
    Method,
    /// The normalised path.
    Path,
    /// Nothing: one bucket for all.
    Global,
}

/// What to do where the identity that a key needs is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Count by address, apart from those who have it.
    #[default]
    Address,
    /// The limit does not match.
    Skip,
    /// The request is refused.
    Refuse,
}

/// An amount per period.
#[derive(Clone, Debug)]
pub struct Band {
    /// As written, such as `10/s burst 50`.
    pub text: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The arithmetic.
    pub quota: Quota,
}

impl Band {
    /// A band from text such as `10/s burst 50`, without a label. The error says what is wrong and
    /// what would be right.
    pub fn parse(text: &str, algorithm: Algorithm) -> Result<Self, String> {
        crate::config::parse_band(text, algorithm, None)
    }

    /// The same for a limit whose requests wait up to `max_wait`: a token bucket then has room for
    /// as many places as come free in that time.
    pub fn parse_waiting(
        text: &str,
        algorithm: Algorithm,
        max_wait: Duration,
    ) -> Result<Self, String> {
        crate::config::parse_band(text, algorithm, Some(max_wait))
    }
}

/// What to do when the store does not answer in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Decide in this process, at a share of the policy.
    #[default]
    Local,
    /// Let it pass.
    Allow,
    /// Refuse it.
    Deny,
    /// Answer with an error.
    Error,
}

/// How addresses become keys.
#[derive(Clone, Copy, Debug)]
pub struct AddressRules {
    /// IPv6 addresses count by this many leading bits.
    pub ipv6_prefix: u8,
}

impl Default for AddressRules {
    fn default() -> Self {
        Self { ipv6_prefix: 64 }
    }
}

impl AddressRules {
    /// The address that `address` counts as: IPv4-mapped is IPv4, IPv6 is its prefix.
    #[must_use]
    pub fn subject(self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => {
                let bits = u32::from(self.ipv6_prefix.min(128));
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        }
    }
}
