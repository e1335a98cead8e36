//! The answer of one band, for frontends.

use super::bands::BandOutcome;
use std::fmt;
use std::time::Duration;
use tidegate_core::{LimitMode, Wait};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::respond::{HeaderNames, RefusalStyle};
use tidegate_policy::{AnswerReason, Band, KeyPart, Limit};

/// The answer of one band of a limit: its configured values, and the state of the bucket after the request.
/// From [`Decision::binding`](crate::Decision::binding) or [`Decision::applied`](crate::Decision::applied).
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("60/min burst 3"))
///     .build()?;
/// let decision = limiter.check_now(&Request::new().user("ann"))?;
/// let band = decision.binding().expect("a limit applied");
/// assert_eq!((band.limit(), band.key()), ("per-user", "user:ann"));
/// assert_eq!((band.capacity(), band.remaining()), (3, 2));
/// assert_eq!(band.period().as_secs(), 60);
/// assert!(band.is_allowed() && band.retry_after().is_some_and(|wait| wait.is_zero()));
/// assert!(band.reset_after().as_millis() <= 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct AppliedBand<'a> {
    pub(super) limit: &'a Limit,
    pub(super) limit_index: usize,
    pub(super) band: Option<&'a Band>,
    pub(super) band_index: usize,
    pub(super) descriptor: Option<u16>,
    pub(super) spoken: Option<&'a HeaderNames>,
    pub(super) outcome: &'a BandOutcome,
    pub(super) key: &'a str,
    pub(super) reached: Option<u8>,
    pub(super) planned: Option<(&'a str, PlanAnswer)>,
}

// === impl AppliedBand ===

