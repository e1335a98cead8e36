//! What all bands answered, and which of them is reported.

use crate::rules::Rules;
use smallvec::SmallVec;
use tidegate_core::{Mode, Outcome, Wait};
use tidegate_policy::matching::{Meeting, Met};

/// What one band answered. Small, for a decision is moved about with four of them in place.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) limit: u32,
    /// [`NO_BAND`] where the limit refused without any band being asked: for want of an identity,
    /// or of a store.
    pub(super) band: u32,
    pub(super) outcome: Outcome,
}

const NO_BAND: u32 = u32::MAX;

/// What all bands answered, in the order written, and which of them is reported.
#[derive(Default)]
pub(super) struct Bands<'m> {
    pub(super) entries: SmallVec<[Entry; 4]>,
    /// The reported one so far: its number, its wait and what remains of it.
    best: Option<(usize, Wait, u64)>,
    /// The limit met that it belongs to.
    met: Option<&'m Met>,
}

impl Entry {
    /// A limit that refuses without any band being asked.
    pub(super) fn without_band(limit: usize, wait: Wait) -> Self {
        Self {
            limit: number(limit),
            band: NO_BAND,
            outcome: Outcome {
                remaining: 0,
                wait,
                reset_us: 0,
                mark: 0,
            },
        }
    }
}

impl<'m> Bands<'m> {
    /// Begins with a limit that refuses because it is not known, and is reported whatever the others
    /// answer.
    pub(super) fn denied(met: &'m Met, wait: Wait) -> Self {
        Self {
            entries: SmallVec::from_iter([Entry::without_band(met.limit, wait)]),
            // No wait is longer.
            best: Some((0, Wait::NEVER, 0)),
            met: Some(met),
        }
    }

    /// Adds what was answered: one of `outcomes` for each band of each limit met, `None` where nobody
    /// was asked.
    // Part of every decision, and for stores that always answer all, `Option` is to vanish.
    #[inline]
    pub(super) fn add(
        &mut self,
        (rules, policy): (&Rules, usize),
        meeting: &Meeting<'m>,
        passed: bool,
        mut outcomes: impl Iterator<Item = Option<Outcome>>,
    ) {
        for met in meeting.met {
            let Some(limit) = rules.limit(policy, met.limit) else {
                continue;
            };
            for (band, outcome) in (0..).zip(outcomes.by_ref().take(limit.bands.len())) {
                let Some(outcome) = outcome else {
                    continue;
                };
                if limit.mode == Mode::Enforce
                    && self.best.is_none_or(|best| binds(passed, &outcome, best))
                {
                    self.best = Some((self.entries.len(), outcome.wait, outcome.remaining));
                    self.met = Some(met);
                }
                self.entries.push(Entry {
                    limit: number(met.limit),
                    band,
                    outcome,
                });
            }
        }
    }

    /// The number of the band that is reported.
    #[inline]
    pub(super) fn binding(&self) -> Option<usize> {
        self.best.map(|(nth, ..)| nth)
    }

    /// Whose bucket that is.
    #[inline]
    pub(super) fn key(&self, meeting: &Meeting<'_>) -> SmallVec<[u8; 48]> {
        self.met.map_or_else(SmallVec::new, |met| {
            SmallVec::from_slice(meeting.subject(met).as_bytes())
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
