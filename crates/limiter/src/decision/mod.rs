//! The decision on a request: allowed or refused, and every band that was evaluated.
//!
//! | module | what it is |
//! |---|---|
//! | `scene` | the limits that a request matched |
//! | `brought` | limits that a request carries itself |
//! | `bands` | the answers of all bands, and the choice of the reported one |
//! | `applied` | the answer of one band, for frontends |
//! | `described` | the reported band of each descriptor |
//! | `warnings` | bands that reached the `warn` threshold of their limit |
//! | `shadow` | refusals that shadow mode turned into passes |
//! | `skipped` | bands that were not evaluated because the store did not answer |
//! | `guarded` | decisions by guards, and the reason of a decision |
//! | `hits` | the cost of the request to each limit, for statistics |

mod applied;
mod bands;
mod brought;
mod described;
mod guarded;
mod hits;
mod scene;
mod shadow;
mod skipped;
mod warnings;

pub use applied::AppliedBand;
pub(crate) use brought::RequestLimits;
pub use hits::{HitResult, LimitHits};
pub(crate) use scene::MatchedLimits;
pub use skipped::SkippedBand;
pub(crate) use warnings::WarnedCharge;

use crate::answers::Answers;
use crate::failure::COME_BACK_US;
use crate::giving::Charges;
use crate::planning::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::rules::Rules;
use bands::{BandAnswer, Bands};
use guarded::NO_GUARD;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Outcome, Reply, Timestamp, Wait};
use tidegate_memory::SystemClock;
use tidegate_policy::matching::UnmetLimit;
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::respond::{HeaderNames, RefusalStyle, Respond};
use tidegate_policy::{Band, Limit, Policy};

/// The decision on a request.
///
/// One band is reported. If the request passes, it is the enforced band with the fewest remaining units; if
/// it is refused, the refusing band with the longest wait. [`binding`] returns that band, and [`applied`]
/// returns all bands.
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
    /// The purpose the request was decided for.
    purpose: AskPurpose,
    /// The number of descriptors of the request.
    descriptors: u16,
    /// The index of the guard that decided, or [`NO_GUARD`].
    guard: u16,
    /// Guards in shadow mode that match the request, one bit each.
    watched: u64,
    /// The index in `bands` of the reported band, or [`NOTHING`].
    binding: u32,
    /// The reported band's key.
    key: SmallVec<[u8; 48]>,
    bands: SmallVec<[BandAnswer; 4]>,
    /// The refundable charges; `None` if there are none.
    charges: Option<Arc<Charges>>,
    /// The limits that the request carried itself; `None` if it carried none.
    brought: Option<Arc<RequestLimits>>,
    /// The plans used; `None` if no limit of the policy has one.
    planned: Option<Arc<PreparedPlans>>,
    /// The bands that reached the `warn` threshold of their limit, one bit per index in `bands`.
    warned: u32,
    /// If the request passes: the time it was queued. If it is refused: the remaining time of the longest
    /// block, or of the guard's ban. In microseconds; 0 if there is no such time.
    held_us: u64,
}

/// The value of `binding` if no band is reported.
const NOTHING: u32 = u32::MAX;

/// The component that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The store; also if no limit applied.
    Store,
    /// Local buckets in memory, because the store did not answer.
    Local,
    /// The failure policy (`on_failure`), because the store did not answer.
    Failure,
}

