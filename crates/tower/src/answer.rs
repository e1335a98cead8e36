//! What callers are told where the application is not asked.

use crate::grpc::{Code, Dialect, Refusal};
use bytes::Bytes;
use http::{HeaderMap, Response};
use std::time::Duration;
use tidegate::{DecidedBy, Decision, Policy};
use tidegate_http::answer::{self, Correlation};

/// A whole answer.
pub(crate) type Answer = Response<Bytes>;

/// When to come back if nothing could be decided; what `Retry-After` says then as well.
const COME_BACK: Duration = Duration::from_secs(1);

/// The answer to a request that is refused, whose headers are `headers`.
pub(crate) fn refused(decision: &Decision, headers: &HeaderMap) -> Answer {
    let correlation = Correlation::of(headers, decision.respond());
    let http = answer::refuse(decision, &correlation);
    let Some(dialect) = Dialect::of(headers) else {
        return http.map(Bytes::from);
    };
    let refusal = Refusal {
        code: match decision.decided_by() {
            DecidedBy::Failure => Code::Unavailable,
            _ => Code::ResourceExhausted,
        },
        message: &answer::detail(Some(decision)),
        retry_after: decision.binding().and_then(|band| band.retry_after()),
    };
    refusal.instead_of(http, dialect)
}

/// The answer where nothing could be decided; `policy` was asked, if that much is known.
pub(crate) fn undecided(policy: Option<&Policy>, headers: &HeaderMap) -> Answer {
    let respond = policy.map(Policy::respond);
    let correlation = match respond {
        Some(respond) => Correlation::of(headers, respond),
        None => Correlation::made(),
    };
    let http = answer::unavailable(respond, &correlation);
    let Some(dialect) = Dialect::of(headers) else {
        return http.map(Bytes::from);
    };
    let refusal = Refusal {
        code: Code::Unavailable,
        message: &answer::detail(None),
        retry_after: Some(COME_BACK),
    };
    refusal.instead_of(http, dialect)
}
