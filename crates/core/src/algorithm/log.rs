//! Sliding log and bucketed window: the units taken, and when they stop counting.
//!
//! A unit taken at `t` counts for one period after its *stamp*. A sliding log stamps a unit with
//! the very instant, so it is exact. A bucketed window stamps it with the end of the part of the
//! period that it falls into. So it is never over, at most one part late, and holds a bounded
//! number of entries for any amount.

use super::{Bucket, BucketState};
use crate::quota::{Basis, WINDOW_PARTS};
use crate::{Algorithm, BucketReading, Quota, Receipt, Timestamp, Wait};
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// The state of a sliding log or a bucketed window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Units taken, oldest first, with strictly rising stamps.
    runs: VecDeque<LogRun>,
}

/// Units with the same stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRun {
    /// The stamp, in microseconds: the units count until one period after it.
    pub stamp: u64,
    /// Number of units.
    pub units: u64,
}

impl Log {
    /// Returns a log with these runs, oldest first; one that is out of order counts as long as the
    /// one before it.
    pub fn from_runs(runs: impl IntoIterator<Item = LogRun>) -> Self {
        let mut log = Self::default();
        for run in runs.into_iter().filter(|run| run.units > 0) {
            let last = log.runs.back().map_or(0, |last| last.stamp);
            log.push(LogRun {
                stamp: run.stamp.max(last),
                ..run
            });
        }
        log
    }

    /// Iterates over the units taken, oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = LogRun> + '_ {
        self.runs.iter().copied()
    }

    /// Gives up precision for memory: at most `runs_max` runs stay, neighbours merged under the
    /// later stamp. Never over, for units then count longer and not shorter.
    pub fn coarsen(&mut self, runs_max: usize) {
        let group = self.runs.len().div_ceil(runs_max.max(1));
        if group <= 1 {
            return;
        }
        let mut merged = VecDeque::with_capacity(runs_max);
        while !self.runs.is_empty() {
            let last = self.runs.len().min(group);
            merged.extend(self.runs.drain(..last).reduce(|sum, run| LogRun {
                stamp: run.stamp,
                units: run.units.saturating_add(sum.units),
            }));
        }
        self.runs = merged;
    }

    /// Writes the state as numbers: all units, then each run.
    pub(super) fn encode(&self, put: &mut impl FnMut(u64)) {
        put(self
            .runs()
            .fold(0, |sum, run| run.units.saturating_add(sum)));
        for run in self.runs() {
            put(run.stamp);
            put(run.units);
        }
    }

    /// Reads the state, which needs no basis.
    pub(super) fn decode(
        mut numbers: impl ExactSizeIterator<Item = u64>,
    ) -> Option<(Bucket, Basis)> {
        if numbers.len().is_multiple_of(2) {
            return None;
        }
        numbers.next();
        let runs = std::iter::from_fn(|| {
            let (stamp, units) = (numbers.next()?, numbers.next()?);
            Some(LogRun { stamp, units })
        });
        Some((Bucket::Log(Self::from_runs(runs)), Basis::PLAIN))
    }

    /// Returns the bytes of the runs on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.runs.capacity().saturating_mul(size_of::<LogRun>())
    }

    /// Returns the stamp of a unit taken at `now`. Stamps never fall, even if the clock does.
    fn stamp(&self, quota: &Quota, now: Timestamp) -> u64 {
        let last = self.runs.back().map_or(0, |run| run.stamp);
        stamp_of(quota, now).max(last)
    }

    /// Returns true if `run` still counts at `now`.
    fn counts(quota: &Quota, run: LogRun, now: Timestamp) -> bool {
        run.stamp.saturating_add(quota.period.get()) > now.as_micros()
    }

    /// Iterates over the runs that still count at `now`, oldest first.
    fn live<'a>(
        &'a self,
        quota: &'a Quota,
        now: Timestamp,
    ) -> impl DoubleEndedIterator<Item = LogRun> + 'a {
        self.runs()
            .filter(move |run| Self::counts(quota, *run, now))
    }

    /// Returns the units that count at `now`.
    fn used(&self, quota: &Quota, now: Timestamp) -> u64 {
        self.live(quota, now)
            .fold(0, |sum, run| sum.saturating_add(run.units))
    }

    /// Adds units at `now`, and drops runs that count no more.
    fn add(&mut self, quota: &Quota, units: u64, now: Timestamp) {
        let stamp = self.stamp(quota, now);
        while let Some(run) = self.runs.front()
            && !Self::counts(quota, *run, now)
        {
            self.runs.pop_front();
        }
        self.push(LogRun { stamp, units });
    }

    /// Makes stamps later than `ceiling` that one.
    fn clip(&mut self, ceiling: u64) {
        let mut later = 0_u64;
        while let Some(run) = self.runs.back()
            && run.stamp > ceiling
        {
            later = later.saturating_add(run.units);
            self.runs.pop_back();
        }
        if later > 0 {
            self.push(LogRun {
                stamp: ceiling,
                units: later,
            });
        }
    }

    /// Takes `units` off the newest runs, as far as they still count.
    fn take_off(&mut self, quota: &Quota, mut units: u64, now: Timestamp) {
        while units > 0
            && let Some(last) = self.runs.back_mut()
            && Self::counts(quota, *last, now)
        {
            let off = last.units.min(units);
            last.units = last.units.saturating_sub(off);
            units = units.saturating_sub(off);
            if last.units == 0 {
                self.runs.pop_back();
            }
        }
    }

    /// Appends a run whose stamp is not earlier than any.
    fn push(&mut self, run: LogRun) {
        match self.runs.back_mut() {
            Some(last) if last.stamp == run.stamp => {
                last.units = last.units.saturating_add(run.units);
            }
            _ => self.runs.push_back(run),
        }
    }
}

