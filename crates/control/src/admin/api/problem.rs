//! Errors of the admin API: the one type that becomes `application/problem+json` (RFC 9457).
//!
//! Handlers name the kind of an error. The status of each kind is known here alone.

use super::audit::{AuditOutcome, AuditedChange};
use super::reply;
use crate::admin::body::AdminBody;
use http::header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use tidegate_config::ConfigErrors;
use tidegate_config::admin::AdminRole;
use tidegate_policy::text::counted;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An error (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct ProblemBody<'a> {
    /// Always `about:blank`: the status is the kind of the error.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The reason.
    detail: &'a str,
    /// Each error of the call, all of them at once.
    errors: &'a [ProblemItem],
}

/// One error of a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProblemItem {
    /// The place of the error: a member of the body, a parameter, a header, or a place in the configuration.
    #[serde(rename = "where")]
    place: String,
    /// The error.
    message: String,
    /// A hint how to fix it.
    help: Option<String>,
}

/// An error response.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    detail: String,
    errors: Vec<ProblemItem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// The change to record, because it may have been made in spite of the error.
    change: Option<Box<(AuditOutcome, AuditedChange)>>,
}

/// Collects errors, so that all of them are reported together.
#[derive(Debug)]
pub(super) struct ProblemCollector(Option<AdminProblem>);

// === impl ProblemCollector ===

impl ProblemCollector {
    /// Creates a collector that has the errors of `problem` already.
    pub(super) fn after(problem: Option<AdminProblem>) -> Self {
        Self(problem)
    }

    /// Returns the value, or collects its error.
    pub(super) fn take<T>(&mut self, read: Result<T, AdminProblem>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(refusal) => {
                match &mut self.0 {
                    Some(first) => first.errors.extend(refusal.errors),
                    None => self.0 = Some(refusal),
                }
                None
            }
        }
    }

    /// Fails with all collected errors, if there are any.
    pub(super) fn end(self) -> Result<(), AdminProblem> {
        self.0.map_or(Ok(()), Err)
    }
}

// === impl AdminProblem ===

