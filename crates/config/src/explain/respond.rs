//! Describes responses.

use super::words::list;
use tidegate_policy::limit::Limit;
use tidegate_policy::policy::Policy;
use tidegate_policy::respond::{
    Dialect, LimitHeaderValue, NameVisibility, ResetFormat, Respond, RlsHeaders, XField, XRateLimit,
};

/// Describes the responses of a policy.
pub(super) fn answers(policy: &Policy) -> String {
    let respond = policy.respond();
    let refusal = &respond.refusal;
    let retry_after = if respond.retry_after {
        " and Retry-After"
    } else {
        ", without Retry-After"
    };
    let names = match respond.names {
        NameVisibility::Shown => "",
        NameVisibility::Hidden => " Policies and limits are numbered, not named.",
    };
    format!(
        "{} A refusal is {} with {}{retry_after}.{names}",
        headers(respond),
        refusal.status,
        refusal.content_type,
    )
}

/// Describes the headers that Envoy adds.
pub(super) fn to_envoy(policy: &Policy) -> String {
    let which = match policy.respond().rls {
        RlsHeaders::Refused => "to refusals alone",
        RlsHeaders::Always => "to every response",
        RlsHeaders::None => "to no response",
    };
    format!("Envoy adds these headers {which}.")
}

/// Describes the refusals of a limit, if they differ from those of its policy.
pub(super) fn refusal(limit: &Limit) -> Option<String> {
    let refusal = limit.refusal.as_ref()?;
    Some(format!(
        "A refusal by it is {} with {}.",
        refusal.status, refusal.content_type
    ))
}

fn headers(respond: &Respond) -> String {
    let headers: Vec<String> = respond
        .headers
        .iter()
        .map(|dialect| match dialect {
            Dialect::XRateLimit => x_ratelimit(&respond.x_ratelimit),
            Dialect::Draft03 => {
                "RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset (draft 03)".to_owned()
            }
            Dialect::Draft11 => "RateLimit-Policy and RateLimit (draft 11)".to_owned(),
        })
        .collect();
    if headers.is_empty() {
        "No rate limit headers are sent.".to_owned()
    } else {
        format!("Rate limit headers: {}.", headers.join("; "))
    }
}

fn x_ratelimit(how: &XRateLimit) -> String {
    let fields: Vec<&str> = how
        .fields
        .iter()
        .map(|field| match (field, how.limit, how.reset) {
            (XField::Limit, LimitHeaderValue::Capacity, _) => "X-RateLimit-Limit (capacity)",
            (XField::Limit, LimitHeaderValue::PerSecond, _) => "X-RateLimit-Limit (units a second)",
            (XField::Remaining, ..) => "X-RateLimit-Remaining",
            (XField::Reset, _, ResetFormat::Epoch) => "X-RateLimit-Reset (Unix seconds)",
            (XField::Reset, _, ResetFormat::Delta) => "X-RateLimit-Reset (seconds from now)",
            (XField::Reset, _, ResetFormat::Rfc3339) => "X-RateLimit-Reset (RFC 3339)",
            (XField::Type, ..) => "X-RateLimit-Type",
        })
        .collect();
    list(&fields, "and")
}
