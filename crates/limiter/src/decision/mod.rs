//! The answer: allowed or not, and everything that went into it.
//!
//! | module | what it is |
//! |---|---|
//! | `scene` | what it is about: the limits that a request meets |
//! | `brought` | limits that a request brings itself |
//! | `bands` | what all bands answered, and which of them is reported |
//! | `applied` | what one band answered, for those who tell it |
//! | `described` | what is reported of each descriptor |
//! | `warnings` | bands that have come to what their limits warn of |
//! | `shadow` | refusals that shadow mode turned into passes |
//! | `skipped` | bands that were not asked because the store did not answer |
//! | `guarded` | what guards have to do with it, and why it is as it is |
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
    /// What the request was decided for.
    purpose: AskPurpose,
    /// How many descriptors the request has.
    descriptors: u16,
    /// The number of the guard that decided, or [`NO_GUARD`].
    guard: u16,
    /// Guards that only watch and know the request, a bit each.
    watched: u64,
    /// Which of `bands` is reported, or [`NOTHING`].
    binding: u32,
    /// The reported band's key.
    key: SmallVec<[u8; 48]>,
    bands: SmallVec<[BandAnswer; 4]>,
    /// What may be given back; absent where nothing may.
    charges: Option<Arc<Charges>>,
    /// What the request brought itself; absent where it brought nothing.
    brought: Option<Arc<RequestLimits>>,
    /// What plans said; absent where no limit of the policy has one.
    planned: Option<Arc<PreparedPlans>>,
    /// Which of `bands` have come to what their limits warn of, a bit each.
    warned: u32,
    /// Of a request that passes, how long it was held back; of one that does not, for how long the
    /// longest block refuses it, or the guard that does. In microseconds; 0 where there was no such time.
    held_us: u64,
}

/// No band is reported.
const NOTHING: u32 = u32::MAX;

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

// === impl Decision ===

impl Decision {
    /// The decision that a store's reply amounts to.
    #[inline(never)]
    pub(crate) fn new(scene: &MatchedLimits<'_>, reply: &Reply) -> Self {
        let mut bands = Bands::default();
        let outcomes = reply.outcomes.iter().copied().map(Some);
        bands.add(scene, reply.passed, outcomes, |_, _, _| true);
        // Put together here, for it is large, and moving it would be a good part of making it.
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
            // At the end, so that it is moved once.
            bands: bands.entries,
        }
    }

    /// The decision that `answers` amount to. Bands that nobody was asked about are left out, but those
    /// whose limits let the request pass for that reason.
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

    /// Refused by a limit because the request lacks the identity that its key needs, or because its
    /// plan has nothing for the subject; told of the
    /// descriptor by which it would have been met, if by one.
    pub(crate) fn identity_missing(scene: &MatchedLimits<'_>, refused: UnmetLimit) -> Self {
        Self {
            allowed: false,
            binding: 0,
            bands: SmallVec::from_iter([BandAnswer::refused(&refused)]),
            ..Self::blank(scene)
        }
    }

    /// Allowed, because no limit applied, or none that limits anything.
    pub(crate) fn unlimited(scene: &MatchedLimits<'_>) -> Self {
        let mut bands = Bands::default();
        bands.add(scene, true, std::iter::empty(), |_, _, _| true);
        Self {
            bands: bands.entries,
            ..Self::blank(scene)
        }
    }

    /// Allowed, and nothing said of any limit.
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

    /// Takes note of what it has charged.
    pub(crate) fn charge(&mut self, charges: Arc<Charges>) {
        self.charges = Some(charges);
    }

    /// The same decision, for which the request was held back for `waited`.
    pub(crate) fn after(mut self, waited: Duration) -> Self {
        self.held_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
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
    /// not answer. It is then allowed, unless a [`guard`](Self::guard) refuses it, and there is no
    /// [`binding`](Self::binding).
    pub fn is_unlimited(&self) -> bool {
        self.binding == NOTHING
    }

    /// The band that is reported, or `None` where no enforced limit applied.
    pub fn binding(&self) -> Option<AppliedBand<'_>> {
        let entry = self.bound()?;
        self.describe(entry, std::str::from_utf8(&self.key).unwrap_or_default())
    }

    /// The name of the limit whose band is reported: all of [`binding`](Self::binding) that counting
    /// takes.
    #[inline]
    pub fn limit(&self) -> Option<&str> {
        Some(&self.limit_of(self.bound()?)?.name)
    }

    /// Returns the index of that limit in its policy. The limit that a request brings comes after the last.
    pub fn limit_index(&self) -> Option<usize> {
        usize::try_from(self.bound()?.limit).ok()
    }

    /// Every band of every limit that the request met, shadow limits included, in the order
    /// written; without those that were [not asked](Self::skipped). A limit that is `unlimited` is there
    /// once, without a band. Their keys are empty, but for the [`binding`](Self::binding)'s.
    pub fn applied(&self) -> impl Iterator<Item = AppliedBand<'_>> {
        let key = std::str::from_utf8(&self.key).unwrap_or_default();
        let asked = (0..).zip(&self.bands).filter(|(_, it)| !it.is_skipped());
        asked.filter_map(move |(i, entry)| {
            let is_binding = self.binding == i;
            self.describe(entry, if is_binding { key } else { "" })
        })
    }

    /// Whether a limit of the policy has its rate from a plan.
    #[inline]
    pub fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// What plans answered, once for each limit met that has one: the names of their sources, and the
    /// answers.
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

    /// What a refusal looks like: as the guard says that refuses, or the limit that is reported, else as
    /// the policy does.
    pub fn refusal(&self) -> &RefusalStyle {
        if let Some(guard) = self.guard() {
            let own = guard.refusal.as_deref();
            return own.unwrap_or_else(|| self.respond().refusal_for(guard.reason));
        }
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

    /// Returns the present time for answers that name an instant: the wall clock where this machine's
    /// clock decided, else [`at`](Self::at). They differ once the wall clock was set.
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

    /// How long a limit held the request back before it let it pass (`on_refusal: wait`); zero where
    /// it passed at once, or was refused.
    pub fn waited(&self) -> Duration {
        let waited_us = if self.allowed { self.held_us } else { 0 };
        Duration::from_micros(waited_us)
    }

    /// Whether it is refused because a limit is closed to whoever asked (`block`): by this refusal, if
    /// it is the first, or by an earlier one.
    pub fn is_blocked(&self) -> bool {
        self.blocked_for().is_some()
    }

    /// For how long a limit is closed to whoever asked, if that refuses; of several, the longest. It is
    /// not prolonged by asking again.
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

    /// The entry that is reported.
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

    /// The band of a rate that a plan told, and how it is spelt.
    fn planned_at(&self, limit: usize, rate: u32) -> (Option<&Band>, Option<&HeaderNames>) {
        let planned = self.planned.as_deref();
        (
            planned.and_then(|it| it.band(self.policy, limit, rate)),
            planned.and_then(|it| it.spoken(self.policy, limit, rate)),
        )
    }

    /// What the request itself brought, if `entry` is of that and was asked.
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
