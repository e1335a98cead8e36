//! Bands that have come to what their limits warn of (`warn`).

use super::bands::NO_DESCRIPTOR;
use super::{AppliedBand, Decision};
use tidegate_policy::matching::Met;

/// What was charged to a band whose limit warns.
pub(crate) struct WarnedCharge<'a> {
    pub(crate) met: &'a Met,
    pub(crate) band: usize,
    pub(crate) cost: u64,
    pub(crate) capacity: u64,
    /// Of a hundred parts of the capacity.
    pub(crate) warn: u8,
}

impl Decision {
    /// The bands that this request has brought to what their limits warn of (`warn: 95%`): as much or
    /// more is used now, and was not before. Their keys are empty, but for the
    /// [`binding`](Self::binding)'s.
    ///
    /// It is told once on the way up, by whichever request it was; where charges are given back, it may
    /// be told again.
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies: [{ name: api, limits: [{ name: all, rate: 10/h, algorithm: fixed-window, warn: 80% }] }]
    /// ")?;
    /// let warned = |cost| -> Result<usize, tidegate::CheckError> {
    ///     Ok(limiter.check_now(&Request::new().cost(cost))?.warnings().count())
    /// };
    /// assert_eq!((warned(7)?, warned(1)?, warned(1)?), (0, 1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn warnings(&self) -> impl Iterator<Item = AppliedBand<'_>> {
        let warned = self.warned;
        let key = || std::str::from_utf8(&self.key).unwrap_or_default();
        // Nearly always there are none, and then nothing is looked at.
        let bands = if warned == 0 { 0 } else { self.bands.len() };
        // Marks count every band, also those that were skipped.
        let entries = (0_u32..).zip(self.bands.iter().take(bands));
        let marked = entries.filter(move |(nth, _)| is_marked(warned, *nth));
        marked.filter_map(move |(nth, entry)| {
            self.describe(entry, if nth == self.binding { key() } else { "" })
        })
    }

    /// Takes note of what was charged to bands that warn.
    pub(crate) fn warn<'a>(&mut self, charged: impl Iterator<Item = WarnedCharge<'a>>) {
        for it in charged {
            let descriptor = it.met.descriptor.unwrap_or(NO_DESCRIPTOR);
            let limit = u32::try_from(it.met.limit).ok();
            let place = self.bands.iter().position(|entry| {
                Some(entry.limit) == limit
                    && usize::from(entry.band) == it.band
                    && entry.descriptor == descriptor
            });
            let Some((place, entry)) = place.and_then(|at| Some((at, self.bands.get(at)?))) else {
                continue;
            };
            if entry.outcome.is_allowed() && it.crosses(entry.outcome.remaining) {
                let bit = u32::try_from(place).ok();
                self.warned |= bit.and_then(|bit| 1_u32.checked_shl(bit)).unwrap_or(0);
            }
        }
    }
}

impl WarnedCharge<'_> {
    /// Whether it was this charge that has brought the band there, where so much remains of it.
    fn crosses(&self, remaining: u64) -> bool {
        let used = self.capacity.saturating_sub(remaining);
        let before = used.saturating_sub(self.cost);
        let is_there =
            |used: u64| u128::from(used) * 100 >= u128::from(self.capacity) * u128::from(self.warn);
        is_there(used) && !is_there(before)
    }
}

fn is_marked(marks: u32, nth: u32) -> bool {
    marks.checked_shr(nth).unwrap_or(0) & 1 == 1
}
