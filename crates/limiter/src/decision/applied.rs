//! What one band answered, for those who tell it.

use std::fmt;
use std::time::Duration;
use tidegate_core::{LimitMode, Outcome, Wait};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::respond::{HeaderNames, RefusalStyle};
use tidegate_policy::{AnswerReason, Band, KeyPart, Limit};

/// What one band of a limit answered.
#[derive(Clone, Copy)]
pub struct AppliedBand<'a> {
    pub(super) limit: &'a Limit,
    pub(super) limit_index: usize,
    pub(super) band: Option<&'a Band>,
    pub(super) band_index: usize,
    pub(super) descriptor: Option<u16>,
    pub(super) spoken: Option<&'a HeaderNames>,
    pub(super) outcome: &'a Outcome,
    pub(super) key: &'a str,
    pub(super) planned: Option<(&'a str, PlanAnswer)>,
}

// === impl Applied ===

impl<'a> AppliedBand<'a> {
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

    /// By which descriptor of the request the limit was met, counted from 0; `None` where by the
    /// request as a whole.
    pub fn descriptor(&self) -> Option<usize> {
        self.descriptor.map(usize::from)
    }

    /// What the limit keys its buckets by.
    pub fn key_parts(&self) -> &'a [KeyPart] {
        &self.limit.key
    }

    /// Whether the limit looks at this attribute: it is in its key, and not the address in its place
    /// because the request had none, or the limit applies only to requests with certain values of it.
    pub fn looks_at_attribute(&self, name: &str) -> bool {
        let mut parts = (0..).zip(&self.limit.key);
        let mut conditions = self.limit.conditions.iter();
        parts.any(|(nth, part)| {
            matches!(part, KeyPart::Attr(it) if it == name) && !self.is_stood_in_for(nth)
        }) || (!self.limit.conditions.is_empty()
            && conditions.all(|it| it.attributes.iter().any(|(it, _)| it == name)))
    }

    /// Whether the nth part of the key was absent, and something else stands in the name of the bucket.
    /// Names end there at a `:` before their own value, and at a `~` before another's; in values commas
    /// are escaped, and in names all three.
    fn is_stood_in_for(&self, nth: usize) -> bool {
        let part = self.key.split(',').nth(nth).unwrap_or_default();
        let end = part.find([':', '~']).and_then(|end| part.get(end..));
        end.is_some_and(|end| end.starts_with('~'))
    }

    /// What refusals of the limit look like, if not as its policy says.
    pub fn refusal(&self) -> Option<&'a RefusalStyle> {
        self.limit.refusal.as_deref()
    }

    /// The band as header fields spell it; `None` where no band was asked.
    pub fn spoken(&self) -> Option<&'a HeaderNames> {
        self.spoken
    }

    /// The band as written, such as `10/s burst 50`; `None` where no band was asked: the limit is
    /// `unlimited`, or it refused because the identity was missing or the store did not answer.
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

    /// The source of plans that the limit asked, by its name, and what it answered; `None` where the
    /// limit has no plan.
    pub fn plan(&self) -> Option<(&'a str, PlanAnswer)> {
        self.planned
    }

    /// Whether this band had room.
    pub fn is_allowed(&self) -> bool {
        self.outcome.is_allowed()
    }

    /// Why the band refuses, in one word; [`AnswerReason::Allowed`] if it does not. Of a limit in shadow mode,
    /// why it would.
    pub fn reason(&self) -> AnswerReason {
        let wait = self.outcome.wait;
        let blocks = self.limit.block.is_some() && !wait.is_never();
        let lacks_plan = matches!(self.planned, Some((_, PlanAnswer::Refused { .. })));
        match self.band {
            _ if self.is_allowed() => AnswerReason::Allowed,
            Some(_) if blocks => AnswerReason::LimitBlocked,
            Some(_) => AnswerReason::Limited,
            None if lacks_plan => AnswerReason::NoPlan,
            // Nobody knows how long an identity stays missing; the store may be back in a moment.
            None if wait.is_never() => AnswerReason::NoIdentity,
            None => AnswerReason::NoStore,
        }
    }

    /// Whether the limit is only watched.
    pub fn is_shadow(&self) -> bool {
        self.limit.mode == LimitMode::Shadow
    }

    /// The most units that the band lets through at once.
    pub fn capacity(&self) -> u64 {
        self.band.map_or(0, |band| band.quota.capacity())
    }

    /// The band's period.
    pub fn period(&self) -> Duration {
        let period_us = self.band.map_or(0, |band| band.quota.period_us());
        Duration::from_micros(period_us)
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
