//! A compiled limit: the meaning of the configuration, with all references resolved.

use crate::guard::AddressMember;
use crate::matching::{DescriptorPattern, HostPattern, PathPattern, is_secret_name};
use crate::plan::PlannedRate;
pub use crate::policy::{Evaluate, Policy, ReserveRules};
use crate::respond::RefusalStyle;
use crate::template::Template;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode, OnChange, Quota};

/// The shortest block, because clients get no time below a millisecond.
const SHORTEST_BLOCK: Duration = Duration::from_millis(1);

/// The longest block. Longer exclusions need other means, such as a guard.
const LONGEST_BLOCK: Duration = Duration::from_hours(365 * 24);

/// A limit: the requests it applies to, the key of its bucket, and its amounts.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is set by a field of its own, whatever the others are"
)]
pub struct Limit {
    /// The name, unique in the policy.
    pub name: String,
    /// False for a limit that never matches.
    pub enabled: bool,
    /// The limit applies if any of these conditions holds, and to every request if there are none.
    pub conditions: Vec<Condition>,
    /// The parts that make up the bucket's key.
    pub key: Vec<KeyPart>,
    /// The action where a part of the key is absent.
    pub missing: Missing,
    /// The amounts: one band or several, which share the algorithm. No band means no limit (`rate:
    /// unlimited`): it matches like any other, and the store is not called.
    pub bands: Vec<Band>,
    /// The algorithm of the bands.
    pub algorithm: Algorithm,
    /// Enforce or shadow.
    pub mode: LimitMode,
    /// True if the limit is in shadow mode only because the whole configuration is.
    pub shadowed: bool,
    /// True for `mode: quota`: of all such limits that match a request, it is enough that one allows. Only
    /// valid with [`Evaluate::Each`], which decides limits separately.
    pub quota_mode: bool,
    /// The limits, by their index in [`Policy::limits`], that do not apply where this limit applies.
    pub replaces: Vec<usize>,
    /// The time at which a cost that does not fit is charged.
    pub charge: ChargeTime,
    /// The rules for queuing requests that do not fit; absent where they are refused.
    pub waiting: Option<WaitRules>,
    /// The block that the first refusal starts for the refused bucket; absent where a refusal blocks nothing.
    /// Its quota is a [block](Quota::block); for a limit in shadow mode it is a [shadow
    /// block](Quota::shadow_block).
    pub block: Option<Band>,
    /// True if charges may be refunded.
    pub refundable: bool,
    /// The action when the store fails; the store's own setting applies where absent.
    pub on_failure: Option<OnFailure>,
    /// The form of its refusals; the policy's form applies where absent.
    pub refusal: Option<Arc<RefusalStyle>>,
    /// The template of its key names in the open layout; absent in the packed layout.
    pub template: Option<Template>,
    /// The plan that supplies the rate, if the rate is not in the configuration. [`bands`](Self::bands) then
    /// has at most the band for subjects that the plan does not know.
    pub plan: Option<PlannedRate>,
    /// The percentage of a band at which an alert is sent.
    pub warn: Option<u8>,
}

impl Limit {
    /// Returns true if it never refuses any amount (`rate: unlimited`).
    pub fn is_unlimited(&self) -> bool {
        self.bands.is_empty() && self.plan.is_none()
    }

    /// Switches to shadow mode: the limit is decided and counted, but neither refuses nor queues a request.
    pub(crate) fn put_in_shadow(&mut self) {
        self.shadowed |= self.mode == LimitMode::Enforce;
        self.mode = LimitMode::Shadow;
        self.waiting = None;
        self.keep_block_apart();
    }

    /// Gives a limit in shadow mode a block that is counted separately from the enforced one.
    pub(crate) fn keep_block_apart(&mut self) {
        self.block = self.block.take().map(|block| self.in_its_mode(block));
    }

    /// Returns `block` with the quota for this limit's mode.
    pub(crate) fn in_its_mode(&self, block: Band) -> Band {
        let shadow = Quota::shadow_block(block.quota.period_us());
        match (self.mode, shadow) {
            (LimitMode::Shadow, Ok(quota)) => Band { quota, ..block },
            _ => block,
        }
    }

    /// Returns true if a policy with [`Evaluate::First`] applies no later limit where this one applies: it is
    /// enforced, or would be if the configuration were not in shadow mode.
    pub(crate) fn ends_search(&self) -> bool {
        self.mode == LimitMode::Enforce || self.shadowed
    }

    /// Returns the effect of changed numbers on its buckets; it is the same for all its bands.
    pub fn on_change(&self) -> OnChange {
        let band = self.shapes().first();
        band.map_or(OnChange::Keep, |band| band.quota.on_change())
    }

