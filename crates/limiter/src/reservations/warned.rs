//! The `warn` shares of bands that usage beyond a reservation reaches.
//!
//! An id carries the content of a band's alert, like the quota: by value, so that a reload between the reservation
//! and its settlement changes nothing. Only bands of limits with `warn` have it.

use super::bytes::{PayloadReader, push_bytes};
use crate::decision::BandUsage;
use crate::request::PreparedRequest;
use std::fmt;
use tidegate_core::{Outcome, Timestamp};
use tidegate_policy::policy::MetLimit;
use tidegate_policy::{Limit, WarnShares};

/// The maximum length of a band's text in an id. Longer ones are cut.
const BAND_TEXT_MAX: usize = 64;

/// The maximum size of the numbers of a warning, without its texts: the shares, and four lengths.
const NUMBERS_BYTES_MAX: usize = WarnShares::MAX + 4 * 5;

/// The `warn` shares of a band, and the names in its alert.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SealedWarning {
    pub(super) shares: WarnShares,
    pub(super) limit: Box<str>,
    /// The band as written.
    pub(super) band: Box<str>,
    /// The bucket's key as shown to operators, if it is not the end of the bucket's name.
    pub(super) key: Option<Box<str>>,
}

/// A `warn` share of a band that [`Limiter::commit`](crate::Limiter::commit) reached: by usage beyond the estimate,
/// usage came from below the share to it or beyond.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use tidegate::{Limiter, Request};
///
/// let limiter = Limiter::from_yaml("
/// policies:
///   - name: llm
///     reserve: 60s
///     limits: [{ name: tokens, key: user, rate: 1000/h, algorithm: fixed-window, warn: [80%, 100%] }]
/// ")?;
/// let reservation = limiter.reserve(&Request::new().user("ann").cost(500), None).await?;
/// let settled = limiter.commit(reservation.id().expect("there is room"), 850).await?;
/// let [warning] = settled.warnings() else { panic!("one band reached a share") };
/// assert_eq!((&*warning.limit, &*warning.band, &*warning.key), ("tokens", "1000/h", "user:ann"));
/// assert_eq!((warning.share, warning.remaining, warning.capacity), (80, 150, 1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareWarning {
    /// The name of the limit.
    pub limit: Box<str>,
    /// The band as written, such as `1000/h`.
    pub band: Box<str>,
    /// The bucket's key, such as `user:ann`. Secrets appear as a hash.
    pub key: Box<str>,
    /// The unit that the limit counts; `None` for requests.
    pub unit: Option<Box<str>>,
    /// The highest share that was reached, in percent of the capacity.
    pub share: u8,
    /// The whole units left.
    pub remaining: u64,
    /// The maximum number of units that the band admits at once.
    pub capacity: u64,
    /// The time of the charge, by the clock of the component that decided.
    pub at: Timestamp,
    /// The end of the window, by that clock; `None` if the band does not count in windows.
    pub window_ends: Option<Timestamp>,
}

// === impl SealedWarning ===

impl SealedWarning {
    /// Returns the warning of a band of a matched limit; `None` if the limit warns of nothing.
    pub(super) fn of(
        question: &PreparedRequest<'_>,
        (met, limit, band): (&MetLimit, &Limit, usize),
    ) -> Option<Self> {
        if limit.warn.is_empty() {
            return None;
        }
        let matched = &question.matched;
        let text = matched.bands(met).get(band)?.text.as_str();
        let key = matched.meeting.subject(met);
        let bucket = matched.meeting.bucket(met);
        let is_named_by_it = bucket.get(met.scope..) == Some(key.as_bytes());
        Some(Self {
            shares: limit.warn,
            limit: limit.name.as_str().into(),
            band: text.get(..BAND_TEXT_MAX).unwrap_or(text).into(),
            key: (!is_named_by_it).then(|| key.into()),
        })
    }

    /// Returns an upper bound of its size in an id.
    pub(super) fn bytes_max(&self) -> usize {
        let key = self.key.as_deref().unwrap_or_default();
        NUMBERS_BYTES_MAX + self.limit.len() + self.band.len() + key.len()
    }

    /// Appends the warning of a band; an empty list of shares if there is none.
    pub(super) fn write(warning: Option<&Self>, out: &mut Vec<u8>) {
        let Some(warning) = warning else {
            return push_bytes(out, &[]);
        };
        let shares: Vec<u8> = warning.shares.percents().collect();
        push_bytes(out, &shares);
        push_bytes(out, warning.limit.as_bytes());
        push_bytes(out, warning.band.as_bytes());
        push_bytes(out, warning.key.as_deref().unwrap_or_default().as_bytes());
    }

    /// Decodes the shares that [`write`](Self::write) begins with. If there are any, the rest follows.
    pub(super) fn read_shares(bytes: &mut PayloadReader<'_>) -> Option<WarnShares> {
        WarnShares::new(bytes.bytes()?).ok()
    }

    /// Decodes the rest of the output of [`write`](Self::write).
    pub(super) fn read_rest(shares: WarnShares, bytes: &mut PayloadReader<'_>) -> Option<Self> {
        let (limit, band, key) = (bytes.text()?, bytes.text()?, bytes.text()?);
        Some(Self {
            shares,
            limit: limit.into(),
            band: band.into(),
            key: (!key.is_empty()).then(|| key.into()),
        })
    }

    /// Returns the warning that a charge of `charged` units causes, after which the bucket has this outcome.
    pub(super) fn raised(
        &self,
        (charged, outcome): (u64, &Outcome),
        band: WarnedCharge<'_>,
    ) -> Option<ShareWarning> {
        let usage = BandUsage {
            charged,
            remaining: outcome.remaining,
            overdrawn: outcome.overdrawn,
            capacity: band.capacity,
        };
        let ends = || band.at.plus(outcome.reset_us);
        let subject = || String::from_utf8_lossy(band.subject).into();
        Some(ShareWarning {
            share: usage.reached(self.shares)?,
            limit: self.limit.clone(),
            band: self.band.clone(),
            key: self.key.clone().unwrap_or_else(subject),
            unit: band.unit.map(Into::into),
            remaining: outcome.remaining,
            capacity: band.capacity,
            at: band.at,
            window_ends: band.has_window.then(ends),
        })
    }
}

/// The band of a charge beyond an estimate.
#[derive(Clone, Copy)]
pub(super) struct WarnedCharge<'a> {
    pub(super) at: Timestamp,
    /// The end of the bucket's name.
    pub(super) subject: &'a [u8],
    pub(super) unit: Option<&'a str>,
    pub(super) capacity: u64,
    pub(super) has_window: bool,
}

// Implemented by hand: keys are named after clients.
impl fmt::Debug for SealedWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedWarning")
            .field("shares", &self.shares)
            .field("limit", &self.limit)
            .field("band", &self.band)
            .finish_non_exhaustive()
    }
}

// Implemented by hand: keys are named after clients.
impl fmt::Debug for ShareWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareWarning")
            .field("limit", &self.limit)
            .field("band", &self.band)
            .field("share", &self.share)
            .field("remaining", &self.remaining)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
