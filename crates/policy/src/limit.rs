//! A compiled limit: the meaning of the configuration, with all references resolved.

pub use crate::address_rules::AddressRules;
pub use crate::band::Band;
pub use crate::key_part::KeyPart;
use crate::patterns::{DescriptorPattern, HostPattern, PathPattern};
use crate::plan::{LABEL, PlanRate, PlannedRate};
use crate::respond::RefusalStyle;
pub use crate::store::OnFailure;
use crate::template::Template;
use crate::text::{ConfigFault, scalar};
use crate::unit::Unit;
use crate::warn_shares::WarnShares;
use ipnet::IpNet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode, OnChange, Quota};

/// A limit: the requests it applies to, the key of its bucket, and its amounts.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is set by a separate field, independent of the others"
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
    pub missing: MissingIdentity,
    /// The amounts: one band or several, which share the algorithm. No band means no limit (`rate:
    /// unlimited`): it matches like any other, and the store is not called.
    pub bands: Vec<Band>,
    /// The unit that the bands count.
    pub unit: Unit,
    /// The algorithm of the bands.
    pub algorithm: Algorithm,
    /// Enforce or shadow.
    pub mode: LimitMode,
    /// True if the limit is in shadow mode only because the whole configuration is.
    pub shadowed: bool,
    /// True for `combine: any`: of all such limits that match a request, it is enough that one allows. Only
    /// valid with [`Evaluate::Each`](crate::Evaluate::Each), which decides limits separately.
    pub quota_mode: bool,
    /// The limits, by their index in [`Policy::limits`](crate::Policy::limits), that do not apply where this
    /// limit applies.
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
    /// Of a limit of requests in flight: how long a request counts for a caller that does not see its end.
    /// [`HOLD`](Self::HOLD) where absent.
    pub hold: Option<Duration>,
    /// The action when the store fails; the store's own setting applies where absent.
    pub on_failure: Option<OnFailure>,
    /// The form of its refusals; the policy's form applies where absent.
    pub refusal: Option<Arc<RefusalStyle>>,
    /// The template of its key names in the open layout; absent in the packed layout.
    pub template: Option<Template>,
    /// The plan that supplies the rate, if the rate is not in the configuration. [`bands`](Self::bands) then
    /// has at most the band for subjects that the plan does not know.
    pub plan: Option<PlannedRate>,
    /// The used shares of a band at which an alert is sent.
    pub warn: WarnShares,
}

