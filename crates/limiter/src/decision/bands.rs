//! The answers of all bands, and the choice of the reported one.

use super::{MatchedLimits, NOTHING};
use smallvec::SmallVec;
use std::cmp::Reverse;
use tidegate_core::{Ask, LimitMode, Outcome, Wait};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::policy::{MetLimit, MetLimits, UnmetLimit};
use tidegate_policy::{Limit, OnFailure, Policy};

/// The answer of one band. Kept small, because a decision is moved with four of them inline.
#[derive(Clone, Copy)]
pub(super) struct BandAnswer {
    pub(super) limit: u32,
    /// [`NO_BAND`] if no band was evaluated: the limit is unlimited, or it refused because an identity or the
    /// store is missing. Includes [`SKIPPED`] if the store did not answer and the limit does not refuse for
    /// that, and [`CHARGED`] if a refused request charged it.
    pub(super) band: u16,
    /// The index of the descriptor that matched; [`NO_DESCRIPTOR`] if the request as a whole matched.
    pub(super) descriptor: u16,
    /// The answer of the limit's plan, if it has one.
    pub(super) planned: PlanAnswer,
    pub(super) outcome: BandOutcome,
}

/// The outcome of a band, as far as decisions report it.
#[derive(Clone, Copy)]
pub(super) struct BandOutcome {
    pub(super) remaining: u64,
    pub(super) wait: Wait,
    pub(super) reset_us: u64,
    /// The amount that the request consumes, or would: 0 if it only reads the band.
    pub(super) amount: u64,
}

/// The choice of the reported band among those that are shown to it, in the order written.
#[derive(Clone, Copy)]
pub(super) struct BandChoice {
    /// The index of the best band so far; [`NO_CHOICE`] if there is none.
    number: usize,
    wait: Wait,
    remaining: u64,
    amount: u64,
    /// True if all bands count the same unit.
    is_one_unit: bool,
}

pub(super) const NO_BAND: u16 = u16::MAX;

/// Marks bands that were not evaluated. There are never enough bands to reach it.
const SKIPPED: u16 = 1 << 14;

/// Marks bands that a refused request charged.
const CHARGED: u16 = 1 << 13;

pub(super) const NO_DESCRIPTOR: u16 = u16::MAX;

/// The index of the chosen band if there is none.
const NO_CHOICE: usize = usize::MAX;

/// The answers of all bands, in the order written, and the reported one.
pub(super) struct Bands<'m> {
    pub(super) entries: SmallVec<[BandAnswer; 4]>,
    choice: BandChoice,
    /// The matched limit that it belongs to.
    met: Option<&'m MetLimit>,
    /// The remaining time of the longest block, in microseconds; 0 if there is none.
    pub(super) blocked_us: u64,
}

impl BandAnswer {
    /// Returns the entry of a limit that refuses without evaluating any band.
    pub(super) fn without_band(limit: usize, descriptor: Option<u16>, wait: Wait) -> Self {
        Self {
            limit: number(limit),
            band: NO_BAND,
            descriptor: descriptor.unwrap_or(NO_DESCRIPTOR),
            planned: PlanAnswer::NotAsked,
            outcome: BandOutcome::unasked(0, wait),
        }
    }

    /// Returns the entry of a limit that refuses because an identity or a plan is missing.
    pub(super) fn refused(refused: &UnmetLimit) -> Self {
        Self {
            planned: refused.planned,
            ..Self::without_band(refused.limit, refused.descriptor, Wait::NEVER)
        }
    }

    /// Returns the entry of a limit without bands, which lets every request pass.
    fn unlimited(met: &MetLimit) -> Self {
        let entry = Self::without_band(met.limit, met.descriptor, Wait::NONE);
        Self {
            outcome: BandOutcome::unasked(u64::MAX, Wait::NONE),
            planned: met.planned,
            ..entry
        }
    }

    /// Returns the entry of a band that was not evaluated and lets the request pass.
    fn skipped(met: &MetLimit, band: u16) -> Self {
        Self {
            band: band | SKIPPED,
            ..Self::unlimited(met)
        }
    }

    pub(super) fn is_skipped(&self) -> bool {
        self.band != NO_BAND && self.band & SKIPPED != 0
    }

    /// Returns the index of the band, evaluated or not.
    pub(super) fn band_index(&self) -> usize {
        let marks = if self.band == NO_BAND {
            0
        } else {
            SKIPPED | CHARGED
        };
        usize::from(self.band & !marks)
    }

