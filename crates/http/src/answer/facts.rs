//! What there is to say of a request that does not pass.

use super::body;
use crate::clock;
use http::StatusCode;
use smallvec::SmallVec;
use std::borrow::Cow;
use tidegate::{AnswerReason, AppliedBand, DecidedBy, Decision};
use tidegate_policy::respond::{
    HeaderNames, NameVisibility, Placeholder, RefusalStyle, Respond, Wording,
};

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
    /// A guard keeps it out, and no limit was asked; it is let in by itself after this many seconds,
    /// rounded up, if ever.
    Barred(AnswerReason, Option<u64>),
    /// The store did not answer, and so nobody knows.
    Unknown,
}

/// Where nobody knows, somebody may know this many seconds later.
pub(super) const COME_BACK_S: u64 = tidegate::COME_BACK.as_secs();

/// Problem types: registered with IANA by the draft of the header fields.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// What there is to say of a request that does not pass.
pub(super) struct RefusalFacts<'a> {
    pub(super) case: Case,
    pub(super) respond: &'a Respond,
    pub(super) refusal: &'a RefusalStyle,
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
    fn of(decision: &Decision) -> Self {
        if decision.is_barred() {
            return Self::Barred(decision.reason(), barred_s(decision));
        }
        let Some(binding) = decision.binding() else {
            return Self::Unknown;
        };
        match (decision.decided_by(), seconds(&binding)) {
            (DecidedBy::Failure, _) => Self::Unknown,
            (_, Some(wait)) if decision.is_blocked() => Self::Closed(wait),
            (_, Some(wait)) => Self::Exceeded(wait),
            (_, None) if binding.spoken().is_none() => Self::Nobody,
            (_, None) => Self::Never,
        }
    }

    /// Seconds to wait, if it is of any use.
    pub(super) fn wait_s(self) -> Option<u64> {
        match self {
            Self::Exceeded(wait) | Self::Closed(wait) => Some(wait),
            Self::Unknown => Some(COME_BACK_S),
            Self::Barred(_, left) => left,
            Self::Never | Self::Nobody => None,
        }
    }

    /// A sentence for people.
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
            Self::Nobody => "The request lacks an identity without which it cannot pass.".into(),
            Self::Barred(AnswerReason::Blacklisted, None) => "This address is not let in.".into(),
            Self::Barred(AnswerReason::Blacklisted, Some(1)) => {
                "This address is not let in. Try again in 1 second.".into()
            }
            Self::Barred(AnswerReason::Blacklisted, Some(wait)) => {
                format!("This address is not let in. Try again in {wait} seconds.").into()
            }
            Self::Barred(..) => "This client is on a list of blocked clients.".into(),
            Self::Unknown => {
                "The limiter cannot decide at the moment. Try again in 1 second.".into()
            }
        }
    }
}

/// Whole seconds until the request would pass, rounded up; `None` where it never can.
pub(super) fn seconds(applied: &AppliedBand<'_>) -> Option<u64> {
    applied.wait().as_micros().map(up)
}

/// Whole seconds until the guard that refuses the request lets it in by itself, rounded up; `None` where
/// it does not.
pub(super) fn barred_s(decision: &Decision) -> Option<u64> {
    let left = decision.barred_for()?;
    Some(up(u64::try_from(left.as_micros()).unwrap_or(u64::MAX)))
}

/// Microseconds as whole seconds, rounded up.
pub(super) fn up(micros: u64) -> u64 {
    micros.div_ceil(1_000_000)
}

/// Seconds until the bucket is as good as new, rounded up.
pub(super) fn reset_s(applied: &AppliedBand<'_>) -> u64 {
    let reset = u64::try_from(applied.reset_after().as_micros());
    up(reset.unwrap_or(u64::MAX))
}

/// Seconds until things look better: on a refusal until the request would pass, so that no client reads
/// two answers to one question, and the window where it never can; else until the bucket is as good
/// as new.
pub(super) fn passes_s(applied: &AppliedBand<'_>, is_allowed: bool) -> u64 {
    if is_allowed {
        return reset_s(applied);
    }
    let window_s = || applied.spoken().map_or(0, HeaderNames::window_s);
    seconds(applied).unwrap_or_else(window_s)
}

/// When the bucket is as good as new, in seconds since the epoch, rounded up.
pub(super) fn reset_epoch(decision: &Decision, applied: &AppliedBand<'_>) -> u64 {
    let reset = u64::try_from(applied.reset_after().as_micros()).unwrap_or(u64::MAX);
    up(decision.wall_time().plus(reset).as_micros())
}

// === impl Facts ===

impl<'a> RefusalFacts<'a> {
    /// What there is to say of a refusal.
    pub(super) fn of(decision: &'a Decision, correlation: &'a str) -> Self {
        let (case, respond) = (Case::of(decision), decision.respond());
        Self {
            case,
            respond,
            // What a limit says of itself is not to be said where nobody knows whether it is exceeded.
            refusal: match case {
                Case::Unknown => &respond.refusal,
                _ => decision.refusal(),
            },
            decision: Some(decision),
            correlation,
        }
        .honest()
    }

    /// What there is to say where there is no decision.
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

