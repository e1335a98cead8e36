//! The answer: allowed or not, and everything that went into it.
//!
//! | module | what it is |
//! |---|---|
//! | `bands` | what all bands answered, and which of them is reported |
//! | `applied` | what one band answered, for those who tell it |

mod applied;
mod bands;

pub use applied::Applied;

use crate::failure::COME_BACK_US;
use crate::giving::Charges;
use crate::rules::Rules;
use bands::{Bands, Entry};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Outcome, Reply, Timestamp, Wait};
use tidegate_policy::Policy;
use tidegate_policy::matching::Meeting;
use tidegate_policy::respond::{Refusal, Respond};

/// The answer to a request.
///
/// What is reported is one band: where the request passes, the enforced one with the fewest
/// remaining; where it is refused, the refusing one with the longest wait. [`binding`] is that
/// band, and [`applied`] has all of them.
///
/// [`binding`]: Decision::binding
/// [`applied`]: Decision::applied
#[derive(Clone)]
pub struct Decision {
    rules: Arc<Rules>,
    policy: usize,
    at: Timestamp,
    allowed: bool,
    decided_by: DecidedBy,
    /// Which of `bands` is reported.
    binding: Option<usize>,
    /// The reported band's key.
    key: SmallVec<[u8; 48]>,
    bands: SmallVec<[Entry; 4]>,
    /// What may be given back; absent where nothing may.
    charges: Option<Arc<Charges>>,
    /// How long the request was held back, in microseconds.
    waited_us: u64,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The store, or nobody because no limit applied.
    Store,
    /// This process, because the store did not answer.
    Local,
    /// The failure policy, because the store did not answer.
    Failure,
}

impl DecidedBy {
    /// The word for it in logs, answers and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Local => "local",
            Self::Failure => "failure",
        }
    }
}

/// What a decision is put together from where the store answered in part or not at all.
pub(crate) struct Pieces<'a> {
    pub(crate) at: Timestamp,
    pub(crate) allowed: bool,
    pub(crate) decided_by: DecidedBy,
    /// One for each ask, in order; `None` where nobody was asked.
    pub(crate) outcomes: &'a [Option<Outcome>],
    /// Which of the limits met refuses because it is not known.
    pub(crate) denied: Option<usize>,
}

// === impl Decision ===

impl Decision {
    /// The decision that a store's reply amounts to.
    pub(crate) fn new(
        rules: Arc<Rules>,
        policy: usize,
        meeting: &Meeting<'_>,
        reply: &Reply,
    ) -> Self {
        let mut bands = Bands::default();
        let outcomes = reply.outcomes.iter().copied().map(Some);
        bands.add((&rules, policy), meeting, reply.passed, outcomes);
        Self {
            rules,
            policy,
            at: reply.at,
            allowed: reply.passed,
            decided_by: DecidedBy::Store,
            binding: bands.binding(),
            key: bands.key(meeting),
            bands: bands.entries,
            charges: None,
            waited_us: 0,
        }
    }

    /// The decision that `pieces` amount to. Bands that nobody was asked about are left out.
    pub(crate) fn pieced(
        rules: Arc<Rules>,
        policy: usize,
        meeting: &Meeting<'_>,
        pieces: &Pieces<'_>,
    ) -> Self {
        let denied = pieces.denied.and_then(|nth| meeting.met.get(nth));
        let mut bands = denied.map_or_else(Bands::default, |met| {
            Bands::denied(met, Wait::from_micros(COME_BACK_US))
        });
        let outcomes = pieces.outcomes.iter().copied();
        bands.add((&rules, policy), meeting, pieces.allowed, outcomes);
        Self {
            rules,
            policy,
            at: pieces.at,
            allowed: pieces.allowed,
            decided_by: pieces.decided_by,
            binding: bands.binding(),
            key: bands.key(meeting),
            bands: bands.entries,
            charges: None,
            waited_us: 0,
        }
    }

    /// Refused by a limit because the request lacks the identity that its key needs.
    pub(crate) fn identity_missing(rules: Arc<Rules>, policy: usize, limit: usize) -> Self {
        Self {
            allowed: false,
            binding: Some(0),
            bands: SmallVec::from_iter([Entry::without_band(limit, Wait::NEVER)]),
            ..Self::unlimited(rules, policy)
        }
    }