impl Limit {
    /// Creates an enabled limit with defaults: for every request, in one bucket. It is unlimited until it has
    /// a band or a plan.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            enabled: true,
            conditions: Vec::new(),
            key: vec![KeyPart::Global],
            missing: MissingIdentity::default(),
            bands: Vec::new(),
            unit: Unit::default(),
            algorithm: Algorithm::default(),
            mode: LimitMode::default(),
            shadowed: false,
            quota_mode: false,
            replaces: Vec::new(),
            charge: ChargeTime::default(),
            waiting: None,
            block: None,
            refundable: false,
            hold: None,
            on_failure: None,
            refusal: None,
            template: None,
            plan: None,
            warn: WarnShares::default(),
        }
    }

    /// The default of [`hold`](Self::hold).
    pub const HOLD: Duration = Duration::from_secs(30);
    /// The shortest `hold`, and time of a permit that its caller renews.
    pub const HOLD_MIN: Duration = Duration::from_millis(1);
    /// The longest.
    pub const HOLD_MAX: Duration = Duration::from_secs(86_400);

    /// Makes it a limit of this many requests in flight (`concurrent`).
    ///
    /// # Errors
    ///
    /// The number is too large.
    pub fn concurrent(self, permits: u64) -> Result<Self, String> {
        Ok(Self {
            bands: vec![Band::concurrent(permits)?],
            algorithm: Algorithm::Concurrent,
            charge: ChargeTime::InFlight,
            ..self
        })
    }

    /// Returns true if it never refuses any amount (`rate: unlimited`).
    pub fn is_unlimited(&self) -> bool {
        self.bands.is_empty() && self.plan.is_none()
    }

    /// Switches to shadow mode: the limit is decided and counted, but neither refuses nor queues a request.
    pub(crate) fn put_in_shadow(&mut self) {
        self.shadowed |= self.mode == LimitMode::Enforce;
        self.mode = LimitMode::Shadow;
        self.waiting = None;
        self.separate_shadow_block();
    }

    /// Gives a limit in shadow mode a block that is counted separately from the enforced one.
    pub(crate) fn separate_shadow_block(&mut self) {
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

    /// Returns true if a policy with [`Evaluate::First`](crate::Evaluate::First) applies no later limit where
    /// this one applies: it is enforced, or would be if the configuration were not in shadow mode.
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
    pub fn matches_each_descriptor(&self) -> bool {
        let is_exact = |it: &Condition| {
            let pattern = it.descriptor.as_ref();
            pattern.is_some_and(DescriptorPattern::is_exact)
        };
        self.conditions.iter().any(is_exact)
    }

    /// Returns true if its key or its plan's subject reads a descriptor.
    pub fn counts_by_descriptor(&self) -> bool {
        self.identities().any(KeyPart::is_of_descriptor)
    }

    /// Returns the band for a rate of its plan. The error is the reason why there is no such band.
    pub fn planned_band(&self, rate: PlanRate) -> Result<Band, String> {
        let Some(plan) = &self.plan else {
            return Err("the limit has no plan".to_owned());
        };
        let mut band = rate.band(LABEL, plan.counting)?;
        if self.waiting.is_some() && band.quota.calendar().is_some() {
            return Err(format!(
                "`{}`: requests cannot wait for a calendar window",
                band.text
            ));
        }
        band.quota = band
            .quota
            .with_refundable(plan.counting.refundable || band.quota.is_refundable());
        if plan.lends {
            band.quota = band.quota.with_lending(true);
        }
        Ok(band)
    }

    /// Returns the block for subjects with `rate`, if refusals block them. A plan can change the length only
    /// if the limit has a block. The error is the reason why the length is invalid.
    pub fn planned_block(&self, rate: PlanRate) -> Result<Option<Band>, String> {
        match (&self.block, rate.block_us) {
            (None, _) | (_, Some(0)) => Ok(None),
            (Some(own), None) => Ok(Some(own.clone())),
            (Some(_), Some(length_us)) => {
                let block = Band::blocking(Duration::from_micros(length_us));
                block.map(|block| Some(self.in_its_mode(block)))
            }
        }
    }

    /// Returns its bands. If all its rates come from a plan, returns a sample of such a band, which shows the
    /// form of its buckets.
    pub fn shapes(&self) -> &[Band] {
        match (self.bands.as_slice(), &self.plan) {
            ([], Some(plan)) => plan.sample.as_deref().map_or(&[], std::slice::from_ref),
            (bands, _) => bands,
        }
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
    /// From the decision to the end of the request, if it fits: for limits of requests in flight.
    InFlight,
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
    pub const LONGEST: Duration = Duration::from_secs(3_600);
}

/// One alternative of a limit's `match`: all of its fields must hold.
///
/// ```
/// use tidegate_policy::Condition;
///
/// let login = Condition::default().with_path("/login$")?.with_method("post")?;
/// assert_eq!(login.methods, ["POST"]);
/// assert!(Condition::default().with_path("login").is_err(), "a path begins with `/`");
/// # Ok::<(), String>(())
/// ```
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

/// Conditions built in code, in the syntax of the configuration. Errors include the correct form.
impl Condition {
    /// Restricts the condition to paths that match `pattern`.
    pub fn with_path(mut self, pattern: &str) -> Result<Self, String> {
        self.path = Some(PathPattern::parse(pattern)?);
        Ok(self)
    }

    /// Adds a method. The condition holds for any of the methods added.
    pub fn with_method(mut self, method: &str) -> Result<Self, String> {
        let method = scalar::method(method).map_err(ConfigFault::into_sentence)?;
        self.methods.push(method);
        Ok(self)
    }

    /// Adds a host pattern. The condition holds for hosts that match any of the patterns added.
    pub fn with_host(mut self, pattern: &str) -> Result<Self, String> {
        self.hosts.push(HostPattern::parse(pattern)?);
        Ok(self)
    }

    /// Adds a header. All headers added must match.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not a header name or was added before.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let name = scalar::header_name(name).map_err(ConfigFault::into_sentence)?;
        if self.headers.iter().any(|(other, _)| *other == name) {
            return Err(format!("duplicate header `{name}`"));
        }
        self.headers.push((name, value.to_owned()));
        Ok(self)
    }
}

/// The action where an identity that a key needs is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingIdentity {
    /// Count by address, separately from clients that have the identity.
    #[default]
    Address,
    /// The limit does not match.
    Skip,
    /// The request is refused.
    Refuse,
}

#[cfg(test)]
mod tests {
    use super::Condition;

    #[test]
    fn conditions_in_code_are_normalized_as_in_a_config() {
        let condition = Condition::default()
            .with_method("post")
            .and_then(|it| it.with_host("API.example.com"))
            .and_then(|it| it.with_header("X-Tier", "Gold"))
            .unwrap();
        assert_eq!(condition.methods, ["POST"]);
        assert_eq!(condition.headers[0].0, "x-tier");

        assert!(Condition::default().with_method("*").is_err());
        assert!(Condition::default().with_host("a b").is_err());
        assert!(Condition::default().with_header("x y", "").is_err());
        assert!(condition.with_header("x-tier", "silver").is_err());
    }
}
