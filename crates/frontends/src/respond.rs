//! Every HTTP status and header that Tidegate's own responses have. No other module sets them.

use super::body::BodyError;
use crate::wire::fault::{WireFault, quote};
use crate::wire::problem::{self, ProblemDetails};
use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use std::io::Cursor;
use tidegate::{CheckError, DecidedBy, Decision, SettleError};
use tidegate_http::answer::{self, Correlation};
use tidegate_http::question::ForwardedError;
use tidegate_net::bounds::Bounds;
use tidegate_policy::respond::Respond;
use tidegate_telemetry::refusals::Refusals;
use tracing::debug;

pub use tidegate_net::frontend::closing;

/// A response to the client, with a complete and small body.
pub type FrontendResponse = Response<WholeBody>;

/// A vector, which hyper copies behind the headers. Making it shareable would cost an allocation.
pub type WholeBody = Full<Cursor<Vec<u8>>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const PLAIN_METRICS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const DENIED_STATUS: HeaderName = HeaderName::from_static("x-denied-status");
/// The header by which a proxy distinguishes refusals, which may have any status, from a missing trust
/// setting and other mistakes that its operator has to fix.
const DENIED_REASON: HeaderName = HeaderName::from_static("x-denied-reason");
const LIMIT: HeaderValue = HeaderValue::from_static("limit");
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("unavailable");
const UNTRUSTED: HeaderValue = HeaderValue::from_static("untrusted-proxy");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The maximum number of policies that a message lists.
const POLICIES_MAX: usize = 10;

/// Returns decisions, allowed or refused, with status 200.
pub fn decided(json: Vec<u8>) -> FrontendResponse {
    answer(StatusCode::OK, JSON, json)
}

/// Returns the `OpenAPI` document.
pub(crate) fn document(json: &'static str) -> FrontendResponse {
    uncached(answer(StatusCode::OK, JSON, json.into()))
}

/// Reports that the process runs.
pub fn alive() -> FrontendResponse {
    uncached(answer(StatusCode::OK, TEXT, b"alive\n".to_vec()))
}

/// Reports that the server accepts requests; `degraded` names an unavailable dependency.
pub fn ready(degraded: Option<&str>) -> FrontendResponse {
    let json = match degraded {
        None => "{\"ready\":true}\n".to_owned(),
        Some(what) => format!("{{\"ready\":true,\"degraded\":[\"{what}\"]}}\n"),
    };
    uncached(answer(StatusCode::OK, JSON, json.into()))
}

/// Reports that the server does not accept requests, and the reason.
pub fn not_ready(why: &str) -> FrontendResponse {
    let json = format!("{{\"ready\":false,\"reasons\":[\"{why}\"]}}\n");
    uncached(answer(StatusCode::SERVICE_UNAVAILABLE, JSON, json.into()))
}

/// The text format of the metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics.
    OpenMetrics,
    /// The older Prometheus text format.
    Plain,
}

impl MetricsFormat {
    /// Returns the format that a client accepts. Without an `Accept` header it gets the preferred one.
    pub fn asked(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(ACCEPT).iter().peekable();
        let names_ours = |value: &HeaderValue| {
            let text = value.to_str().unwrap_or_default();
            text.contains("application/openmetrics-text")
        };
        if accepted.peek().is_none() || accepted.any(names_ours) {
            return Self::OpenMetrics;
        }
        Self::Plain
    }
}

/// Returns the metrics page.
pub fn metrics(page: String, format: MetricsFormat) -> FrontendResponse {
    let kind = match format {
        MetricsFormat::OpenMetrics => METRICS,
        MetricsFormat::Plain => PLAIN_METRICS,
    };
    answer(StatusCode::OK, kind, page.into())
}

/// Returns the limits in force.
pub fn limits(text: String) -> FrontendResponse {
    uncached(answer(StatusCode::OK, TEXT, text.into()))
}

