//! From a decision to headers, status and body: the same at every HTTP door.
//!
//! | function | for |
//! |---|---|
//! | [`inform`] | a request that passes: what the client is told of its limits |
//! | [`refuse`] | one that does not: the whole answer |
//! | [`unavailable`] | one of which nobody knows: the whole answer |
//!
//! | module | what it is |
//! |---|---|
//! | `fields` | header fields, by dialect |
//! | `skipped` | the same where the store did not answer and the request passes |
//! | `facts` | what there is to say |
//! | `body` | bodies: wordings with the values in their places |
//! | `correlation` | the id by which a request can be found again |
//!
//! ```
//! use http::HeaderMap;
//! use tidegate::{Limiter, Request};
//! use tidegate_http::answer::{self, Correlation};
//!
//! let limiter = Limiter::from_yaml("
//! policies: [{ name: api, limits: [{ name: all, rate: 1/min }] }]
//! ")?;
//! let mut headers = HeaderMap::new();
//! answer::inform(&limiter.check_now(&Request::new())?, &mut headers);
//! assert_eq!(headers["ratelimit-policy"], "\"all\";q=1;w=60");
//! assert_eq!(headers["x-ratelimit-remaining"], "0");
//!
//! let refused = limiter.check_now(&Request::new())?;
//! let id = Correlation::of(&HeaderMap::new(), refused.respond());
//! let answer = answer::refuse(&refused, &id);
//! assert_eq!(answer.status(), 429);
//! assert_eq!(answer.headers()["retry-after"], "60");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod correlation;
mod facts;
mod fields;
mod skipped;

pub use correlation::Correlation;

use facts::RefusalFacts;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response};
use std::borrow::Cow;
use tidegate::{AppliedBand, Decision};
use tidegate_policy::Respond;

/// Adds what the client is told of its limits: every dialect that the policy speaks. Nothing where
/// no limit applied.
///
/// Fields of the same names that are there already are replaced.
#[inline]
pub fn inform(decision: &Decision, headers: &mut HeaderMap) {
    fields::add(decision, headers);
}

/// The whole answer to a request that `decision` refuses: status, fields of every dialect,
/// `Retry-After`, the correlation id, and a body.
///
/// Where the store did not answer and the limit refuses for that reason, the status is 503 whatever
/// is configured: nobody exceeded anything.
pub fn refuse(decision: &Decision, correlation: &Correlation) -> Response<Vec<u8>> {
    let mut answer = answer(&RefusalFacts::of(decision, correlation.as_str()));
    inform(decision, answer.headers_mut());
    answer
}

/// The answer where nothing could be decided: 503, to be tried again in a second. `respond` is what
/// the policy says, if it is known.
pub fn unavailable(respond: Option<&Respond>, correlation: &Correlation) -> Response<Vec<u8>> {
    let respond = respond.unwrap_or(Respond::standard());
    answer(&RefusalFacts::unknown(respond, correlation.as_str()))
}

/// Seconds until the same request would pass if nobody else came, rounded up: what `Retry-After`
/// says. `None` where the request passes, or never can.
pub fn retry_after_seconds(decision: &Decision) -> Option<u64> {
    if decision.is_allowed() {
        return None;
    }
    match decision.binding() {
        Some(binding) => facts::seconds(&binding),
        None => facts::barred_s(decision),
    }
}

/// Seconds until things look better for one band, rounded up: if it refuses, until the same request
/// would pass, or its window where it never can; else until the bucket is as good as new. For protocols
/// that tell of several bands.
///
/// ```
/// use tidegate::{Limiter, Request};
/// use tidegate_http::answer::passes_after_seconds;
///
/// let limiter = Limiter::from_yaml("
/// policies: [{ name: api, limits: [{ name: all, rate: 2/min }] }]
/// ")?;
/// let first = limiter.check_now(&Request::new())?;
/// assert_eq!(first.binding().map(|band| passes_after_seconds(&band)), Some(30));
/// let too_much = limiter.check_now(&Request::new().cost(3))?;
/// assert_eq!(too_much.binding().map(|band| passes_after_seconds(&band)), Some(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn passes_after_seconds(applied: &AppliedBand<'_>) -> u64 {
    facts::passes_s(applied, applied.is_allowed())
}

/// A sentence for people: why a request does not pass, and when it will; `None` where nothing could
/// be decided. It is the `detail` of a body, for protocols that have a place for little more.
pub fn detail(decision: Option<&Decision>) -> Cow<'static, str> {
    match decision {
        Some(decision) => RefusalFacts::of(decision, "").detail(),
        None => RefusalFacts::unknown(Respond::standard(), "").detail(),
    }
}

/// The answer that these facts amount to, but for what they say of limits.
fn answer(facts: &RefusalFacts<'_>) -> Response<Vec<u8>> {
    let mut answer = Response::new(body::body(facts));
    *answer.status_mut() = facts.status();
    let headers = answer.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(&facts.refusal.content_type) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(wait) = facts.case.wait_s().filter(|_| facts.respond.retry_after) {
        headers.insert(RETRY_AFTER, fields::number(wait));
    }
    let name = HeaderName::from_bytes(facts.respond.correlation.as_bytes());
    if let (Ok(name), Ok(id)) = (name, HeaderValue::from_str(facts.correlation())) {
        headers.insert(name, id);
    }
    answer
}
