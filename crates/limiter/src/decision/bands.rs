//! The answers of all bands, and the choice of the reported one.

use super::{MatchedLimits, NOTHING};
use smallvec::SmallVec;
use std::cmp::Reverse;
use tidegate_core::{LimitMode, Outcome, Wait};
use tidegate_policy::matching::{Met, MetLimits, UnmetLimit};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::{Limit, OnFailure};

/// The answer of one band. Kept small, because a decision is moved with four of them inline.
#[derive(Clone, Copy)]
pub(super) struct BandAnswer {
    pub(super) limit: u32,
    /// [`NO_BAND`] if no band was evaluated: the limit is unlimited, or it refused because an identity or the
    /// store is missing. Includes [`SKIPPED`] if the store did not answer and the limit does not refuse for
    /// that.
    pub(super) band: u16,
    /// The index of the descriptor that matched; [`NO_DESCRIPTOR`] if the request as a whole matched.
    pub(super) descriptor: u16,
    /// The answer of the limit's plan, if it has one.
    pub(super) planned: PlanAnswer,
    pub(super) outcome: Outcome,
}

pub(super) const NO_BAND: u16 = u16::MAX;

/// Marks bands that were not evaluated. There are never enough bands to reach it.
const SKIPPED: u16 = 1 << 14;

pub(super) const NO_DESCRIPTOR: u16 = u16::MAX;

/// The answers of all bands, in the order written, and the reported one.
#[derive(Default)]
pub(super) struct Bands<'m> {
    pub(super) entries: SmallVec<[BandAnswer; 4]>,
    /// The reported band so far: its index, its wait and its remaining units.
    best: Option<(usize, Wait, u64)>,
    /// The matched limit that it belongs to.
    met: Option<&'m Met>,
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
            outcome: Outcome::new(0, wait, 0),
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
    fn unlimited(met: &Met) -> Self {
        let entry = Self::without_band(met.limit, met.descriptor, Wait::NONE);
        Self {
            outcome: Outcome::new(u64::MAX, Wait::NONE, 0),
            planned: met.planned,
            ..entry
        }
    }

    /// Returns the entry of a band that was not evaluated and lets the request pass.
    fn skipped(met: &Met, band: u16) -> Self {
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
        let mark = if self.is_skipped() { SKIPPED } else { 0 };
        usize::from(self.band & !mark)
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

impl<'m> Bands<'m> {
    /// Adds a limit that refuses because the state of its bucket is unknown. If it `binds`, it is reported
    /// regardless of the other answers.
    pub(super) fn deny(&mut self, met: &'m Met, wait: Wait, binds: bool) {
        if binds && self.best.is_none() {
            // No wait is longer.
            self.best = Some((self.entries.len(), Wait::NEVER, 0));
            self.met = Some(met);
        }
        self.entries.push(BandAnswer {
            planned: met.planned,
            ..BandAnswer::without_band(met.limit, met.descriptor, wait)
        });
    }

    /// Adds the answers. `outcomes` has one item for each band of each matched limit, and then for its block;
    /// `None` if neither the store nor local buckets answered. Only outcomes for which `counts` returns true
    /// are reported; its first argument is the index among the matched limits.
    // Inlined into every decision: for stores that always answer everything, `Option` compiles away.
    #[inline]
    pub(super) fn add(
        &mut self,
        scene: &MatchedLimits<'m>,
        passed: bool,
        mut outcomes: impl Iterator<Item = Option<Outcome>>,
        counts: impl Fn(usize, &Limit, &Outcome) -> bool,
    ) {
        for (nth, met) in scene.meeting.met.iter().enumerate() {
            let Some(limit) = scene.limit(met) else {
                continue;
            };
            let bands = scene.bands(met);
            if bands.is_empty() {
                self.entries.push(BandAnswer::unlimited(met));
                continue;
            }
            let first = self.entries.len();
            for (band, outcome) in (0..).zip(outcomes.by_ref().take(bands.len())) {
                let Some(outcome) = outcome else {
                    if passed && is_skipped(scene, limit) {
                        self.entries.push(BandAnswer::skipped(met, band));
                    }
                    continue;
                };
                if limit.mode == LimitMode::Enforce
                    && self.best.is_none_or(|best| binds(passed, &outcome, best))
                    && counts(nth, limit, &outcome)
                {
                    self.best = Some((self.entries.len(), outcome.wait, outcome.remaining));
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
            if scene.block(met).is_some()
                && let Some(Some(block)) = outcomes.next()
                && !block.is_allowed()
            {
                self.block(met, first, &block, |outcome| {
                    limit.mode == LimitMode::Enforce && counts(nth, limit, outcome)
                });
            }
        }
        if !scene.meeting.watching.is_empty() {
            self.watch(scene.meeting.watching);
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
        met: &'m Met,
        first: usize,
        block: &Outcome,
        counts: impl Fn(&Outcome) -> bool,
    ) {
        let bands = self.entries.iter().enumerate().skip(first);
        let tells_most = bands.min_by_key(|(_, entry)| {
            let Outcome {
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
        let mut outcome = entry.outcome.with_wait(entry.outcome.wait.max(block.wait));
        outcome.remaining = 0;
        outcome.reset_us = outcome.reset_us.max(block.reset_us);
        entry.outcome = outcome;
        if counts(&outcome) {
            let left_us = block.wait.as_micros().unwrap_or(u64::MAX);
            self.blocked_us = self.blocked_us.max(left_us);
            if self.best.is_none_or(|best| binds(false, &outcome, best)) {
                self.best = Some((number, outcome.wait, outcome.remaining));
                self.met = Some(met);
            }
        }
    }

    /// Returns the index of the reported band; [`NOTHING`] if there is none.
    #[inline]
    pub(super) fn binding(&self) -> u32 {
        self.best.map_or(NOTHING, |(nth, ..)| number(nth))
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
fn is_skipped(scene: &MatchedLimits<'_>, limit: &Limit) -> bool {
    limit.mode == LimitMode::Enforce && scene.rules.on_failure(Some(limit)) == OnFailure::Allow
}

/// Converts an index of a limit or a band. There are never too many to fit.
fn number(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Returns true if `outcome` is to be reported rather than `best`, which was written earlier.
pub(super) fn binds(passed: bool, outcome: &Outcome, best: (usize, Wait, u64)) -> bool {
    let (_, wait, remaining) = best;
    if passed {
        outcome.remaining < remaining
    } else {
        outcome.wait > wait
    }
}
