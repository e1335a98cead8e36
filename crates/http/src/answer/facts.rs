//! The facts about a request that does not pass: reason, wait, limit, numbers.

use super::body;
use crate::clock;
use http::StatusCode;
use smallvec::SmallVec;
use std::borrow::Cow;
use tidegate::{AnswerReason, AppliedBand, DecidedBy, Decision};
use tidegate_policy::respond::{
    HeaderNames, NameVisibility, Placeholder, RefusalStyle, Respond, Wording,
};
use tidegate_policy::unit::REQUESTS;

/// Why the request does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// A limit is exceeded; it would pass after this many seconds, rounded up.
    Exceeded(u64),
    /// A limit was exceeded before, and blocks the client for this many more seconds, rounded up.
    Closed(u64),
    /// It asks for more than there can ever be.
    Never,
    /// It lacks an identity.
    Nobody,
    /// A guard denies it, and no limit was checked; it is admitted again after this many seconds,
    /// rounded up, if ever.
    Barred(AnswerReason, Option<u64>),
    /// The store did not answer, so the result is unknown.
    Unknown,
}

/// Seconds after which a client should retry if the result is unknown.
pub(super) const COME_BACK_S: u64 = tidegate::RETRY_AFTER_FAILURE.as_secs();

/// Problem types: registered with IANA by the draft of the header fields.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
/// Problem type of RFC 9457 for a service that cannot decide.
const REDUCED_CAPACITY: &str =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// The facts about a request that does not pass, for header fields and bodies.
pub(super) struct RefusalFacts<'a> {
    /// Case of the refusal.
    pub(super) case: Case,
    /// Response section of the policy.
    pub(super) respond: &'a Respond,
    /// Status, type and texts for this case.
    pub(super) refusal: &'a RefusalStyle,
    /// The decision, if there is one.
    decision: Option<&'a Decision>,
    /// Empty where no answer is made that could carry one.
    correlation: &'a str,
}