    /// A body that says the same whatever is the case was written for limits that are exceeded. Where
    /// none is, the standard one tells the truth.
    fn honest(self) -> Self {
        use Placeholder::{Detail, Message, Status, Title, Type};
        // What guards answer was written for them.
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

    /// The status. Where nobody knows it is 503 whatever is configured: nobody exceeded anything.
    pub(super) fn status(&self) -> StatusCode {
        match self.case {
            Case::Unknown => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::from_u16(self.refusal.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
        }
    }

    /// The correlation id.
    pub(super) fn correlation(&self) -> &'a str {
        self.correlation
    }

    /// What stands in the place of `placeholder`.
    pub(super) fn value(&self, placeholder: Placeholder) -> FactValue<'_> {
        match placeholder {
            Placeholder::Type => FactValue::Text(self.type_uri().into()),
            Placeholder::Title => FactValue::Text(self.title().into()),
            Placeholder::Detail => FactValue::Text(self.detail()),
            Placeholder::Message => FactValue::Text(self.message()),
            Placeholder::Policy => FactValue::Text(self.policy()),
            Placeholder::Limit => FactValue::Text(self.limit()),
            Placeholder::Band => FactValue::Text(self.band()),
            Placeholder::Status => FactValue::Number(Some(self.status().as_u16().into())),
            Placeholder::ResetRfc3339 => FactValue::Text(instant(self.reset_epoch())),
            Placeholder::NowRfc3339 => FactValue::Text(instant(Some(self.now()))),
            Placeholder::CorrelationId => FactValue::Text(self.correlation().into()),
            Placeholder::ViolatedPolicies => FactValue::Names(self.violated()),
            other => FactValue::Number(self.number(other)),
        }
    }

    fn number(&self, placeholder: Placeholder) -> Option<u64> {
        match placeholder {
            Placeholder::RetryAfter => self.case.wait_s(),
            Placeholder::RetryAfterMs => match self.case {
                Case::Exceeded(_) | Case::Closed(_) => self.decision?.binding()?.wait().as_millis(),
                Case::Barred(..) => {
                    let left = self.decision?.barred_for()?.as_micros().div_ceil(1_000);
                    u64::try_from(left).ok()
                }
                case => Some(case.wait_s()?.saturating_mul(1_000)),
            },
            Placeholder::Capacity => Some(self.told()?.capacity()),
            Placeholder::Remaining => Some(self.told()?.remaining()),
            Placeholder::Reset => u64::try_from(self.told()?.reset_after().as_micros())
                .map(up)
                .ok(),
            Placeholder::ResetEpoch => self.reset_epoch(),
            _ => None,
        }
    }

    /// The band that is reported, if one was asked.
    fn told(&self) -> Option<AppliedBand<'a>> {
        let binding = self.decision?.binding()?;
        binding.spoken().map(|_| binding)
    }

    fn reset_epoch(&self) -> Option<u64> {
        Some(reset_epoch(self.decision?, &self.told()?))
    }

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

    fn title(&self) -> &'static str {
        self.status().canonical_reason().unwrap_or("Refused")
    }

    /// What the operator has to say of a limit that is exceeded, if anything; where it would speak of
    /// a wait that there is not, and of everything else, the sentence that we have.
    pub(super) fn detail(&self) -> Cow<'static, str> {
        match (self.case, &self.refusal.message) {
            (Case::Never, Some(message)) if speaks_of_wait(message) => self.case.sentence(),
            (Case::Barred(_, None), Some(message)) if speaks_of_wait(message) => {
                self.case.sentence()
            }
            (
                Case::Exceeded(_) | Case::Closed(_) | Case::Never | Case::Barred(..),
                Some(message),
            ) => body::plain(message, self).into(),
            _ => self.case.sentence(),
        }
    }

    /// The same, but of a limit that is exceeded, and of which the operator has nothing to say, only
    /// a phrase.
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

    fn policy(&self) -> Cow<'_, str> {
        let Some(decision) = self.decision else {
            return Cow::default();
        };
        match self.respond.names {
            NameVisibility::Shown => decision.policy().into(),
            NameVisibility::Hidden => ordinal(decision.policy_index()),
        }
    }

    fn limit(&self) -> Cow<'_, str> {
        let Some(binding) = self.decision.and_then(Decision::binding) else {
            return Cow::default();
        };
        match self.respond.names {
            NameVisibility::Shown => binding.limit().into(),
            NameVisibility::Hidden => ordinal(binding.limit_index()),
        }
    }

    fn band(&self) -> Cow<'_, str> {
        let Some(binding) = self.told() else {
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

    /// What was exceeded, by the names that the header fields use.
    fn violated(&self) -> SmallVec<[&'a str; 4]> {
        let Some(decision) = self.decision else {
            return SmallVec::new();
        };
        let refusing = decision
            .applied()
            .filter(|applied| !applied.is_shadow() && !applied.is_allowed());
        refusing
            .filter_map(|applied| Some(applied.spoken()?.name()))
            .collect()
    }

    /// Seconds since the epoch.
    fn now(&self) -> u64 {
        let now = self.decision.map(Decision::wall_time);
        now.map_or_else(clock::unix_seconds, |now| now.as_micros() / 1_000_000)
    }
}

fn speaks_of_wait(message: &Wording) -> bool {
    message.has(&[Placeholder::RetryAfter, Placeholder::RetryAfterMs])
}

/// Counted from 1, as people do.
fn ordinal(index: usize) -> Cow<'static, str> {
    index.saturating_add(1).to_string().into()
}

fn instant(seconds: Option<u64>) -> Cow<'static, str> {
    let Some(seconds) = seconds else {
        return Cow::default();
    };
    let mut text = Vec::new();
    crate::text::write_instant(seconds, &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}
