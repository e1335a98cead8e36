//! A limit as compiled: what the configuration means, with nothing left to look up.

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

/// The shortest block: clients are told of nothing shorter.
const SHORTEST_BLOCK: Duration = Duration::from_millis(1);

/// The longest: who is to be kept out for longer is to be kept out otherwise.
const LONGEST_BLOCK: Duration = Duration::from_hours(365 * 24);

/// Whom it applies to, whose bucket, how much.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is set by a field of its own, whatever the others are"
)]
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
    /// How much: one band or several. All share the algorithm. None at all is no limit
    /// (`rate: unlimited`): it is met like any other, and nobody is asked.
    pub bands: Vec<Band>,
    /// How the bands count.
    pub algorithm: Algorithm,
    /// Enforced, or only watched.
    pub mode: LimitMode,
    /// Whether it is in shadow mode because the whole configuration is, and would be enforced otherwise.
    pub shadowed: bool,
    /// Of the limits that have this and that a request meets, one that allows is enough
    /// (`mode: quota`). Only where [`Evaluate::Each`] decides them apart from each other.
    pub quota_mode: bool,
    /// The limits, by their index in [`Policy::limits`], that do not apply where this one does.
    pub replaces: Vec<usize>,
    /// When a cost that does not fit is charged.
    pub charge: ChargeTime,
    /// How requests wait that do not fit; absent where they are refused.
    pub waiting: Option<WaitRules>,
    /// For how long the first refusal closes it to whoever was refused; absent where it closes
    /// nothing. Its quota is a [block](Quota::block), of a limit in shadow mode a
    /// [shadow block](Quota::shadow_block).
    pub block: Option<Band>,
    /// Whether charges may be given back.
    pub refundable: bool,
    /// What to do when the store cannot tell; the store's own setting where absent.
    pub on_failure: Option<OnFailure>,
    /// What its refusals look like; as the policy says where absent.
    pub refusal: Option<Arc<RefusalStyle>>,
    /// How its keys are named where the store keeps them in the open layout; absent where it keeps
    /// them packed.
    pub template: Option<Template>,
    /// Where its rate comes from, where it is not written; [`bands`](Self::bands) then holds at most
    /// the one for those whom the plan does not know.
    pub plan: Option<PlannedRate>,
    /// Tells of a band when so many of a hundred parts of it are used.
    pub warn: Option<u8>,
}

impl Limit {
    /// Whether it says of no amount that it is too much (`rate: unlimited`).
    pub fn is_unlimited(&self) -> bool {
        self.bands.is_empty() && self.plan.is_none()
    }

    /// Puts it into shadow mode: it is decided and counted, and neither refuses a request nor makes one
    /// wait.
    pub(crate) fn put_in_shadow(&mut self) {
        self.shadowed |= self.mode == LimitMode::Enforce;
        self.mode = LimitMode::Shadow;
        self.waiting = None;
        self.keep_block_apart();
    }

    /// Counts the block of a limit in shadow mode apart from the enforced one.
    pub(crate) fn keep_block_apart(&mut self) {
        self.block = self.block.take().map(|block| self.in_its_mode(block));
    }

    /// Returns `block` as this limit is asked for it.
    pub(crate) fn in_its_mode(&self, block: Band) -> Band {
        let shadow = Quota::shadow_block(block.quota.period_us());
        match (self.mode, shadow) {
            (LimitMode::Shadow, Ok(quota)) => Band { quota, ..block },
            _ => block,
        }
    }

    /// Returns true if no later limit of a policy with [`Evaluate::First`] applies where this one does:
    /// it is enforced, or would be if the configuration were not in shadow mode.
    pub(crate) fn ends_search(&self) -> bool {
        self.mode == LimitMode::Enforce || self.shadowed
    }

    /// What becomes of its buckets when its numbers change: the same for all its bands.
    pub fn on_change(&self) -> OnChange {
        let band = self.shapes().first();
        band.map_or(OnChange::Keep, |band| band.quota.on_change())
    }

    /// Lets its buckets remember what giving back needs. Its bands stay the same bands.
    pub fn keep_credits(&mut self) {
        for band in &mut self.bands {
            band.quota = band.quota.with_refundable(true);
        }
        if let Some(plan) = &mut self.plan {
            plan.counting.refundable = true;
        }
    }

    /// Lets units of it be lent.
    pub(crate) fn lend(&mut self) {
        for band in &mut self.bands {
            band.quota = band.quota.with_lending(true);
        }
        if let Some(plan) = &mut self.plan {
            plan.lends = true;
        }
    }

    /// Everything that it looks at to find whose bucket, and whose rate.
    pub(crate) fn identities(&self) -> impl Iterator<Item = &KeyPart> {
        let subject = self.plan.iter().map(|plan| &plan.subject);
        self.key.iter().chain(subject)
    }

    /// Whether single descriptors meet it, each by its entries: then one request may meet it several
    /// times.
    pub fn is_met_by_each(&self) -> bool {
        let is_exact = |it: &Condition| {
            let pattern = it.descriptor.as_ref();
            pattern.is_some_and(DescriptorPattern::is_exact)
        };
        self.conditions.iter().any(is_exact)
    }

    /// Whether anything of a descriptor tells its buckets apart.
    pub(crate) fn counts_by_descriptor(&self) -> bool {
        self.identities().any(KeyPart::is_of_descriptor)
    }
}

impl KeyPart {
    /// Whether it is read from a descriptor.
    pub(crate) fn is_of_descriptor(&self) -> bool {
        matches!(self, Self::Descriptor | Self::DescriptorEntry { .. })
    }
}

/// When a cost is charged (`charge`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeTime {
    /// Only if it fits; otherwise it is refused, and nothing is charged.
    #[default]
    IfFits,
    /// Always. It passes while anything is left.
    Always,
    /// Only if it fits, but a request that states its cost is charged even when it is refused: the
    /// cost may have been spent already, and nothing in the request tells.
    EvenIfRefused,
}

/// How requests wait that do not fit yet (`on_refusal: wait`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRules {
    /// How long one waits at most; who would have to wait longer is refused.
    pub max_wait: Duration,
    /// How many wait at most, of all subjects together, in one process.
    pub max_waiting: u32,
}

impl WaitRules {
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
    /// A descriptor of the request looks like this.
    pub descriptor: Option<DescriptorPattern>,
}

/// What tells one bucket of a limit from another.
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
    /// All entries of the descriptor by which the limit is met.
    Descriptor,
    /// The value of one of its entries.
    DescriptorEntry {
        /// The key of the entry; case counts.
        name: String,
        /// Which of several with this key, counted from 1. Where absent, there must be one only.
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
    /// What a [block](Limit::block) of this length is asked by; `text` is the length as written.
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

    /// The same of a length of time.
    pub fn blocking(length: Duration) -> Result<Self, String> {
        let length_us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        Self::block(&format!("{length:?}"), length_us)
    }

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

    /// The same for a limit of which it is said what becomes of its buckets when its numbers change;
    /// requests wait up to `max_wait` if there is one.
    pub fn parse_changing(
        text: &str,
        algorithm: Algorithm,
        max_wait: Option<Duration>,
        on_change: OnChange,
    ) -> Result<Self, String> {
        crate::config::parse_band_changing(text, algorithm, max_wait, on_change)
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// What lists and maps call the address that `address` counts as: IPv6 with its prefix.
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

    /// The same for what people write, which may be a network too; `None` where it is neither. Whatever
    /// means the same to a list is called the same.
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