/// A value, before it is written in one format or another.
pub(super) enum FactValue<'a> {
    Text(Cow<'a, str>),
    /// Absent where there is none to tell.
    Number(Option<u64>),
    Names(SmallVec<[&'a str; 4]>),
}

// === impl Case ===

impl Case {
    /// Returns the case of a refused decision.
    fn of(decision: &Decision) -> Self {
        if decision.is_denied_by_guard() {
            return Self::Barred(decision.reason(), barred_s(decision));
        }
        let Some(binding) = decision.binding() else {
            return Self::Unknown;
        };
        match (decision.decided_by(), seconds(&binding)) {
            (DecidedBy::Failure, _) => Self::Unknown,
            (_, Some(wait)) if decision.is_blocked() => Self::Closed(wait),
            (_, Some(wait)) => Self::Exceeded(wait),
            (_, None) if binding.header_names().is_none() => Self::Nobody,
            (_, None) => Self::Never,
        }
    }

    /// Returns the seconds to wait, if waiting helps.
    pub(super) fn wait_s(self) -> Option<u64> {
        match self {
            Self::Exceeded(wait) | Self::Closed(wait) => Some(wait),
            Self::Unknown => Some(COME_BACK_S),
            Self::Barred(_, left) => left,
            Self::Never | Self::Nobody => None,
        }
    }

    /// Returns a sentence for people about this case.
    fn sentence(self) -> Cow<'static, str> {
        match self {
            Self::Exceeded(1) => "Rate limit exceeded. Try again in 1 second.".into(),
            Self::Exceeded(wait) => {
                format!("Rate limit exceeded. Try again in {wait} seconds.").into()
            }
            Self::Closed(1) => {
                "Blocked for exceeding the rate limit. Try again in 1 second.".into()
            }
            Self::Closed(wait) => {
                format!("Blocked for exceeding the rate limit. Try again in {wait} seconds.").into()
            }
            Self::Never => "Rate limit exceeded. This request can never pass.".into(),
            Self::Nobody => "The request lacks a required identity.".into(),
            Self::Barred(AnswerReason::Blacklisted, None) => "This address is banned.".into(),
            Self::Barred(AnswerReason::Blacklisted, Some(1)) => {
                "This address is banned. Try again in 1 second.".into()
            }
            Self::Barred(AnswerReason::Blacklisted, Some(wait)) => {
                format!("This address is banned. Try again in {wait} seconds.").into()
            }
            Self::Barred(..) => "This client is blocked.".into(),
            Self::Unknown => {
                "The limiter cannot decide at the moment. Try again in 1 second.".into()
            }
        }
    }
}

/// Returns the whole seconds until the request would pass, rounded up; `None` where it never can.
pub(super) fn seconds(applied: &AppliedBand<'_>) -> Option<u64> {
    applied.wait().as_micros().map(up)
}

/// Returns the whole seconds until the guard that denies the request admits it again, rounded up;
/// `None` if it does not.
pub(super) fn barred_s(decision: &Decision) -> Option<u64> {
    let left = decision.banned_for()?;
    Some(up(u64::try_from(left.as_micros()).unwrap_or(u64::MAX)))
}

/// Returns the microseconds as whole seconds, rounded up.
pub(super) fn up(micros: u64) -> u64 {
    micros.div_ceil(1_000_000)
}

/// Returns the seconds until the bucket is full again, rounded up.
pub(super) fn reset_s(applied: &AppliedBand<'_>) -> u64 {
    let reset = u64::try_from(applied.reset_after().as_micros());
    up(reset.unwrap_or(u64::MAX))
}

/// Returns the seconds until the limit has room. On a refusal it is the time until the request
/// would pass, so that no client reads two different waits, or the window if it never can. Else it
/// is the time until the bucket is full again.
pub(super) fn passes_s(applied: &AppliedBand<'_>, is_allowed: bool) -> u64 {
    if is_allowed {
        return reset_s(applied);
    }
    let window_s = || applied.header_names().map_or(0, HeaderNames::window_max_s);
    seconds(applied).unwrap_or_else(window_s)
}

/// Returns the time at which the bucket is full again, in seconds since the epoch, rounded up.
pub(super) fn reset_epoch(decision: &Decision, applied: &AppliedBand<'_>) -> u64 {
    let reset = u64::try_from(applied.reset_after().as_micros()).unwrap_or(u64::MAX);
    up(decision.wall_time().plus(reset).as_micros())
}

// === impl Facts ===

impl<'a> RefusalFacts<'a> {
    /// Collects the facts about a refusal.
    pub(super) fn of(decision: &'a Decision, correlation: &'a str) -> Self {
        let (case, respond) = (Case::of(decision), decision.respond());
        Self {
            case,
            respond,
            // Do not report a limit's own message if it is unknown whether the limit is exceeded.
            refusal: match case {
                Case::Unknown => &respond.refusal,
                _ => decision.refusal(),
            },
            decision: Some(decision),
            correlation,
        }
        .honest()
    }

    /// Collects the facts if there is no decision.
    pub(super) fn unknown(respond: &'a Respond, correlation: &'a str) -> Self {
        Self {
            case: Case::Unknown,
            respond,
            refusal: &respond.refusal,
            decision: None,
            correlation,
        }
        .honest()
    }

    /// Replaces a body that was written for exceeded limits by the standard one if no limit is
    /// exceeded.
    fn honest(self) -> Self {
        use Placeholder::{Detail, Message, Status, Title, Type};
        // The response of a guard was written for guards.
        let is_meant = matches!(
            self.case,
            Case::Exceeded(_) | Case::Closed(_) | Case::Never | Case::Barred(..)
        );
        let tells = [Detail, Message, Status, Title, Type];
        if is_meant || self.refusal.body.has(&tells) {
            return self;
        }
        Self {
            refusal: &Respond::standard().refusal,
            ..self
        }
    }

    /// Returns the status. If the result is unknown it is 503 regardless of the configuration: no
    /// limit was exceeded.
    pub(super) fn status(&self) -> StatusCode {
        match self.case {
            Case::Unknown => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::from_u16(self.refusal.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
        }
    }

    /// Returns the correlation id.
    pub(super) fn correlation(&self) -> &'a str {
        self.correlation
    }

    /// Returns the value of `placeholder`.
    pub(super) fn value(&self, placeholder: Placeholder) -> FactValue<'_> {
        match placeholder {
            Placeholder::Type => FactValue::Text(self.type_uri().into()),
            Placeholder::Title => FactValue::Text(self.title().into()),
            Placeholder::Detail => FactValue::Text(self.detail()),
            Placeholder::Message => FactValue::Text(self.message()),
            Placeholder::Policy => FactValue::Text(self.policy()),
            Placeholder::Limit => FactValue::Text(self.limit()),
            Placeholder::Band => FactValue::Text(self.band()),
            Placeholder::Unit => FactValue::Text(self.unit().into()),
            Placeholder::Status => FactValue::Number(Some(self.status().as_u16().into())),
            Placeholder::ResetRfc3339 => FactValue::Text(instant(self.reset_epoch())),
            Placeholder::NowRfc3339 => FactValue::Text(instant(Some(self.now()))),
            Placeholder::CorrelationId => FactValue::Text(self.correlation().into()),
            Placeholder::ViolatedPolicies => FactValue::Names(self.violated()),
            other => FactValue::Number(self.number(other)),
        }
    }

    /// Returns the value of a placeholder that is a number; `None` if it has none in this case.
    fn number(&self, placeholder: Placeholder) -> Option<u64> {
        match placeholder {
            Placeholder::RetryAfter => self.case.wait_s(),
            Placeholder::RetryAfterMs => match self.case {
                Case::Exceeded(_) | Case::Closed(_) => self.decision?.binding()?.wait().as_millis(),
                Case::Barred(..) => {
                    let left = self.decision?.banned_for()?.as_micros().div_ceil(1_000);
                    u64::try_from(left).ok()
                }
                case => Some(case.wait_s()?.saturating_mul(1_000)),
            },
            Placeholder::Capacity => Some(self.reported_band()?.capacity()),
            Placeholder::Remaining => Some(self.reported_band()?.remaining()),
            Placeholder::Reset => u64::try_from(self.reported_band()?.reset_after().as_micros())
                .map(up)
                .ok(),
            Placeholder::ResetEpoch => self.reset_epoch(),
            _ => None,
        }
    }

    /// Returns the reported band, if one was checked.
    fn reported_band(&self) -> Option<AppliedBand<'a>> {
        let binding = self.decision?.binding()?;
        binding.header_names().map(|_| binding)
    }

    /// Returns the time at which the reported bucket is full again, in seconds since the epoch.
    fn reset_epoch(&self) -> Option<u64> {
        Some(reset_epoch(self.decision?, &self.reported_band()?))
    }

    /// Returns the problem type: the configured one, else the standard one of the case.
    fn type_uri(&self) -> &str {
        match self.case {
            Case::Exceeded(_) | Case::Closed(_) | Case::Never => {
                self.refusal.type_uri.as_deref().unwrap_or(QUOTA_EXCEEDED)
            }
            Case::Barred(..) => self.refusal.type_uri.as_deref().unwrap_or("about:blank"),
            Case::Nobody => "about:blank",
            Case::Unknown => REDUCED_CAPACITY,
        }
    }

    /// Returns the reason phrase of the status.
    fn title(&self) -> &'static str {
        self.status().canonical_reason().unwrap_or("Refused")
    }

    /// Returns the operator's text for an exceeded limit, if there is one. If that would mention a
    /// wait that does not exist, and in every other case, returns the standard sentence.
    pub(super) fn detail(&self) -> Cow<'static, str> {
        match (self.case, &self.refusal.message) {
            (Case::Never, Some(message)) if mentions_wait(message) => self.sentence(),
            (Case::Barred(_, None), Some(message)) if mentions_wait(message) => self.sentence(),
            (
                Case::Exceeded(_) | Case::Closed(_) | Case::Never | Case::Barred(..),
                Some(message),
            ) => body::plain(message, self).into(),
            _ => self.sentence(),
        }
    }

    /// Returns the same, but of a limit that is exceeded, and of which the operator has nothing to
    /// say, only a phrase.
    fn message(&self) -> Cow<'static, str> {
        match (self.case, &self.refusal.message) {
            (Case::Exceeded(_) | Case::Closed(_) | Case::Never | Case::Barred(..), None)
                if self.refusal.status == 429 =>
            {
                self.title().into()
            }
            (Case::Exceeded(_) | Case::Closed(_) | Case::Never, None) => {
                "Rate limit exceeded".into()
            }
            _ => self.detail(),
        }
    }

    /// Returns the name of the policy.
    fn policy(&self) -> Cow<'_, str> {
        let Some(decision) = self.decision else {
            return Cow::default();
        };
        match self.respond.names {
            NameVisibility::Shown => decision.policy().into(),
            NameVisibility::Hidden => ordinal(decision.policy_index()),
        }
    }

    /// Returns the name of the reported limit.
    fn limit(&self) -> Cow<'_, str> {
        let Some(binding) = self.decision.and_then(Decision::binding) else {
            return Cow::default();
        };
        match self.respond.names {
            NameVisibility::Shown => binding.limit().into(),
            NameVisibility::Hidden => ordinal(binding.limit_index()),
        }
    }

    /// Returns the name of the reported band.
    fn band(&self) -> Cow<'_, str> {
        let Some(binding) = self.reported_band() else {
            return Cow::default();
        };
        match self.respond.names {
            NameVisibility::Shown => binding
                .label()
                .or(binding.band())
                .unwrap_or_default()
                .into(),
            NameVisibility::Hidden => binding.band_index().map_or_else(Cow::default, ordinal),
        }
    }

    /// Returns the name of the unit that the reported limit counts.
    fn unit(&self) -> &'a str {
        let unit = |band: AppliedBand<'a>| band.unit().unwrap_or(REQUESTS);
        self.reported_band().map_or("", unit)
    }

    /// Returns the standard sentence of the case. It names the unit that is exceeded, unless it is requests.
    fn sentence(&self) -> Cow<'static, str> {
        let sentence = self.case.sentence();
        match self.reported_band().and_then(|band| band.unit()) {
            Some(unit) => {
                let named = format!("Rate limit of {unit} exceeded");
                sentence.replacen("Rate limit exceeded", &named, 1).into()
            }
            None => sentence,
        }
    }

    /// Returns the exceeded limits, by the names that the header fields use.
    fn violated(&self) -> SmallVec<[&'a str; 4]> {
        let Some(decision) = self.decision else {
            return SmallVec::new();
        };
        let refusing = decision
            .applied()
            .filter(|applied| !applied.is_shadow() && !applied.is_allowed());
        refusing
            .filter_map(|applied| Some(applied.header_names()?.name()))
            .collect()
    }

    /// Returns the seconds since the epoch.
    fn now(&self) -> u64 {
        let now = self.decision.map(Decision::wall_time);
        now.map_or_else(clock::unix_seconds, |now| now.as_micros() / 1_000_000)
    }
}

/// Returns true if a text contains a placeholder for the wait.
fn mentions_wait(message: &Wording) -> bool {
    message.has(&[Placeholder::RetryAfter, Placeholder::RetryAfterMs])
}

/// Counted from 1, as people do.
fn ordinal(index: usize) -> Cow<'static, str> {
    index.saturating_add(1).to_string().into()
}

/// Formats seconds since the epoch by RFC 3339; empty if there are none.
fn instant(seconds: Option<u64>) -> Cow<'static, str> {
    let Some(seconds) = seconds else {
        return Cow::default();
    };
    let mut text = Vec::new();
    crate::text::write_instant(seconds, &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}