impl AdminProblem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            errors: Vec::new(),
            header: None,
            change: None,
        }
    }

    /// Reports that one part of the call is malformed.
    pub(super) fn malformed(place: &str, why: impl Into<String>) -> Self {
        let detail = "the call is not as it should be";
        Self::new(StatusCode::BAD_REQUEST, detail).with(place, why)
    }

    /// Reports a malformed query. Its errors are added with [`with`](Self::with).
    pub(super) fn malformed_query() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "the query is not as it should be")
    }

    /// Reports that one part of the call is well formed, but invalid.
    pub(super) fn invalid(place: &str, why: impl Into<String>) -> Self {
        Self::invalid_body().with(place, why)
    }

    /// Reports an invalid body. Its errors are added with [`with`](Self::with).
    pub(super) fn invalid_body() -> Self {
        Self::unprocessable("the call is invalid")
    }

    /// Reports a well-formed call that cannot be done as it is.
    pub(super) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Reports a conflict with the present state: it exists, is in use, or cannot be changed here.
    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Reports that the version that the caller has seen is gone.
    pub(super) fn stale(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, detail)
    }

    /// Reports that the caller must name the version that it has seen.
    pub(super) fn version_missing() -> Self {
        let help = "send the `ETag` of the version that you have read, or `*` for any version";
        let detail = "this call needs a version";
        Self::new(StatusCode::PRECONDITION_REQUIRED, detail).with_help(
            "header.If-Match",
            "it is missing",
            Some(help),
        )
    }

    /// Reports that nothing has that name.
    pub(super) fn not_found(what: &str, name: &str) -> Self {
        let name = tidegate_frontends::wire::fault::quote(name);
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what} {name}"))
    }

    /// Reports that there is no route at the path.
    pub(super) fn no_route() -> Self {
        let detail = "there is nothing here; see /admin/v1/openapi.json";
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Reports a call from a page of another origin.
    pub(super) fn foreign_page() -> Self {
        let detail = "pages of other origins may not call this";
        Self::new(StatusCode::FORBIDDEN, detail).with("header.Origin", "it is not this server")
    }

    /// Reports a body that is not JSON, or compressed.
    pub(super) fn not_json(is_patch: bool) -> Self {
        let kind = if is_patch {
            "application/merge-patch+json` or `application/json"
        } else {
            "application/json"
        };
        let detail = format!("send `Content-Type: {kind}`, not compressed");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    /// Reports a body of more than `max` bytes.
    pub(super) fn body_too_large(max: usize) -> Self {
        let detail = format!("a body may have {max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// Reports a body that did not arrive in time.
    pub(super) fn body_too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body was not there in time",
        )
    }

    /// Reports that the caller is not authenticated.
    pub(super) fn unauthorized() -> Self {
        let detail = "send the token of an administrator: `Authorization: Bearer TOKEN`";
        let challenge = HeaderValue::from_static("Bearer realm=\"tidegate-admin\"");
        Self::new(StatusCode::UNAUTHORIZED, detail).header(WWW_AUTHENTICATE, challenge)
    }

    /// Reports too many wrong tokens.
    pub(super) fn too_often(wait_s: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many tokens from there were wrong",
        )
        .header(RETRY_AFTER, HeaderValue::from(wait_s))
    }

    /// Reports that the caller's role does not allow the call.
    pub(super) fn forbidden(has: AdminRole, needs: AdminRole) -> Self {
        let (has, needs) = (has.as_str(), needs.as_str());
        Self::new(
            StatusCode::FORBIDDEN,
            format!("this takes the role `{needs}`, and yours is `{has}`"),
        )
    }

    /// Reports that the path exists, but does not support this method.
    pub(super) fn wrong_method(allowed: &str) -> Self {
        let refusal = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("allowed methods: {allowed}"),
        );
        match HeaderValue::try_from(allowed) {
            Ok(allowed) => refusal.header(ALLOW, allowed),
            Err(_) => refusal,
        }
    }

    /// Reports that a backend is unreachable.
    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
            .header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Reports an internal error.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "see the log")
    }

    /// Reports a configuration that would be invalid, with all its errors.
    pub(super) fn invalid_config(errors: &ConfigErrors) -> Self {
        let count = counted(errors.count(), "error", "errors");
        let mut refusal = Self::unprocessable(format!("the result would be invalid: {count}"));
        for problem in errors.problems() {
            let line = problem.line().map(|line| format!(":{line}"));
            let file = format!("{}{}", problem.file(), line.unwrap_or_default());
            let place = match problem.path() {
                "" => file,
                path => format!("{path} ({file})"),
            };
            refusal = refusal.with_help(&place, problem.message(), problem.help());
        }
        refusal
    }

    /// Adds one more error.
    pub(super) fn with(self, place: &str, message: impl Into<String>) -> Self {
        self.with_help(place, message, None)
    }

    /// Adds one more error, with a hint.
    pub(super) fn with_help(
        mut self,
        place: &str,
        message: impl Into<String>,
        help: Option<&str>,
    ) -> Self {
        self.errors.push(ProblemItem {
            place: place.to_owned(),
            message: message.into(),
            help: help.map(str::to_owned),
        });
        self
    }

    /// Adds a change that may have been made before the error.
    pub(super) fn with_change(mut self, outcome: AuditOutcome, change: AuditedChange) -> Self {
        self.change = Some(Box::new((outcome, change)));
        self
    }

    /// Takes the change to record.
    pub(super) fn take_change(&mut self) -> Option<(AuditOutcome, AuditedChange)> {
        self.change.take().map(|change| *change)
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// Returns true if there are individual errors.
    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the status.
    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns the place of each error, and its message with the hint.
    #[cfg(test)]
    pub(super) fn errors_with_places(&self) -> Vec<(String, String)> {
        let errors = self.errors.iter();
        errors
            .map(|it| {
                let help = it.help.as_deref().unwrap_or_default();
                (it.place.clone(), format!("{} {help}", it.message))
            })
            .collect()
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|wrong| wrong.place.as_str())
    }

    /// Returns the response.
    pub(super) fn into_response(self) -> Response<AdminBody> {
        let problem = ProblemBody {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &self.detail,
            errors: &self.errors,
        };
        // Serializing texts and numbers cannot fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = reply::response(self.status, Some((PROBLEM, AdminBody::whole(body))));
        if let Some(header) = self.header {
            let (name, value) = *header;
            response.headers_mut().insert(name, value);
        }
        response
    }
}
