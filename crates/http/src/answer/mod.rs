//! From a decision to headers, status and body: the same for every HTTP frontend.
//!
//! | function | for |
//! |---|---|
//! | [`inform`] | a request that passes: header fields about its limits |
//! | [`refuse`] | a refused request: the whole response |
//! | [`unavailable`] | a request with an unknown result: the whole response |
//!
//! | module | content |
//! |---|---|
//! | `fields` | header fields, by header format |
//! | `skipped` | the same if the store did not answer and the request passes |
//! | `facts` | the facts about a refusal |
//! | `body` | bodies: templates with the values in their places |
//! | `correlation` | the correlation id of a request |
//!
//! A response never contains anything from the request except the correlation id, which is
//! validated. So it cannot be used to inject headers or markup.
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

/// Adds the header fields about the limits, in every header format of the policy. Adds nothing if
/// no limit applied.
///
/// Existing fields of the same names are replaced.
///
/// ```
/// use http::HeaderMap;
/// use tidegate::{Limiter, Request};
/// use tidegate_http::answer;
///
/// let limiter = Limiter::from_yaml("
/// policies: [{ name: api, limits: [{ name: all, rate: 10/min }] }]
/// ")?;
/// let mut headers = HeaderMap::new();
/// answer::inform(&limiter.check_now(&Request::new().cost(4))?, &mut headers);
/// assert_eq!(headers["x-ratelimit-limit"], "10");
/// assert_eq!(headers["x-ratelimit-remaining"], "6");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn inform(decision: &Decision, headers: &mut HeaderMap) {
    fields::add(decision, headers);
}

/// Returns the whole response to a request that `decision` refuses: status, fields of every header
/// format, `Retry-After`, the correlation id, and a body.
///
/// If the store did not answer and the limit refuses for that reason, the status is 503 regardless
/// of the configuration: no limit was exceeded.
pub fn refuse(decision: &Decision, correlation: &Correlation) -> Response<Vec<u8>> {
    let mut answer = answer(&RefusalFacts::of(decision, correlation.as_str()));
    inform(decision, answer.headers_mut());
    answer
}

/// Returns the response if nothing could be decided: 503, with a retry after one second. `respond`
/// is the response section of the policy, if that is known.
///
/// ```
/// use http::HeaderMap;
/// use tidegate_http::answer::{self, Correlation};
/// use tidegate_policy::Respond;
///
/// let id = Correlation::of(&HeaderMap::new(), &Respond::default());
/// let answer = answer::unavailable(None, &id);
/// assert_eq!(answer.status(), 503);
/// assert_eq!(answer.headers()["retry-after"], "1");
/// ```
pub fn unavailable(respond: Option<&Respond>, correlation: &Correlation) -> Response<Vec<u8>> {
    let respond = respond.unwrap_or(Respond::standard());
    answer(&RefusalFacts::unknown(respond, correlation.as_str()))
}

/// Returns the value of `Retry-After`: the seconds until the same request would pass without other
/// requests, rounded up. `None` if the request passes, or never can.
///
/// ```
/// use tidegate::{Limiter, Request};
/// use tidegate_http::answer::retry_after_seconds;
///
/// let limiter = Limiter::from_yaml("
/// policies: [{ name: api, limits: [{ name: all, rate: 2/min }] }]
/// ")?;
/// assert_eq!(retry_after_seconds(&limiter.check_now(&Request::new().cost(2))?), None);
/// assert_eq!(retry_after_seconds(&limiter.check_now(&Request::new())?), Some(30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn retry_after_seconds(decision: &Decision) -> Option<u64> {
    if decision.is_allowed() {
        return None;
    }
    match decision.binding() {
        Some(binding) => facts::seconds(&binding),
        None => facts::barred_s(decision),
    }
}

/// Returns the seconds until one band has room, rounded up. If it refuses, it is the time until the
/// same request would pass, or its window if it never can. Else it is the time until the bucket is
/// full again. For protocols that report several bands.
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

/// Returns a sentence for people: why a request does not pass, and when it will. Pass `None` if
/// nothing could be decided. It is the `detail` of a body, for protocols that have a place for
/// little more.
pub fn detail(decision: Option<&Decision>) -> Cow<'static, str> {
    match decision {
        Some(decision) => RefusalFacts::of(decision, "").detail(),
        None => RefusalFacts::unknown(Respond::standard(), "").detail(),
    }
}

/// Returns the response with these facts, without the header fields about limits.
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
