//! The decision on a request: allowed or refused, and every band that was evaluated.
//!
//! | module | what it is |
//! |---|---|
//! | `matched` | the limits that a request matched |
//! | `answers` | the answers of the store, or in place of it |
//! | `bands` | the answers of all bands, and the choice of the reported one |
//! | `applied` | the answer of one band, for frontends |
//! | `described` | the reported band of each descriptor |
//! | `warnings` | bands that reached a `warn` share of their limit, or were charged in spite of a refusal |
//! | `shadow` | refusals that shadow mode turned into passes |
//! | `skipped` | bands that were not evaluated because the store did not answer |
//! | `by_guard` | decisions by guards, and the reason of a decision |
//! | `times` | the time of a decision, and the times in it |
//! | `permit` | the charges, and the permits of requests in flight |
//! | `hits` | the cost of the request to each limit, for statistics |

mod answers;
mod applied;
mod bands;
mod by_guard;
mod described;
mod hits;
mod matched;
mod permit;
mod shadow;
mod skipped;
mod times;
mod warnings;

pub(crate) use answers::{Answer, Answers, ChargeHome, RETRY_AFTER_FAILURE_US, each_of};
pub use answers::{DecidedBy, RETRY_AFTER_FAILURE};
pub use applied::AppliedBand;
pub use hits::{HitResult, LimitHits};
pub(crate) use matched::MatchedLimits;
pub use permit::Permit;
pub use skipped::SkippedBand;
use warnings::WarnedBands;
pub(crate) use warnings::{BandUsage, ChargedBand};

use crate::charges::Charges;
use crate::plans::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::request_limits::RequestLimits;
use crate::rules::Rules;
use bands::{BandAnswer, BandOutcome, Bands};
use by_guard::NO_GUARD;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Ask, Reply, Timestamp, Wait};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::policy::UnmetLimit;
use tidegate_policy::respond::{HeaderNames, RefusalStyle, Respond};
use tidegate_policy::{Band, Limit, Policy};

/// The decision on a request.
///
/// A request may match several limits, and a limit may have several bands. One band is reported. If the
/// request passes, it is the enforced band with the fewest remaining units; if it is refused, the refusing
/// band with the longest wait. [`binding`] returns that band, and [`applied`] returns all bands.
///
/// If the limits of the policy count several units, an allowed request reports the band that is scarcest for
/// requests like this one: the smallest remaining divided by the amount that the request consumes, among the
/// bands of which it consumes anything. If there is none, the band with the fewest remaining units.
///
/// | to learn | method |
/// |---|---|
/// | may it pass, and why? | [`is_allowed`](Self::is_allowed), [`reason`](Self::reason) |
/// | which limit decided? | [`binding`], [`limit`](Self::limit), [`policy`](Self::policy), [`guard`](Self::guard) |
/// | how long is it in flight? | until its [`permit`](Self::permit) is dropped |
/// | when to retry? | [`AppliedBand::retry_after`], [`blocked_for`](Self::blocked_for), [`banned_for`](Self::banned_for) |
/// | did the store decide? | [`decided_by`](Self::decided_by), [`skipped`](Self::skipped) |
/// | what would have refused in shadow mode? | [`shadow_refusals`](Self::shadow_refusals), [`shadow_guards`](Self::shadow_guards) |
///
/// A decision owns what it needs: it stays valid after a reload, and may outlive its request. Clones share
/// their charges, which are [refunded](crate::Limiter::refund_decision) at most once.
///
/// # Example
///
/// ```
/// use tidegate::{LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("all").band("100/h").band("2/s"))
///     .build()?;
/// let decision = limiter.check_now(&Request::new())?;
/// let binding = decision.binding().expect("a limit applied");
/// assert_eq!((binding.limit(), binding.band(), binding.remaining()), ("all", Some("2/s"), 1));
/// assert_eq!(decision.applied().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`binding`]: Decision::binding
/// [`applied`]: Decision::applied
#[derive(Clone)]
pub struct Decision {
    rules: Arc<Rules>,
    /// The index of the policy that decided.
    policy: u32,
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
    /// The refundable charges and the permits; `None` if there are none.
    charges: Option<Arc<Charges>>,
    /// The limits that the request carried itself; `None` if it carried none.
    brought: Option<Arc<RequestLimits>>,
    /// The plans used; `None` if no limit of the policy has one.
    planned: Option<Arc<PreparedPlans>>,
    /// The bands that reached a `warn` share of their limit; `None` if there are none.
    warned: Option<Box<WarnedBands>>,
    /// If the request passes: the time it was queued. If it is refused: the remaining time of the longest
    /// block, or of the guard's ban. In microseconds; 0 if there is no such time.
    held_us: u64,
}

/// The value of `binding` if no band is reported.
const NOTHING: u32 = u32::MAX;

// === impl Decision ===