/// Returns the status report.
pub fn status(json: Vec<u8>, is_down: bool) -> FrontendResponse {
    let status = if is_down {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    uncached(answer(status, JSON, json))
}

/// Reports a check request that is malformed, or that names something unknown.
pub(crate) fn bad_question(fault: &WireFault) -> FrontendResponse {
    problem(&ProblemDetails::from(fault))
}

/// Reports a check request that has no decision. `item` is its index in a list.
pub(crate) fn undecided(error: &CheckError, item: Option<usize>) -> FrontendResponse {
    let fault = match error {
        CheckError::UnknownPolicy { name, known } => {
            WireFault::new(0, unknown_policy(name, known)).within("policy")
        }
        CheckError::BadCost { fault, .. } => WireFault::new(0, fault.to_string()).within("cost"),
        CheckError::BadLimit { reason } => WireFault::new(0, reason.clone()).within("descriptors"),
        CheckError::CannotReserve { .. } => WireFault::new(0, error.to_string()),
        // The exact failure goes to the log; a client can only retry later.
        _ => return cannot_decide(),
    };
    let fault = match item {
        Some(nth) => fault.within_item(nth),
        None => fault,
    };
    bad_question(&fault)
}

fn unknown_policy(name: &str, known: &[String]) -> String {
    let more = known.len().saturating_sub(POLICIES_MAX);
    let known: Vec<String> = known
        .iter()
        .take(POLICIES_MAX)
        .map(|it| quote(it))
        .collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let (name, known) = (quote(name), known.join(", "));
    format!("unknown policy {name}; expected {known}{more}")
}

/// Reports a reservation that could not be settled.
pub(crate) fn unsettled(error: &SettleError) -> FrontendResponse {
    if let SettleError::Unknown = error {
        let detail = "unknown reservation: its id is invalid, or from a server with a different \
            store or `key_secret`";
        return problem(&ProblemDetails::new(404, "Not Found").detail(detail));
    }
    if let SettleError::BadCost(fault) = error {
        return bad_question(&WireFault::new(0, fault.to_string()).within("actual"));
    }
    let detail = "settling is not possible at the moment; retry with the same request, which is \
        idempotent";
    let answer = problem(&ProblemDetails::new(503, "Service Unavailable").detail(detail));
    with(answer, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// Reports that permits cannot be renewed or released at the moment.
pub(crate) fn no_permits() -> FrontendResponse {
    let detail = "not possible at the moment; retry with the same request, which is idempotent";
    let answer = problem(&ProblemDetails::new(503, "Service Unavailable").detail(detail));
    with(answer, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// Reports that no decision is possible at the moment. The exact failure goes to the log.
pub(crate) fn cannot_decide() -> FrontendResponse {
    problem(
        &ProblemDetails::new(503, "Service Unavailable")
            .detail("decision not possible at the moment; retry"),
    )
}

/// Returns the JSON response of Envoy's rate limit service, with 429 if a limit is exceeded.
pub(crate) fn rate_limited(json: Vec<u8>, is_over: bool) -> FrontendResponse {
    let status = if is_over {
        StatusCode::TOO_MANY_REQUESTS
    } else {
        StatusCode::OK
    };
    let mut answer = answer(status, JSON, json);
    answer.extensions_mut().insert(IsDecision);
    answer
}

/// Returns the health response of Envoy's rate limit service.
pub fn well(is_well: bool) -> FrontendResponse {
    let (status, text) = if is_well {
        (StatusCode::OK, "OK")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "not well")
    };
    uncached(answer(status, TEXT, text.into()))
}

/// Allows a request: contains the rate-limit headers that the client may see, and nothing else.
pub fn allowed(decision: &Decision) -> FrontendResponse {
    let mut answer = Response::new(Full::default());
    answer::inform(decision, answer.headers_mut());
    answer
}

/// Refuses a request that has these headers.
pub fn refused(decision: &Decision, headers: &HeaderMap, refusals: Refusals) -> FrontendResponse {
    let correlation = Correlation::of(headers, decision.respond());
    // A client can report this id, by which an operator finds the refusal in the log.
    let limit = decision.binding().map(|binding| binding.limit());
    debug!(
        event = "refusal_sent",
        correlation = correlation.as_str(),
        limit,
        "refusal sent"
    );
    refusals.log(decision, Some((&correlation, headers)));
    let mut answer = whole(answer::refuse(decision, &correlation));
    answer.extensions_mut().insert(IsDecision);
    if decision.decided_by() == DecidedBy::Failure {
        // Without a store no limit refused the request.
        return answer;
    }
    // Set for refusals by guards too: proxies recognize a decision by this value.
    with(answer, DENIED_REASON, LIMIT)
}

/// Turns a refusal into a 403, for a proxy that knows no other status. A header carries the original
/// status.
pub fn denied(mut answer: FrontendResponse) -> FrontendResponse {
    let status = HeaderValue::from(answer.status().as_u16());
    *answer.status_mut() = StatusCode::FORBIDDEN;
    with(answer, DENIED_STATUS, status)
}

/// Reports that no decision is possible for a request that has these headers.
pub fn unavailable(respond: Option<&Respond>, headers: &HeaderMap) -> FrontendResponse {
    let correlation = Correlation::of(headers, respond.unwrap_or(Respond::standard()));
    whole(answer::unavailable(respond, &correlation))
}

/// Marks a refusal because the store is unreachable and `on_failure` denies. A proxy can then distinguish
/// it from a 503 of some intermediary, which has decided nothing.
pub(crate) fn decided_without_store(answer: FrontendResponse) -> FrontendResponse {
    with(answer, DENIED_REASON, UNAVAILABLE)
}

/// Reports that a caller asks on behalf of others without being a trusted proxy.
pub fn untrusted() -> FrontendResponse {
    let detail = "only trusted proxies may call this endpoint";
    let answer = problem(&ProblemDetails::new(403, "Forbidden").detail(detail));
    with(answer, DENIED_REASON, UNTRUSTED)
}

/// Reports that the headers with which a proxy describes the request are invalid.
pub(crate) fn bad_forward(error: ForwardedError) -> FrontendResponse {
    problem(&ProblemDetails::new(400, "Bad Request").detail(error.to_string()))
}

/// Reports that a proxy names an unknown policy. It does not list the policies: clients may see this
/// response.
pub(crate) fn no_such_policy() -> FrontendResponse {
    let detail = "unknown policy";
    problem(&ProblemDetails::new(404, "Not Found").detail(detail))
}

/// Returns the status under which to count a response that reports an invalid request. A decision reports
/// none, regardless of its status.
pub fn problem_status<B>(answer: &Response<B>) -> Option<u16> {
    let is_decision = answer.extensions().get::<IsDecision>().is_some();
    let is_problem = answer.status().is_client_error() && !is_decision;
    is_problem.then(|| answer.status().as_u16())
}

/// Marks a response that is a decision.
#[derive(Clone, Copy)]
struct IsDecision;

fn whole(answer: Response<Vec<u8>>) -> FrontendResponse {
    answer.map(|body| Full::new(Cursor::new(body)))
}

/// Reports a body that could not be read completely.
pub(super) fn no_body(error: BodyError, bounds: &Bounds) -> FrontendResponse {
    let answer = problem(&match error {
        BodyError::TooLarge => ProblemDetails::new(413, "Content Too Large").detail(format!(
            "the body may have at most {} bytes",
            bounds.body_bytes
        )),
        BodyError::TooSlow => ProblemDetails::new(408, "Request Timeout").detail(format!(
            "the body did not arrive within {} seconds",
            bounds.body_time.as_secs_f32()
        )),
        BodyError::Broken => {
            ProblemDetails::new(400, "Bad Request").detail("the body ended too early")
        }
    });
    // The rest of the body cannot be distinguished from the next request.
    closing(answer)
}

/// Reports a body of an unsupported type.
pub(crate) fn unsupported() -> FrontendResponse {
    problem(
        &ProblemDetails::new(415, "Unsupported Media Type")
            .detail("check requests are uncompressed JSON: send `Content-Type: application/json`"),
    )
}

/// Reports that nothing exists at `path`. `help` lists the paths that exist.
pub fn not_found(path: &str, help: &str) -> FrontendResponse {
    let detail = format!("{} does not exist; {help}", quote(path));
    problem(&ProblemDetails::new(404, "Not Found").detail(detail))
}

/// Reports that the path exists, but does not support this method.
pub fn wrong_method(allowed: &'static str) -> FrontendResponse {
    let detail = format!("allowed methods: {allowed}");
    let answer = problem(&ProblemDetails::new(405, "Method Not Allowed").detail(detail));
    with(answer, ALLOW, HeaderValue::from_static(allowed))
}

/// Reports a missing or wrong token.
pub fn unauthorized() -> FrontendResponse {
    let detail = "authentication required: send `Authorization: Bearer TOKEN`";
    let answer = problem(&ProblemDetails::new(401, "Unauthorized").detail(detail));
    with(
        answer,
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"tidegate\""),
    )
}

/// Reports an internal error.
pub fn failed() -> FrontendResponse {
    problem(&ProblemDetails::new(500, "Internal Server Error").detail("see the log"))
}

fn problem(problem: &ProblemDetails) -> FrontendResponse {
    let status = StatusCode::from_u16(problem.status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = HeaderValue::from_static(problem::CONTENT_TYPE);
    uncached(answer(status, kind, problem.to_json()))
}

fn answer(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> FrontendResponse {
    let mut answer = Response::new(Full::new(Cursor::new(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn uncached(answer: FrontendResponse) -> FrontendResponse {
    with(answer, CACHE_CONTROL, NO_STORE)
}

fn with<B>(mut answer: Response<B>, name: HeaderName, value: HeaderValue) -> Response<B> {
    answer.headers_mut().insert(name, value);
    answer
}