    /// Returns the index of an evaluated band; of any other, an index that no band has.
    pub(super) fn evaluated_index(&self) -> usize {
        usize::from(self.band & !CHARGED)
    }

    /// Returns true if a refused request charged the band.
    pub(super) fn is_charged(&self) -> bool {
        self.band != NO_BAND && self.band & CHARGED != 0
    }

    pub(super) fn set_charged(&mut self) {
        self.band |= CHARGED;
    }

    /// Returns the index of the descriptor that matched the limit.
    pub(super) fn described_by(&self) -> Option<u16> {
        (self.descriptor != NO_DESCRIPTOR).then_some(self.descriptor)
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.band == NO_BAND && self.outcome.is_allowed()
    }

    /// Returns true if it refuses because the state of the bucket is unknown.
    pub(super) fn is_denied(&self) -> bool {
        self.band == NO_BAND && !self.outcome.is_allowed()
    }
}

impl BandOutcome {
    /// Returns the outcome of a band that was not evaluated.
    fn unasked(remaining: u64, wait: Wait) -> Self {
        Self {
            remaining,
            wait,
            reset_us: 0,
            amount: 0,
        }
    }

    #[inline]
    fn new(outcome: &Outcome, amount: u64) -> Self {
        Self {
            remaining: outcome.remaining,
            wait: outcome.wait,
            reset_us: outcome.reset_us,
            amount,
        }
    }

    #[inline]
    pub(super) fn is_allowed(&self) -> bool {
        self.wait.is_none()
    }

    /// Returns true if this band is scarcer than `other` for requests like this one: less of it is left in
    /// proportion to the amount that the request consumes. A band of which it consumes nothing is never
    /// scarcer than another.
    #[inline(never)]
    fn is_scarcer(&self, other: &BandChoice) -> bool {
        match (self.amount, other.amount) {
            (0, 0) => self.remaining < other.remaining,
            (0, _) => false,
            (_, 0) => true,
            (own, others) => {
                let own_left = u128::from(self.remaining) * u128::from(others);
                own_left < u128::from(other.remaining) * u128::from(own)
            }
        }
    }
}

impl BandChoice {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            number: NO_CHOICE,
            wait: Wait::NONE,
            remaining: 0,
            amount: 0,
            is_one_unit: policy.counts_one_unit(),
        }
    }

    /// Returns true if a band with this outcome is to be reported rather than the best so far, which was
    /// written earlier.
    #[inline]
    pub(super) fn is_better(&self, passed: bool, outcome: &BandOutcome) -> bool {
        if self.number == NO_CHOICE {
            true
        } else if !passed {
            outcome.wait > self.wait
        } else if self.is_one_unit {
            outcome.remaining < self.remaining
        } else {
            outcome.is_scarcer(self)
        }
    }

    #[inline]
    pub(super) fn choose(&mut self, number: usize, outcome: &BandOutcome) {
        self.number = number;
        self.wait = outcome.wait;
        self.remaining = outcome.remaining;
        self.amount = outcome.amount;
    }

    /// Returns the index of the chosen band.
    #[inline]
    pub(super) fn number(&self) -> Option<usize> {
        (self.number != NO_CHOICE).then_some(self.number)
    }
}