    /// Makes its buckets store the state that refunds need. The identity of its bands does not change.
    pub fn keep_credits(&mut self) {
        for band in &mut self.bands {
            band.quota = band.quota.with_refundable(true);
        }
        if let Some(plan) = &mut self.plan {
            plan.counting.refundable = true;
        }
    }

    /// Allows reservations to borrow units from its bands.
    pub(crate) fn lend(&mut self) {
        for band in &mut self.bands {
            band.quota = band.quota.with_lending(true);
        }
        if let Some(plan) = &mut self.plan {
            plan.lends = true;
        }
    }

    /// Returns all key parts that it reads: those of the bucket's key, and the plan's subject.
    pub(crate) fn identities(&self) -> impl Iterator<Item = &KeyPart> {
        let subject = self.plan.iter().map(|plan| &plan.subject);
        self.key.iter().chain(subject)
    }

    /// Returns true if single descriptors match it by their entries. One request may then match it several
    /// times.
    pub fn is_met_by_each(&self) -> bool {
        let is_exact = |it: &Condition| {
            let pattern = it.descriptor.as_ref();
            pattern.is_some_and(DescriptorPattern::is_exact)
        };
        self.conditions.iter().any(is_exact)
    }

    /// Returns true if its key or its plan's subject reads a descriptor.
    pub(crate) fn counts_by_descriptor(&self) -> bool {
        self.identities().any(KeyPart::is_of_descriptor)
    }
}

impl KeyPart {
    /// Returns true if its value is read from a descriptor.
    pub(crate) fn is_of_descriptor(&self) -> bool {
        matches!(self, Self::Descriptor | Self::DescriptorEntry { .. })
    }
}

/// The time at which a cost is charged (`charge`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeTime {
    /// Only if it fits. Otherwise the request is refused and nothing is charged.
    #[default]
    IfFits,
    /// Always. The request is allowed while anything is left.
    Always,
    /// Only if it fits, but a request that states its cost is charged even when it is refused: the cost may
    /// have been spent already, and the request does not show it.
    EvenIfRefused,
}

/// The rules for queuing requests that do not fit yet (`on_refusal: wait`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRules {
    /// The maximum wait. A request that would wait longer is refused.
    pub max_wait: Duration,
    /// The maximum number of waiting requests, of all subjects together, in one process.
    pub max_waiting: u32,
}

impl WaitRules {
    /// The default maximum number of waiting requests.
    pub const MAX_WAITING: u32 = 1_000;
    /// The largest value of `max_waiting`.
    pub const MAX_WAITING_MAX: u32 = 1_000_000;
    /// The shortest `max_wait`: the resolution of timers.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest `max_wait`.
    pub const LONGEST: Duration = Duration::from_hours(1);
}

/// One alternative of a limit's `match`: all of its fields must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The path.
    pub path: Option<PathPattern>,
    /// Any of these methods, upper case; none = any method.
    pub methods: Vec<String>,
    /// Any of these hosts; none = any host.
    pub hosts: Vec<HostPattern>,
    /// All of these headers; names and values are case-insensitive.
    pub headers: Vec<(String, String)>,
    /// Any of these networks contains the client's address; none = any address.
    pub clients: Vec<IpNet>,
    /// All of these attributes.
    pub attributes: Vec<(String, String)>,
    /// The pattern that a descriptor of the request must match.
    pub descriptor: Option<DescriptorPattern>,
}

/// A part of a bucket's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The client's address; IPv6 by prefix.
    Ip,
    /// The user.
    User,
    /// The API key: a secret, kept as a hash unless `store.key_names` is `literal`.
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
    /// All entries of the descriptor that matches the limit.
    Descriptor,
    /// The value of one entry of that descriptor.
    DescriptorEntry {
        /// The key of the entry, case-sensitive.
        name: String,
        /// The position among entries with this key, counted from 1. Where absent, the key must be unique.
        nth: Option<u8>,
    },
    /// The group that the subject of the limit's plan belongs to.
    Group,
    /// Nothing: one bucket for all.
    Global,
}

impl KeyPart {
    /// Returns true if its value is a secret, such as an API key.
    pub fn is_secret(&self) -> bool {
        match self {
            Self::ApiKey => true,
            Self::Header(name) | Self::Attr(name) | Self::DescriptorEntry { name, .. } => {
                is_secret_name(name)
            }
            _ => false,
        }
    }
}