impl DecidedBy {
    /// Returns the name used in logs, responses and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Local => "local",
            Self::Failure => "failure",
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Returns the decision for a store's reply.
    #[inline(never)]
    pub(crate) fn new(scene: &MatchedLimits<'_>, reply: &Reply) -> Self {
        let mut bands = Bands::default();
        let outcomes = reply.outcomes.iter().copied().map(Some);
        bands.add(scene, reply.passed, outcomes, |_, _, _| true);
        // Built in place: a decision is large, and moving it would take a good part of the time to make it.
        Self {
            rules: Arc::clone(scene.rules),
            policy: scene.number,
            at: reply.at,
            allowed: reply.passed,
            decided_by: DecidedBy::Store,
            purpose: scene.purpose,
            descriptors: scene.descriptors,
            guard: NO_GUARD,
            watched: scene.watched,
            binding: bands.binding(),
            key: bands.key(&scene.meeting),
            charges: None,
            brought: scene.brought.cloned(),
            planned: scene.planned.cloned(),
            warned: 0,
            held_us: if reply.passed { 0 } else { bands.blocked_us },
            // Last, so that it is moved once.
            bands: bands.entries,
        }
    }

    /// Returns the decision for `answers`. Bands without an answer are left out, except those that let the
    /// request pass for that reason (`on_failure: allow`).
    pub(crate) fn of_answers(scene: &MatchedLimits<'_>, answers: &Answers) -> Self {
        let mut bands = Bands::default();
        let denial_decides = !answers.passed && answers.decided_by == DecidedBy::Failure;
        for nth in &answers.denied {
            if let Some(met) = scene.meeting.met.get(*nth) {
                bands.deny(met, Wait::from_micros(COME_BACK_US), denial_decides);
            }
        }
        let counts = |nth, limit: &Limit, outcome: &Outcome| {
            !limit.quota_mode || outcome.is_allowed() || answers.spokesman == Some(nth)
        };
        bands.add(scene, answers.passed, answers.outcomes(), counts);
        Self {
            at: answers.at,
            allowed: answers.passed,
            decided_by: answers.decided_by,
            binding: bands.binding(),
            key: bands.key(&scene.meeting),
            held_us: if answers.passed { 0 } else { bands.blocked_us },
            bands: bands.entries,
            ..Self::blank(scene)
        }
    }

    /// Returns a refusal by a limit because the request lacks the identity that its key needs, or because its
    /// plan has no rate for the subject. Reports the descriptor that would have matched the limit, if any.
    pub(crate) fn identity_missing(scene: &MatchedLimits<'_>, refused: UnmetLimit) -> Self {
        Self {
            allowed: false,
            binding: 0,
            bands: SmallVec::from_iter([BandAnswer::refused(&refused)]),
            ..Self::blank(scene)
        }
    }

    /// Returns an allowed decision: no limit applied, or only unlimited ones.
    pub(crate) fn unlimited(scene: &MatchedLimits<'_>) -> Self {
        let mut bands = Bands::default();
        bands.add(scene, true, std::iter::empty(), |_, _, _| true);
        Self {
            bands: bands.entries,
            ..Self::blank(scene)
        }
    }

    /// Returns an allowed decision without any band.
    fn blank(scene: &MatchedLimits<'_>) -> Self {
        Self {
            rules: Arc::clone(scene.rules),
            policy: scene.number,
            at: Timestamp::default(),
            allowed: true,
            decided_by: DecidedBy::Store,
            purpose: scene.purpose,
            descriptors: scene.descriptors,
            guard: NO_GUARD,
            watched: scene.watched,
            binding: NOTHING,
            key: SmallVec::new(),
            bands: SmallVec::new(),
            charges: None,
            brought: scene.brought.cloned(),
            planned: scene.planned.cloned(),
            warned: 0,
            held_us: 0,
        }
    }

    /// Records the charges of this decision.
    pub(crate) fn charge(&mut self, charges: Arc<Charges>) {
        self.charges = Some(charges);
    }

    /// Returns the same decision with the time its request was queued.
    pub(crate) fn after(mut self, waited: Duration) -> Self {
        self.held_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self
    }

    /// Returns the refundable charges, if there are any.
    pub(crate) fn charges(&self) -> Option<&Arc<Charges>> {
        self.charges.as_ref()
    }

    /// Returns the id of the limiter that decided.
    pub(crate) fn owner(&self) -> u64 {
        self.rules.owner
    }