impl<'m> Bands<'m> {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            entries: SmallVec::new(),
            choice: BandChoice::new(policy),
            met: None,
            blocked_us: 0,
        }
    }

    /// Adds a limit that refuses because the state of its bucket is unknown. If it `binds`, it is reported
    /// regardless of the other answers.
    pub(super) fn deny(&mut self, met: &'m MetLimit, wait: Wait, binds: bool) {
        if binds && self.choice.number().is_none() {
            // No wait is longer.
            let outcome = BandOutcome::unasked(0, Wait::NEVER);
            self.choice.choose(self.entries.len(), &outcome);
            self.met = Some(met);
        }
        self.entries.push(BandAnswer {
            planned: met.planned,
            ..BandAnswer::without_band(met.limit, met.descriptor, wait)
        });
    }

    /// Adds the answers to `asks`, which has one item for each band of each matched limit, and then for its
    /// block. `outcomes` has an item for each of them; `None` if neither the store nor local buckets answered. Only outcomes for which `counts` returns true
    /// are reported; its first argument is the index among the matched limits.
    // Inlined into every decision: for stores that always answer everything, `Option` compiles away.
    #[inline]
    pub(super) fn add(
        &mut self,
        matched: &MatchedLimits<'m>,
        passed: bool,
        (asks, mut outcomes): (&[Ask<'_>], impl Iterator<Item = Option<Outcome>>),
        counts: impl Fn(usize, &Limit, &BandOutcome) -> bool,
    ) {
        let mut asks = asks.iter();
        for (nth, met) in matched.meeting.met.iter().enumerate() {
            let Some(limit) = matched.limit(met) else {
                continue;
            };
            let bands = matched.bands(met);
            if bands.is_empty() {
                self.entries.push(BandAnswer::unlimited(met));
                continue;
            }
            let first = self.entries.len();
            for (band, outcome) in (0..).zip(outcomes.by_ref().take(bands.len())) {
                // With one unit, nothing depends on the amounts.
                let amount = match asks.next() {
                    Some(ask) if !self.choice.is_one_unit => matched.amount(ask.op),
                    _ => 0,
                };
                let Some(outcome) = outcome else {
                    if passed && is_skipped(matched, limit) {
                        self.entries.push(BandAnswer::skipped(met, band));
                    }
                    continue;
                };
                let outcome = BandOutcome::new(&outcome, amount);
                if limit.mode == LimitMode::Enforce
                    && self.choice.is_better(passed, &outcome)
                    && counts(nth, limit, &outcome)
                {
                    self.choice.choose(self.entries.len(), &outcome);
                    self.met = Some(met);
                }
                self.entries.push(BandAnswer {
                    limit: number(met.limit),
                    band,
                    descriptor: met.descriptor.unwrap_or(NO_DESCRIPTOR),
                    planned: met.planned,
                    outcome,
                });
            }
            if matched.block(met).is_some()
                && asks.next().is_some()
                && let Some(Some(block)) = outcomes.next()
                && !block.is_allowed()
            {
                self.block(met, first, &block, |outcome| {
                    limit.mode == LimitMode::Enforce && counts(nth, limit, outcome)
                });
            }
        }
        if !matched.meeting.watching.is_empty() {
            self.watch(matched.meeting.watching);
        }
    }

    /// Adds limits in shadow mode that would refuse because an identity or a plan is missing.
    #[cold]
    fn watch(&mut self, watching: &[UnmetLimit]) {
        self.entries
            .extend(watching.iter().map(BandAnswer::refused));
    }

    /// Records that a limit blocks the client. Its bands begin at `first`; the one with the longest wait,
    /// then the fewest remaining units, is reported as refusing until the block ends.
    #[cold]
    fn block(
        &mut self,
        met: &'m MetLimit,
        first: usize,
        block: &Outcome,
        counts: impl Fn(&BandOutcome) -> bool,
    ) {
        let bands = self.entries.iter().enumerate().skip(first);
        let tells_most = bands.min_by_key(|(_, entry)| {
            let BandOutcome {
                wait, remaining, ..
            } = entry.outcome;
            (Reverse(wait), remaining)
        });
        let number = tells_most.map_or(first, |(number, _)| number);
        if self.entries.len() <= number {
            // The state of its bands is unknown.
            let entry = BandAnswer::without_band(met.limit, met.descriptor, block.wait);
            self.entries.push(BandAnswer { band: 0, ..entry });
        }
        let Some(entry) = self.entries.get_mut(number) else {
            return;
        };
        let mut outcome = entry.outcome;
        outcome.wait = outcome.wait.max(block.wait);
        outcome.remaining = 0;
        outcome.reset_us = outcome.reset_us.max(block.reset_us);
        entry.outcome = outcome;
        if counts(&outcome) {
            let left_us = block.wait.as_micros().unwrap_or(u64::MAX);
            self.blocked_us = self.blocked_us.max(left_us);
            if self.choice.is_better(false, &outcome) {
                self.choice.choose(number, &outcome);
                self.met = Some(met);
            }
        }
    }

    /// Returns the index of the reported band; [`NOTHING`] if there is none.
    #[inline]
    pub(super) fn binding(&self) -> u32 {
        self.choice.number().map_or(NOTHING, number)
    }

    /// Returns the key of the reported band's bucket.
    #[inline]
    pub(super) fn key(&self, meeting: &MetLimits<'_>) -> SmallVec<[u8; 48]> {
        self.met.map_or_else(SmallVec::new, |met| {
            SmallVec::from_slice(meeting.subject(met).as_bytes())
        })
    }
}

/// Returns true if a limit that was not evaluated lets requests pass for that reason.
fn is_skipped(matched: &MatchedLimits<'_>, limit: &Limit) -> bool {
    limit.mode == LimitMode::Enforce && matched.rules.on_failure(Some(limit)) == OnFailure::Allow
}

/// Converts an index of a limit or a band. There are never too many to fit.
fn number(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
