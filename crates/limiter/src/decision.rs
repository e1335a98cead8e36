//! The answer: allowed or not, and everything that went into it.

use crate::failure::COME_BACK_US;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Mode, Outcome, Reply, Timestamp, Wait};
use tidegate_policy::matching::Meeting;
use tidegate_policy::respond::{Refusal, Respond, Spoken};
use tidegate_policy::{Band, KeyPart, Limit, Policy};

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
}

/// What one band answered. Small, for a decision is moved about with four of them in place.
#[derive(Clone, Copy)]
struct Entry {
    limit: u32,
    /// [`NO_BAND`] where the limit refused without any band being asked: for want of an identity,
    /// or of a store.
    band: u32,
    outcome: Outcome,
}

const NO_BAND: u32 = u32::MAX;

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

/// What one band of a limit answered.
#[derive(Clone, Copy)]
pub struct Applied<'a> {
    limit: &'a Limit,
    limit_index: usize,
    band: Option<&'a Band>,
    band_index: usize,
    spoken: Option<&'a Spoken>,
    outcome: &'a Outcome,
    key: &'a str,
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
        let mut bands = SmallVec::new();
        let mut binding: Option<(usize, Wait, u64)> = None;
        let mut met_of_binding = None;
        let mut outcomes = reply.outcomes.iter();
        for met in meeting.met {
            let Some(limit) = rules.limit(policy, met.limit) else {
                continue;
            };
            for (band, outcome) in (0..).zip(outcomes.by_ref().take(limit.bands.len())) {
                if limit.mode == Mode::Enforce
                    && binding.is_none_or(|best| binds(reply.passed, outcome, best))
                {
                    binding = Some((bands.len(), outcome.wait, outcome.remaining));
                    met_of_binding = Some(met);
                }
                bands.push(Entry {
                    limit: number(met.limit),
                    band,
                    outcome: *outcome,
                });
            }
        }
        Self {
            rules,
            policy,
            at: reply.at,
            allowed: reply.passed,
            decided_by: DecidedBy::Store,
            binding: binding.map(|(nth, ..)| nth),
            key: met_of_binding.map_or_else(SmallVec::new, |met| {
                SmallVec::from_slice(meeting.subject(met).as_bytes())
            }),
            bands,
        }
    }

    /// The decision that `pieces` amount to. Bands that nobody was asked about are left out.
    pub(crate) fn pieced(
        rules: Arc<Rules>,
        policy: usize,
        meeting: &Meeting<'_>,
        pieces: &Pieces<'_>,
    ) -> Self {
        let mut bands = SmallVec::new();
        let mut binding: Option<(usize, Wait, u64)> = None;
        let mut met_of_binding = pieces.denied.and_then(|nth| meeting.met.get(nth));
        if let Some(met) = met_of_binding {
            let outcome = Outcome {
                remaining: 0,
                wait: Wait::from_micros(COME_BACK_US),
                reset_us: 0,
            };
            // No wait is longer: it stays the one that is reported.
            binding = Some((0, Wait::NEVER, 0));
            bands.push(Entry {
                limit: number(met.limit),
                band: NO_BAND,
                outcome,
            });
        }
        let mut outcomes = pieces.outcomes.iter();
        for met in meeting.met {
            let Some(limit) = rules.limit(policy, met.limit) else {
                continue;
            };
            let asked = (0..).zip(outcomes.by_ref().take(limit.bands.len()));
            for (band, outcome) in asked.filter_map(|(band, it)| Some((band, (*it)?))) {
                if limit.mode == Mode::Enforce
                    && binding.is_none_or(|best| binds(pieces.allowed, &outcome, best))
                {
                    binding = Some((bands.len(), outcome.wait, outcome.remaining));
                    met_of_binding = Some(met);
                }
                bands.push(Entry {
                    limit: number(met.limit),
                    band,
                    outcome,
                });
            }
        }
        Self {
            at: pieces.at,
            allowed: pieces.allowed,
            decided_by: pieces.decided_by,
            binding: binding.map(|(nth, ..)| nth),
            key: met_of_binding.map_or_else(SmallVec::new, |met| {
                SmallVec::from_slice(meeting.subject(met).as_bytes())
            }),
            bands,
            ..Self::unlimited(rules, policy)
        }
    }

    /// Refused by a limit because the request lacks the identity that its key needs.
    pub(crate) fn identity_missing(rules: Arc<Rules>, policy: usize, limit: usize) -> Self {
        let outcome = Outcome {
            remaining: 0,
            wait: Wait::NEVER,
            reset_us: 0,
        };
        Self {
            allowed: false,
            binding: Some(0),
            bands: SmallVec::from_iter([Entry {
                limit: number(limit),
                band: NO_BAND,
                outcome,
            }]),
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
        }
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

/// The number of a limit. There are never as many as would not fit.
fn number(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Whether `outcome` is to be reported rather than `best`, which was written earlier.
fn binds(passed: bool, outcome: &Outcome, best: (usize, Wait, u64)) -> bool {
    let (_, wait, remaining) = best;
    if passed {
        outcome.remaining < remaining
    } else {
        outcome.wait > wait
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

// === impl Applied ===

impl<'a> Applied<'a> {
    /// The limit's name.
    pub fn limit(&self) -> &'a str {
        &self.limit.name
    }

    /// The number of the limit, counted from 0 in the order of its policy.
    pub fn limit_index(&self) -> usize {
        self.limit_index
    }

    /// The number of the band, counted from 0 in the order of its limit; `None` where no band was
    /// asked.
    pub fn band_index(&self) -> Option<usize> {
        self.band.map(|_| self.band_index)
    }

    /// What the limit keys its buckets by.
    pub fn key_parts(&self) -> &'a [KeyPart] {
        &self.limit.key
    }

    /// What refusals of the limit look like, if not as its policy says.
    pub fn refusal(&self) -> Option<&'a Refusal> {
        self.limit.refusal.as_deref()
    }

    /// The band as header fields spell it; `None` where no band was asked.
    pub fn spoken(&self) -> Option<&'a Spoken> {
        self.spoken
    }

    /// The band as written, such as `10/s burst 50`; `None` where the limit refused without any band
    /// being asked, because the identity was missing or the store did not answer.
    pub fn band(&self) -> Option<&'a str> {
        self.band.map(|band| band.text.as_str())
    }

    /// The band's label, if it has one.
    pub fn label(&self) -> Option<&'a str> {
        self.band?.label.as_deref()
    }

    /// Whose bucket it was, such as `ip:192.0.2.1`. Secrets appear as a hash.
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// Whether this band had room.
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_allowed()
    }

    /// Whether the limit is only watched.
    pub fn is_shadow(&self) -> bool {
        self.limit.mode == Mode::Shadow
    }

    /// The most units that the band lets through at once.
    pub fn capacity(&self) -> u64 {
        self.band.map_or(0, |band| band.quota.capacity())
    }

    /// Whole units left.
    pub fn remaining(&self) -> u64 {
        self.outcome.remaining
    }

    /// When the same request would pass if nobody else came: zero if it passes, never if it cannot.
    pub fn wait(&self) -> Wait {
        self.outcome.wait
    }

    /// When to try again: zero if it passes, `None` if it never can.
    pub fn retry_after(&self) -> Option<Duration> {
        self.outcome.wait.as_duration()
    }

    /// How long until the bucket is as good as new.
    pub fn reset_after(&self) -> Duration {
        Duration::from_micros(self.outcome.reset_us)
    }
}

impl fmt::Debug for Applied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied")
            .field("limit", &self.limit())
            .field("band", &self.band())
            .field("key", &self.key())
            .field("allowed", &self.is_allowed())
            .field("remaining", &self.remaining())
            .field("wait", &self.wait())
            .field("reset_after", &self.reset_after())
            .finish()
    }
}