    /// Returns true if the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns true if no enforced limit applied to the request, or none was evaluated because the store did
    /// not answer. The request is then allowed, unless a [`guard`](Self::guard) refuses it, and there is no
    /// [`binding`](Self::binding).
    pub fn is_unlimited(&self) -> bool {
        self.binding == NOTHING
    }

    /// Returns the reported band, or `None` if no enforced limit applied.
    pub fn binding(&self) -> Option<AppliedBand<'_>> {
        let entry = self.bound()?;
        self.describe(entry, std::str::from_utf8(&self.key).unwrap_or_default())
    }

    /// Returns the name of the limit whose band is reported. Cheaper than [`binding`](Self::binding), for
    /// counters.
    #[inline]
    pub fn limit(&self) -> Option<&str> {
        Some(&self.limit_of(self.bound()?)?.name)
    }

    /// Returns the index of that limit in its policy. A limit that the request carries comes after the last.
    pub fn limit_index(&self) -> Option<usize> {
        usize::try_from(self.bound()?.limit).ok()
    }

    /// Returns every evaluated band of every limit that the request matched, shadow limits included, in the
    /// order written. Bands that were [skipped](Self::skipped) are left out. An `unlimited` limit appears
    /// once, without a band. Keys are empty, except that of the [`binding`](Self::binding) band.
    pub fn applied(&self) -> impl Iterator<Item = AppliedBand<'_>> {
        let key = std::str::from_utf8(&self.key).unwrap_or_default();
        let asked = (0..).zip(&self.bands).filter(|(_, it)| !it.is_skipped());
        asked.filter_map(move |(i, entry)| {
            let is_binding = self.binding == i;
            self.describe(entry, if is_binding { key } else { "" })
        })
    }

    /// Returns true if a limit of the policy takes its rate from a plan.
    #[inline]
    pub fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// Returns the name of the plan source and its answer, once for each matched limit with a plan.
    pub fn plans(&self) -> impl Iterator<Item = (&str, PlanAnswer)> {
        let asked = self
            .bands
            .iter()
            .filter(|it| it.planned != PlanAnswer::NotAsked);
        asked.filter_map(|entry| {
            let plan = self.limit_of(entry)?.plan.as_ref()?;
            let source = self.rules.plans.get(plan.source)?;
            Some((source.name.as_str(), entry.planned))
        })
    }

    /// Returns the name of the policy that decided.
    pub fn policy(&self) -> &str {
        self.policy_rules().map_or("", |policy| &policy.name)
    }

    /// Returns the index of that policy, from 0 in the order of the configuration.
    pub fn policy_index(&self) -> usize {
        self.policy
    }

    /// Returns the policy's response settings.
    pub fn respond(&self) -> &Respond {
        match self.policy_rules() {
            Some(policy) => policy.respond(),
            None => Respond::standard(),
        }
    }

    /// Returns the style of a refusal: that of the guard that refuses or of the reported limit, otherwise
    /// that of the policy.
    pub fn refusal(&self) -> &RefusalStyle {
        if let Some(guard) = self.guard() {
            let own = guard.refusal.as_deref();
            return own.unwrap_or_else(|| self.respond().refusal_for(guard.reason));
        }
        let own = self.binding().and_then(|binding| binding.refusal());
        own.unwrap_or(&self.respond().refusal)
    }

    /// Returns the component that decided.
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns the time of the decision, by the clock of the component that decided. Returns the epoch if
    /// neither the store nor local buckets were needed.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the current time for responses that contain an instant: the wall clock if this machine's clock
    /// decided, otherwise [`at`](Self::at). They differ once the wall clock has been set.
    pub fn wall_time(&self) -> Timestamp {
        let machine = self.rules.machine_clock;
        let is_machine = match self.decided_by {
            DecidedBy::Store => machine.store,
            DecidedBy::Local | DecidedBy::Failure => machine.local,
        };
        if is_machine || self.at == Timestamp::default() {
            SystemClock::wall()
        } else {
            self.at
        }
    }

    /// Returns the time for which a limit queued the request before it passed (`on_refusal: wait`). Zero if
    /// it passed immediately or was refused.
    pub fn waited(&self) -> Duration {
        let waited_us = if self.allowed { self.held_us } else { 0 };
        Duration::from_micros(waited_us)
    }

    /// Returns true if the request is refused because a limit blocks the client (`block`): from this refusal
    /// on, if it is the first, or since an earlier one.
    pub fn is_blocked(&self) -> bool {
        self.blocked_for().is_some()
    }

    /// Returns the time for which a limit blocks the client, if that is the reason for the refusal; the
    /// longest of several. Further requests do not prolong a block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let login = LimitSpec::new("login").band("5/s").block(Duration::from_secs(300));
    /// let limiter = Limiter::builder().limit(login).build()?;
    /// assert!(limiter.check_now(&Request::new().cost(5))?.is_allowed());
    /// let refused = limiter.check_now(&Request::new())?;
    /// assert_eq!(refused.blocked_for(), Some(Duration::from_secs(300)));
    /// assert!(limiter.check_now(&Request::new())?.is_blocked());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocked_for(&self) -> Option<Duration> {
        let is_blocked = !self.allowed && self.held_us > 0 && !self.is_barred();
        is_blocked.then(|| Duration::from_micros(self.held_us))
    }

    fn policy_rules(&self) -> Option<&Policy> {
        self.rules.policies.get(self.policy)
    }

    /// Returns the reported entry.
    #[inline]
    fn bound(&self) -> Option<&BandAnswer> {
        self.bands.get(usize::try_from(self.binding).ok()?)
    }

    #[inline]
    fn limit_of(&self, entry: &BandAnswer) -> Option<&Limit> {
        let policy = self.policy_rules()?;
        policy.limit(usize::try_from(entry.limit).ok()?)
    }

    fn describe<'a>(&'a self, entry: &'a BandAnswer, key: &'a str) -> Option<AppliedBand<'a>> {
        let limit_index = usize::try_from(entry.limit).ok()?;
        let band_index = entry.band_index();
        let policy = self.policy_rules()?;
        let limit = policy.limit(limit_index)?;
        let (band, spoken) = match (self.brought_with(limit_index, entry), entry.planned.rate()) {
            (Some((band, spoken)), _) => (Some(band), Some(spoken)),
            (None, Some(rate)) => self.planned_at(limit_index, rate),
            (None, None) => (
                limit.bands.get(band_index),
                policy.spoken(limit_index, band_index),
            ),
        };
        Some(AppliedBand {
            limit,
            limit_index,
            band,
            band_index,
            descriptor: entry.described_by(),
            spoken,
            outcome: &entry.outcome,
            key,
            planned: limit.plan.as_ref().and_then(|plan| {
                let source = self.rules.plans.get(plan.source)?;
                Some((source.name.as_str(), entry.planned))
            }),
        })
    }

    /// Returns the band of a rate from a plan, and its header names.
    fn planned_at(&self, limit: usize, rate: u32) -> (Option<&Band>, Option<&HeaderNames>) {
        let planned = self.planned.as_deref();
        (
            planned.and_then(|it| it.band(self.policy, limit, rate)),
            planned.and_then(|it| it.spoken(self.policy, limit, rate)),
        )
    }

    /// Returns the band that the request carries itself, if `entry` belongs to it and was evaluated.
    #[inline]
    fn brought_with(&self, limit: usize, entry: &BandAnswer) -> Option<(&Band, &HeaderNames)> {
        let brought = self.brought.as_deref()?;
        let is_hidden = limit == self.policy_rules()?.limits.len() && entry.band_index() == 0;
        is_hidden.then(|| brought.get(entry.descriptor))?
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
