//! Bands that reached a `warn` share of their limit, and those that a refused request charged.

use super::bands::NO_DESCRIPTOR;
use super::{AppliedBand, Decision};
use tidegate_policy::WarnShares;
use tidegate_policy::policy::{MetLimit, MetLimits};

/// A charge to a band.
pub(crate) struct ChargedBand<'a> {
    pub(crate) met: &'a MetLimit,
    pub(crate) band: usize,
    /// The units that it was charged.
    pub(crate) units: u64,
    /// The units that it owes after the charge, below empty.
    pub(crate) overdrawn: u64,
    pub(crate) capacity: u64,
    /// The `warn` shares of its limit.
    pub(crate) warn: WarnShares,
}

/// The bands that reached a `warn` share of their limit. A decision without any has room for one pointer.
#[derive(Clone, Debug)]
pub(super) struct WarnedBands(Vec<WarnedBand>);

/// A band that reached a `warn` share of its limit.
#[derive(Clone, Debug)]
struct WarnedBand {
    /// Its index in the bands of the decision.
    place: usize,
    /// The highest share that it reached, in percent.
    share: u8,
    /// The key of its bucket.
    key: Box<str>,
}

impl Decision {
    /// Returns the bands that reached a `warn` share of their limit (`warn: [80%, 100%]`) through this request:
    /// usage is at or above it now, and was below it before. [`AppliedBand::reached_share`] is that share; if a
    /// request reaches several, the highest. Every band has its key, not only the
    /// [`binding`](Self::binding) one.
    ///
    /// A band warns once for each share on the way up, for the request that reaches it, even if that request is
    /// refused and charged all the same. The bucket alone decides that: nothing else is remembered, so a restart
    /// that keeps the bucket repeats no warning. After refunds, or once usage has fallen below the share, it may
    /// warn again.
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - { name: api, limits: [{ name: all, rate: 10/h, algorithm: fixed-window, warn: [80%, 100%] }] }
    /// ")?;
    /// let warned = |cost| -> Result<_, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&Request::new().cost(cost))?;
    ///     Ok(decision.warnings().find_map(|band| band.reached_share()))
    /// };
    /// assert_eq!((warned(7)?, warned(1)?, warned(1)?, warned(1)?), (None, Some(80), None, Some(100)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn warnings(&self) -> impl Iterator<Item = AppliedBand<'_>> {
        let warned = self.warned.iter().flat_map(|warned| &warned.0);
        warned.filter_map(|it| {
            let band = self.describe(self.bands.get(it.place)?, &it.key)?;
            Some(AppliedBand {
                reached: Some(it.share),
                ..band
            })
        })
    }

    /// Records the bands that these charges brought to a share; of a refused request, marks all bands that it
    /// charged all the same.
    pub(crate) fn note<'a>(
        &mut self,
        meeting: &MetLimits<'_>,
        charged: impl Iterator<Item = ChargedBand<'a>>,
    ) {
        let mut warned = Vec::new();
        for it in charged {
            let descriptor = it.met.descriptor.unwrap_or(NO_DESCRIPTOR);
            let limit = u32::try_from(it.met.limit).ok();
            let mut entries = self.bands.iter_mut().enumerate();
            let found = entries.find(|(_, entry)| {
                Some(entry.limit) == limit
                    && entry.band_index() == it.band
                    && entry.descriptor == descriptor
            });
            let Some((place, entry)) = found else {
                continue;
            };
            if !self.allowed {
                entry.set_charged();
            }
            if let Some(share) = it.reached(entry.outcome.remaining) {
                let key = meeting.subject(it.met).into();
                warned.push(WarnedBand { place, share, key });
            }
        }
        if !warned.is_empty() {
            self.warned = Some(Box::new(WarnedBands(warned)));
        }
    }
}

impl ChargedBand<'_> {
    /// Returns the highest share that this charge reached, where `remaining` is left after it.
    fn reached(&self, remaining: u64) -> Option<u8> {
        let usage = BandUsage {
            charged: self.units,
            remaining,
            overdrawn: self.overdrawn,
            capacity: self.capacity,
        };
        usage.reached(self.warn)
    }
}

/// The usage of a band after a charge.
#[derive(Clone, Copy)]
pub(crate) struct BandUsage {
    /// The units of this charge.
    pub(crate) charged: u64,
    pub(crate) remaining: u64,
    /// The units that it owes, below empty.
    pub(crate) overdrawn: u64,
    pub(crate) capacity: u64,
}

impl BandUsage {
    /// Returns the highest of the shares that the charge reached.
    pub(crate) fn reached(self, warn: WarnShares) -> Option<u8> {
        if warn.is_empty() {
            return None;
        }
        let gone = self.capacity.saturating_sub(self.remaining);
        let used = gone.saturating_add(self.overdrawn);
        let before = used.saturating_sub(self.charged);
        warn.reached((before, used), self.capacity)
    }
}
