//! Bands that reached the `warn` threshold of their limit.

use super::bands::NO_DESCRIPTOR;
use super::{AppliedBand, Decision};
use tidegate_policy::matching::Met;

/// A charge to a band whose limit has a `warn` threshold.
pub(crate) struct WarnedCharge<'a> {
    pub(crate) met: &'a Met,
    pub(crate) band: usize,
    pub(crate) cost: u64,
    pub(crate) capacity: u64,
    /// The threshold, in percent of the capacity.
    pub(crate) warn: u8,
}

impl Decision {
    /// Returns the bands that reached the `warn` threshold of their limit (`warn: 95%`) through this request:
    /// usage is at or above it now, and was below it before. Keys are empty, except that of the
    /// [`binding`](Self::binding) band.
    ///
    /// A band warns once on the way up, for the request that reaches the threshold. After refunds it may warn
    /// again.
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
        // Nearly always there are none, and no band is visited.
        let bands = if warned == 0 { 0 } else { self.bands.len() };
        // Marks count every band, including skipped ones.
        let entries = (0_u32..).zip(self.bands.iter().take(bands));
        let marked = entries.filter(move |(nth, _)| is_marked(warned, *nth));
        marked.filter_map(move |(nth, entry)| {
            self.describe(entry, if nth == self.binding { key() } else { "" })
        })
    }

    /// Marks the bands that these charges brought to their threshold.
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
    /// Returns true if this charge brought the band to the threshold, where `remaining` is left after it.
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