    /// Allowed, because no limit applied.
    pub(crate) fn unlimited(rules: Arc<Rules>, policy: usize) -> Self {
        Self {
            rules,
            policy,
            at: Timestamp::default(),
            allowed: true,
            decided_by: DecidedBy::Store,
            binding: None,
            key: SmallVec::new(),
            bands: SmallVec::new(),
            charges: None,
            waited_us: 0,
        }
    }

    /// The same decision, which has charged `charges`.
    pub(crate) fn with_charges(mut self, charges: Arc<Charges>) -> Self {
        self.charges = Some(charges);
        self
    }

    /// The same decision, for which the request was held back for `waited`.
    pub(crate) fn after(mut self, waited: Duration) -> Self {
        self.waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self
    }

    /// What may be given back, if anything may.
    pub(crate) fn charges(&self) -> Option<&Arc<Charges>> {
        self.charges.as_ref()
    }

    /// The number of the limiter that decided.
    pub(crate) fn owner(&self) -> u64 {
        self.rules.owner
    }

    /// Whether the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Whether no enforced limit applied to the request, or none was asked because the store did
    /// not answer. It is then allowed, and there is no [`binding`](Self::binding).
    pub fn is_unlimited(&self) -> bool {
        self.binding.is_none()
    }

    /// The band that is reported, or `None` where no enforced limit applied.
    pub fn binding(&self) -> Option<Applied<'_>> {
        let entry = self.bands.get(self.binding?)?;
        self.describe(entry, std::str::from_utf8(&self.key).unwrap_or_default())
    }

    /// The name of the limit whose band is reported: all of [`binding`](Self::binding) that counting
    /// takes.
    #[inline]
    pub fn limit(&self) -> Option<&str> {
        let entry = self.bands.get(self.binding?)?;
        let limits = &self.policy_rules()?.limits;
        let limit = limits.get(usize::try_from(entry.limit).ok()?)?;
        Some(&limit.name)
    }

    /// Every band of every limit that the request met, shadow limits included, in the order
    /// written. Their keys are empty, but for the [`binding`](Self::binding)'s.
    pub fn applied(&self) -> impl Iterator<Item = Applied<'_>> {
        let key = std::str::from_utf8(&self.key).unwrap_or_default();
        self.bands.iter().enumerate().filter_map(move |(i, entry)| {
            let is_binding = self.binding == Some(i);
            self.describe(entry, if is_binding { key } else { "" })
        })
    }

    /// The name of the policy that was asked.
    pub fn policy(&self) -> &str {
        self.policy_rules().map_or("", |policy| &policy.name)
    }

    /// The number of that policy, counted from 0 in the order of the configuration.
    pub fn policy_index(&self) -> usize {
        self.policy
    }

    /// What the policy tells clients.
    pub fn respond(&self) -> &Respond {
        match self.policy_rules() {
            Some(policy) => policy.respond(),
            None => Respond::standard(),
        }
    }

    /// What a refusal looks like: as the limit says that is reported, else as the policy does.
    pub fn refusal(&self) -> &Refusal {
        let own = self.binding().and_then(|binding| binding.refusal());
        own.unwrap_or(&self.respond().refusal)
    }

    /// Who decided.
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// The instant at which it was decided, by the clock of whoever did; the epoch where nobody had
    /// to be asked.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// How long a limit held the request back before it let it pass (`on_refusal: wait`); zero where
    /// it passed at once, or was refused.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.waited_us)
    }

    fn policy_rules(&self) -> Option<&Policy> {
        self.rules.policies.get(self.policy)
    }

    fn describe<'a>(&'a self, entry: &'a Entry, key: &'a str) -> Option<Applied<'a>> {
        let limit_index = usize::try_from(entry.limit).ok()?;
        let band_index = usize::try_from(entry.band).ok()?;
        let policy = self.policy_rules()?;
        let limit = policy.limits.get(limit_index)?;
        Some(Applied {
            limit,
            limit_index,
            band: limit.bands.get(band_index),
            band_index,
            spoken: policy.spoken(limit_index, band_index),
            outcome: &entry.outcome,
            key,
        })
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("allowed", &self.allowed)
            .field("policy", &self.policy())
            .field("binding", &self.binding())
            .field("decided_by", &self.decided_by)
            .finish_non_exhaustive()
    }
}