impl Decision {
    /// Returns the decision for a store's reply.
    #[inline(never)]
    pub(crate) fn new(matched: &MatchedLimits<'_>, asks: &[Ask<'_>], reply: &Reply) -> Self {
        let mut bands = Bands::new(matched.policy);
        let outcomes = reply.outcomes.iter().copied().map(Some);
        bands.add(matched, reply.passed, (asks, outcomes), |_, _, _| true);
        // Built in place: a decision is large, and moving it would take a good part of the time to make it.
        Self {
            rules: Arc::clone(matched.rules),
            policy: matched::index(matched.number),
            at: reply.at,
            allowed: reply.passed,
            decided_by: DecidedBy::Store,
            purpose: matched.purpose,
            descriptors: matched.descriptors,
            guard: NO_GUARD,
            watched: matched.watched,
            binding: bands.binding(),
            key: bands.key(&matched.meeting),
            charges: None,
            brought: matched.brought.cloned(),
            planned: matched.planned.cloned(),
            warned: None,
            held_us: if reply.passed { 0 } else { bands.blocked_us },
            // Last, so that it is moved once.
            bands: bands.entries,
        }
    }

    /// Returns the decision for `answers`. Bands without an answer are left out, except those that let the
    /// request pass for that reason (`on_failure: allow`).
    pub(crate) fn of_answers(
        matched: &MatchedLimits<'_>,
        asks: &[Ask<'_>],
        answers: &Answers,
    ) -> Self {
        let mut bands = Bands::new(matched.policy);
        let denial_decides = !answers.passed && answers.decided_by == DecidedBy::Failure;
        for nth in &answers.denied {
            if let Some(met) = matched.meeting.met.get(*nth) {
                bands.deny(
                    met,
                    Wait::from_micros(RETRY_AFTER_FAILURE_US),
                    denial_decides,
                );
            }
        }
        let counts = |nth, limit: &Limit, outcome: &BandOutcome| {
            !limit.quota_mode || outcome.is_allowed() || answers.spokesman == Some(nth)
        };
        let outcomes = answers.outcomes();
        bands.add(matched, answers.passed, (asks, outcomes), counts);
        Self {
            at: answers.at,
            allowed: answers.passed,
            decided_by: answers.decided_by,
            binding: bands.binding(),
            key: bands.key(&matched.meeting),
            held_us: if answers.passed { 0 } else { bands.blocked_us },
            bands: bands.entries,
            ..Self::blank(matched)
        }
    }

    /// Returns a refusal by a limit because the request lacks the identity that its key needs, or because its
    /// plan has no rate for the subject. Reports the descriptor that would have matched the limit, if any.
    pub(crate) fn identity_missing(matched: &MatchedLimits<'_>, refused: UnmetLimit) -> Self {
        Self {
            allowed: false,
            binding: 0,
            bands: SmallVec::from_iter([BandAnswer::refused(&refused)]),
            ..Self::blank(matched)
        }
    }

    /// Returns an allowed decision: no limit applied, or only unlimited ones.
    pub(crate) fn unlimited(matched: &MatchedLimits<'_>) -> Self {
        let mut bands = Bands::new(matched.policy);
        bands.add(matched, true, (&[], std::iter::empty()), |_, _, _| true);
        Self {
            bands: bands.entries,
            ..Self::blank(matched)
        }
    }

    /// Returns an allowed decision without any band.
    fn blank(matched: &MatchedLimits<'_>) -> Self {
        Self {
            rules: Arc::clone(matched.rules),
            policy: matched::index(matched.number),
            at: Timestamp::default(),
            allowed: true,
            decided_by: DecidedBy::Store,
            purpose: matched.purpose,
            descriptors: matched.descriptors,
            guard: NO_GUARD,
            watched: matched.watched,
            binding: NOTHING,
            key: SmallVec::new(),
            bands: SmallVec::new(),
            charges: None,
            brought: matched.brought.cloned(),
            planned: matched.planned.cloned(),
            warned: None,
            held_us: 0,
        }
    }

    /// Returns the same decision with the time its request was queued.
    pub(crate) fn after(mut self, waited: Duration) -> Self {
        self.held_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self
    }

    /// Returns the id of the limiter that decided.
    pub(crate) fn owner(&self) -> u64 {
        self.rules.owner
    }

    /// Returns true if the request may pass. With limits or guards in shadow mode, it may pass although they
    /// would have refused it.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns true if no enforced limit applied to the request, or none was evaluated because the store did
    /// not answer. The request is then allowed, unless a [`guard`](Self::guard) refuses it, and there is no
    /// [`binding`](Self::binding).
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("login").path("/login").band("5/min")).build()?;
    /// assert!(limiter.check_now(&Request::new().path("/about"))?.is_unlimited());
    /// assert!(!limiter.check_now(&Request::new().path("/login"))?.is_unlimited());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_unlimited(&self) -> bool {
        self.binding == NOTHING
    }

    /// Returns the reported band: the one that a response should mention. `None` if no enforced limit
    /// applied, if a guard decided, or if the store did not answer and every limit has `on_failure: allow`.
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

    /// Returns the index of the [reported](Self::binding) limit in its policy, from 0, for counters that are
    /// kept in a list. A limit that the request carries comes after the last.
    pub fn limit_index(&self) -> Option<usize> {
        usize::try_from(self.bound()?.limit).ok()
    }

    /// Returns every evaluated band of every limit that the request matched, shadow limits included, in the
    /// order written. Bands that were [skipped](Self::skipped) are left out. An `unlimited` limit appears
    /// once, without a band. Keys are empty, except that of the [`binding`](Self::binding) band.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("strict").band("1/h"))
    ///     .limit(LimitSpec::new("planned").band("5/h").shadow())
    ///     .build()?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// let remaining: Vec<_> = decision.applied().map(|band| (band.limit(), band.remaining())).collect();
    /// assert_eq!(remaining, [("strict", 0), ("planned", 4)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// use tidegate::plan::PlanAnswer;
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, inline: { subjects: { ann: 100/h } } }]
    /// policies:
    ///   - name: api
    ///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
    /// ")?;
    /// let answer = |user| -> Result<_, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&Request::new().user(user))?;
    ///     Ok(decision.plans().map(|(_, answer)| answer).next())
    /// };
    /// assert!(matches!(answer("ann")?, Some(PlanAnswer::Rate { .. })));
    /// assert!(matches!(answer("bob")?, Some(PlanAnswer::UnknownBand)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Returns the name of the policy that decided: the one that the request names, otherwise the first of
    /// the configuration.
    pub fn policy(&self) -> &str {
        self.policy_rules().map_or("", |policy| &policy.name)
    }

    /// Returns the index of that policy, from 0 in the order of the configuration.
    #[inline]
    pub fn policy_index(&self) -> usize {
        usize::try_from(self.policy).unwrap_or(usize::MAX)
    }

    /// Returns the policy's response settings: which headers a response has, and how a refusal looks.
    /// Frontends write responses by it.
    pub fn respond(&self) -> &Respond {
        match self.policy_rules() {
            Some(policy) => policy.respond(),
            None => Respond::standard(),
        }
    }

    /// Returns the style of a refusal: that of the guard that refuses or of the reported limit, otherwise
    /// that of the policy. Frontends read status, body and headers from it.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/h")).build()?;
    /// limiter.check_now(&Request::new())?;
    /// let refused = limiter.check_now(&Request::new())?;
    /// assert_eq!(refused.refusal().status, 429);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refusal(&self) -> &RefusalStyle {
        if let Some(guard) = self.guard() {
            let own = guard.refusal.as_deref();
            return own.unwrap_or_else(|| self.respond().refusal_for(guard.reason));
        }
        let own = self.binding().and_then(|binding| binding.refusal());
        own.unwrap_or(&self.respond().refusal)
    }

    /// Returns the component that decided: the store, local buckets, or the failure policy. A guard's
    /// decision counts as the store's.
    ///
    /// # Example
    ///
    /// A store that never answers, and the three policies for that:
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{DecidedBy, LimitSpec, Limiter, OnFailure, Request, Store, StoreError};
    /// use tidegate_core::{Ask, Inspection, Quota, Reply};
    ///
    /// struct Unreachable;
    ///
    /// impl Store for Unreachable {
    ///     async fn decide(&self, _: &[Ask<'_>]) -> Result<Reply, StoreError> {
    ///         Err(StoreError::transient("no route to host"))
    ///     }
    ///     async fn inspect(&self, _: &[u8], _: &Quota) -> Result<Option<Inspection>, StoreError> {
    ///         Err(StoreError::transient("no route to host"))
    ///     }
    ///     async fn reset(&self, _: &[u8], _: &Quota) -> Result<bool, StoreError> {
    ///         Err(StoreError::transient("no route to host"))
    ///     }
    /// }
    ///
    /// for (on_failure, is_allowed, by) in [
    ///     (OnFailure::Local, true, DecidedBy::Local),
    ///     (OnFailure::Allow, true, DecidedBy::Failure),
    ///     (OnFailure::Deny, false, DecidedBy::Failure),
    /// ] {
    ///     let limit = LimitSpec::new("all").band("10/s").on_failure(on_failure);
    ///     let limiter = Limiter::builder().limit(limit).build_with(Unreachable)?;
    ///     let decision = limiter.check(&Request::new()).await?;
    ///     assert_eq!((decision.is_allowed(), decision.decided_by()), (is_allowed, by));
    ///     assert_eq!(limiter.store_health().map(|health| health.is_up), Some(false));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    fn policy_rules(&self) -> Option<&Policy> {
        self.rules.policies.get(self.policy_index())
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
        let (band, spoken) = match (self.request_band(limit_index, entry), entry.planned.rate()) {
            (Some((band, spoken)), _) => (Some(band), Some(spoken)),
            (None, Some(rate)) => self.planned_at(limit_index, rate),
            (None, None) => (
                limit.bands.get(band_index),
                policy.band_header_names(limit_index, band_index),
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
            reached: None,
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
            planned.and_then(|it| it.band(self.policy_index(), limit, rate)),
            planned.and_then(|it| it.band_header_names(self.policy_index(), limit, rate)),
        )
    }

    /// Returns the band that the request carries itself, if `entry` belongs to it and was evaluated.
    #[inline]
    fn request_band(&self, limit: usize, entry: &BandAnswer) -> Option<(&Band, &HeaderNames)> {
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