/// Returns the stamp that a unit taken at `now` gets.
fn stamp_of(quota: &Quota, now: Timestamp) -> u64 {
    match quota.algorithm {
        Algorithm::BucketedWindow => {
            let part = part_us(quota);
            (now.as_micros() / part)
                .saturating_add(1)
                .saturating_mul(part.get())
        }
        Algorithm::SlidingLog
        | Algorithm::TokenBucket
        | Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => now.as_micros(),
    }
}

/// Returns the length of a part of the period.
fn part_us(quota: &Quota) -> NonZeroU64 {
    NonZeroU64::new(quota.period.get().div_ceil(WINDOW_PARTS)).unwrap_or(NonZeroU64::MIN)
}

impl BucketState for Log {
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.amount {
            return Wait::NEVER;
        }
        let mut excess = self
            .used(quota, now)
            .saturating_add(cost)
            .saturating_sub(quota.amount);
        if excess == 0 {
            return Wait::NONE;
        }
        for run in self.live(quota, now) {
            excess = excess.saturating_sub(run.units);
            if excess == 0 {
                let leaves = run.stamp.saturating_add(quota.period.get());
                return Wait::from_micros(leaves.saturating_sub(now.as_micros()));
            }
        }
        Wait::NEVER
    }

    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        self.add(quota, cost, now);
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let most = quota.amount.saturating_add(quota.overdraft);
        let room = most.saturating_sub(self.used(quota, now));
        let units = cost.min(room);
        if units > 0 {
            self.add(quota, units, now);
        }
        units
    }

    /// Exactly: the units carry their stamp.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        if receipt.is_latest() {
            self.take_off(quota, receipt.cost, now);
            return 0;
        }
        let stamp = stamp_of(quota, receipt.at);
        if let Ok(place) = self.runs.binary_search_by_key(&stamp, |run| run.stamp)
            && let Some(run) = self.runs.get_mut(place)
        {
            run.units = run.units.saturating_sub(receipt.cost);
            if run.units == 0 {
                self.runs.remove(place);
            }
        }
        0
    }

    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        let last = self.runs.back().map_or(0, |run| run.stamp);
        last > stamp_of(quota, now).saturating_add(quota.period.get())
    }

    /// Moves stamps that are ahead of the clock to `now`.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_beyond_reach(quota, now) {
            self.clip(stamp_of(quota, now));
        }
    }

    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let newest = self.live(quota, now).next_back();
        let used = self.used(quota, now);
        BucketReading {
            remaining: quota.amount.saturating_sub(used),
            overdrawn: used.saturating_sub(quota.amount),
            reset_us: newest.map_or(0, |run| {
                run.stamp
                    .saturating_add(quota.period.get())
                    .saturating_sub(now.as_micros())
            }),
            mark: 0,
        }
    }

    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let end = |run: &LogRun| run.stamp.saturating_add(quota.period.get());
        Timestamp::from_micros(self.runs.back().map_or(0, end))
    }
}