impl<'a> AppliedBand<'a> {
    /// Returns the limit's name.
    pub fn limit(&self) -> &'a str {
        &self.limit.name
    }

    /// Returns the unit that the limit counts; `None` for requests. [`remaining`](Self::remaining) and
    /// [`capacity`](Self::capacity) are in this unit.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("calls").band("10/min"))
    ///     .limit(LimitSpec::new("tokens").unit("tokens").band("1000/h"))
    ///     .build()?;
    /// let decision = limiter.check_now(&Request::new().cost(&[("tokens", 800)]))?;
    /// let binding = decision.binding().expect("a limit applied");
    /// assert_eq!((binding.unit(), binding.remaining()), (Some("tokens"), 200));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unit(&self) -> Option<&'a str> {
        self.limit.unit.reported()
    }

    /// Returns the index of the limit, from 0 in the order of its policy.
    pub fn limit_index(&self) -> usize {
        self.limit_index
    }

    /// Returns the index of the band, from 0 in the order of its limit; `None` if no band was evaluated.
    pub fn band_index(&self) -> Option<usize> {
        self.band.map(|_| self.band_index)
    }

    /// Returns the index of the request's descriptor that matched the limit, from 0; `None` if the limit
    /// matched the request as a whole.
    pub fn descriptor(&self) -> Option<usize> {
        self.descriptor.map(usize::from)
    }

    /// Returns the parts of the limit's key, such as [`KeyPart::User`]. A limit with one bucket for all has
    /// [`KeyPart::Global`].
    pub fn key_parts(&self) -> &'a [KeyPart] {
        &self.limit.key
    }

    /// Returns true if the limit uses this attribute. Either its key contains the attribute, and the address
    /// did not replace it because the request has none, or every condition of the limit tests it.
    pub fn uses_attribute(&self, name: &str) -> bool {
        let mut parts = (0..).zip(&self.limit.key);
        let mut conditions = self.limit.conditions.iter();
        parts.any(|(nth, part)| {
            matches!(part, KeyPart::Attr(it) if it == name) && !self.is_part_replaced(nth)
        }) || (!self.limit.conditions.is_empty()
            && conditions.all(|it| it.attributes.iter().any(|(it, _)| it == name)))
    }

    /// Returns true if the nth part of the key was absent and another value replaces it in the bucket's name.
    /// A part's name ends at a `:` before its own value, and at a `~` before a replacement. Commas are
    /// escaped in values, and all three characters in names.
    fn is_part_replaced(&self, nth: usize) -> bool {
        let part = self.key.split(',').nth(nth).unwrap_or_default();
        let end = part.find([':', '~']).and_then(|end| part.get(end..));
        end.is_some_and(|end| end.starts_with('~'))
    }

    /// Returns the limit's own refusal style; `None` if its policy's applies.
    pub fn refusal(&self) -> Option<&'a RefusalStyle> {
        self.limit.refusal.as_deref()
    }

    /// Returns the band's names in header fields; `None` if no band was evaluated.
    pub fn header_names(&self) -> Option<&'a HeaderNames> {
        self.spoken
    }

    /// Returns the band as written, such as `10/s burst 50`. Returns `None` if no band was evaluated: the
    /// limit is `unlimited`, or it refused because the identity was missing or the store did not answer.
    pub fn band(&self) -> Option<&'a str> {
        self.band.map(|band| band.text.as_str())
    }

    /// Returns the band's label, if it has one: a name for several bands of one limit, which appears in
    /// headers and metrics.
    pub fn label(&self) -> Option<&'a str> {
        self.band?.label.as_deref()
    }

    /// Returns the bucket's key, such as `ip:192.0.2.1`. Secrets appear as a hash. Empty unless this is the
    /// [reported](crate::Decision::binding) band, or one of the [warnings](crate::Decision::warnings).
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// Returns the highest of the limit's `warn` shares that the request reached, in percent of the capacity.
    /// `None` unless this is one of the [warnings](crate::Decision::warnings).
    pub fn reached_share(&self) -> Option<u8> {
        self.reached
    }

    /// Returns the name of the plan source that the limit uses, and its answer; `None` if the limit has no
    /// plan.
    pub fn plan(&self) -> Option<(&'a str, PlanAnswer)> {
        self.planned
    }

    /// Returns true if this band had room. The request may be refused all the same, by another band; it was
    /// then not charged here.
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_allowed()
    }

    /// Returns the reason why the band refuses, or [`AnswerReason::Allowed`] if it does not. For a limit in
    /// shadow mode, the reason why it would refuse.
    ///
    /// ```
    /// use tidegate::{AnswerReason, KeyPart, LimitSpec, Limiter, MissingIdentity, Request};
    ///
    /// let limit = LimitSpec::new("users").key(KeyPart::User).missing(MissingIdentity::Refuse).band("1/h");
    /// let limiter = Limiter::builder().limit(limit).build()?;
    /// let reason = |request: Request<'_>| -> Result<_, tidegate::CheckError> {
    ///     Ok(limiter.check_now(&request)?.binding().map(|band| band.reason()))
    /// };
    /// let ann = Request::new().user("ann");
    /// assert_eq!(reason(ann)?, Some(AnswerReason::Allowed));
    /// assert_eq!(reason(ann)?, Some(AnswerReason::Limited));
    /// assert_eq!(reason(Request::new())?, Some(AnswerReason::NoIdentity));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reason(&self) -> AnswerReason {
        let wait = self.outcome.wait;
        let blocks = self.limit.block.is_some() && !wait.is_never();
        let lacks_plan = matches!(self.planned, Some((_, PlanAnswer::Refused { .. })));
        match self.band {
            _ if self.is_allowed() => AnswerReason::Allowed,
            Some(_) if blocks => AnswerReason::LimitBlocked,
            Some(_) => AnswerReason::Limited,
            None if lacks_plan => AnswerReason::NoPlan,
            // A missing identity has no known wait; a store may be back in a moment.
            None if wait.is_never() => AnswerReason::NoIdentity,
            None => AnswerReason::NoStore,
        }
    }

    /// Returns true if the limit is in shadow mode.
    pub fn is_shadow(&self) -> bool {
        self.limit.mode == LimitMode::Shadow
    }

    /// Returns the maximum number of units that the band admits at once; 0 if no band was evaluated.
    pub fn capacity(&self) -> u64 {
        self.band.map_or(0, |band| band.quota.capacity())
    }

    /// Returns the band's period; zero if no band was evaluated. Of a calendar window it is the longest, such as 31
    /// days of a month.
    pub fn period(&self) -> Duration {
        let period_us = self.band.map_or(0, |band| band.quota.period_us());
        Duration::from_micros(period_us)
    }

    /// Returns the whole units left in the bucket, after the charge if there was one. 0 if no band was
    /// evaluated.
    pub fn remaining(&self) -> u64 {
        self.outcome.remaining
    }

    /// Returns the time until the same request would pass if no other request came. [`Wait::NONE`] if it
    /// passes now, [`Wait::NEVER`] if it cannot pass: it costs more than the band ever holds.
    pub fn wait(&self) -> Wait {
        self.outcome.wait
    }

    /// Returns the time after which to retry: zero if it passes now, `None` if it can never pass.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("1/s")).build()?;
    /// let retry_after = |cost| -> Result<_, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&Request::new().cost(cost))?;
    ///     Ok(decision.binding().and_then(|band| band.retry_after()))
    /// };
    /// assert!(retry_after(1)?.is_some_and(|wait| wait.is_zero()));
    /// assert!(retry_after(1)?.is_some_and(|wait| !wait.is_zero()));
    /// assert_eq!(retry_after(2)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.outcome.wait.as_duration()
    }

    /// Returns true if the band counts in windows, each of which starts from zero: fixed windows and those of
    /// the calendar. [`reset_after`](Self::reset_after) is then the time until the window ends.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("9/month").band("2/s")).build()?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// let windows: Vec<bool> = decision.applied().map(|band| band.has_window()).collect();
    /// assert_eq!(windows, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has_window(&self) -> bool {
        self.band
            .is_some_and(|band| band.quota.algorithm().ends_at_once())
    }

    /// Returns the time until the bucket is full if no other request comes: for a window, until it ends.
    pub fn reset_after(&self) -> Duration {
        Duration::from_micros(self.outcome.reset_us)
    }
}

impl fmt::Debug for AppliedBand<'_> {
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