/// The action where an identity that a key needs is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Count by address, separately from clients that have the identity.
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
    /// The text of the configuration, such as `10/s burst 50`.
    pub text: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The quota that computes decisions.
    pub quota: Quota,
}

impl Band {
    /// Returns the band of a [block](Limit::block) of this length. `text` is the length as written. Fails for
    /// lengths outside 1 ms to 365 days.
    pub(crate) fn block(text: &str, length_us: u64) -> Result<Self, String> {
        let length = Duration::from_micros(length_us);
        let quota = Quota::block(length_us).ok();
        let quota = quota.filter(|_| (SHORTEST_BLOCK..=LONGEST_BLOCK).contains(&length));
        Ok(Self {
            text: text.to_owned(),
            label: Some("block".to_owned()),
            quota: quota.ok_or_else(|| format!("`{text}` is not from 1ms to 365d"))?,
        })
    }

    /// Returns the band of a block of this length. Fails like `Band::block`.
    pub fn blocking(length: Duration) -> Result<Self, String> {
        let length_us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        Self::block(&format!("{length:?}"), length_us)
    }

    /// Parses a band from text such as `10/s burst 50`, without a label. The error describes the mistake and
    /// its fix.
    pub fn parse(text: &str, algorithm: Algorithm) -> Result<Self, String> {
        crate::config::parse_band(text, algorithm, None)
    }

    /// Like [`parse`](Self::parse), for a limit whose requests wait up to `max_wait`: a token bucket then has
    /// room for as many places as become free in that time.
    pub fn parse_waiting(
        text: &str,
        algorithm: Algorithm,
        max_wait: Duration,
    ) -> Result<Self, String> {
        crate::config::parse_band(text, algorithm, Some(max_wait))
    }

    /// Like [`parse`](Self::parse), for a limit with its own `on_change`. Requests wait up to `max_wait` if
    /// there is one.
    pub fn parse_changing(
        text: &str,
        algorithm: Algorithm,
        max_wait: Option<Duration>,
        on_change: OnChange,
    ) -> Result<Self, String> {
        crate::config::parse_band_changing(text, algorithm, max_wait, on_change)
    }
}

/// The action when the store does not respond in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Decide in memory, with a share of the policy's amounts.
    #[default]
    Local,
    /// Allow the request.
    Allow,
    /// Refuse the request.
    Deny,
    /// Fail with an error.
    Error,
}

/// The rules that map addresses to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// The number of leading bits by which IPv6 addresses are counted.
    pub ipv6_prefix: u8,
}

impl Default for AddressRules {
    fn default() -> Self {
        Self { ipv6_prefix: 64 }
    }
}

impl AddressRules {
    /// Returns the address that `address` counts as: an IPv4-mapped address is IPv4, and IPv6 is cut to its
    /// prefix.
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

    /// Returns the name of `address` in lists and maps: IPv6 has its prefix length.
    ///
    /// ```
    /// use tidegate_policy::limit::AddressRules;
    ///
    /// let rules = AddressRules { ipv6_prefix: 64 };
    /// assert_eq!(rules.member("::ffff:192.0.2.1".parse()?), "192.0.2.1");
    /// assert_eq!(rules.member("2001:db8::17".parse()?), "2001:db8::/64");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn member(self, address: IpAddr) -> String {
        match self.subject(address) {
            IpAddr::V6(v6) if self.ipv6_prefix < 128 => format!("{v6}/{}", self.ipv6_prefix),
            subject => subject.to_string(),
        }
    }

    /// Like [`member`](Self::member), for text that operators write, which may also be a network. Returns
    /// `None` for text that is neither. Texts with the same meaning in a list have the same name.
    ///
    /// ```
    /// use tidegate_policy::limit::AddressRules;
    ///
    /// let rules = AddressRules { ipv6_prefix: 64 };
    /// let member = |text| rules.member_of(text);
    /// assert_eq!(member("::FFFF:192.0.2.1"), member("192.0.2.1/32"));
    /// assert_eq!(member("2001:DB8::17"), Some("2001:db8::/64".to_owned()));
    /// assert_eq!(member("2001:db8::17/128"), Some("2001:db8::17/128".to_owned()));
    /// assert_eq!(member("localhost"), None);
    /// ```
    pub fn member_of(self, text: &str) -> Option<String> {
        let network = AddressMember::parse(text.trim(), self)?.network();
        let is_one = network.prefix_len() == network.max_prefix_len();
        let is_v4 = network.addr().is_ipv4();
        if is_one && (is_v4 || self.ipv6_prefix >= 128) {
            return Some(network.addr().to_string());
        }
        Some(network.to_string())
    }
}
