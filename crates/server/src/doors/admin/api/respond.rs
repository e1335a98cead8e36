//! Every status and header of the admin API. No other module of it sets them.

use super::audit::{AuditOutcome, AuditedChange};
use super::etag::ETag;
use crate::doors::respond::{DoorResponse, WholeBody};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use std::io::Cursor;
use tidegate_policy::ConfigErrors;
use tidegate_policy::admin::AdminRole;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Responses depend on roles and change over time, so no cache may store one.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A successful response.
#[derive(Debug)]
pub(super) struct Done {
    status: StatusCode,
    body: Option<Value>,
    etag: Option<ETag>,
    location: Option<String>,
}

/// An error response.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    detail: String,
    errors: Vec<ProblemItem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// The change to record, because it may have been made in spite of the error.
    told: Option<Box<(AuditOutcome, AuditedChange)>>,
}

/// Collects errors, so that all of them are reported together.
#[derive(Debug, Default)]
pub(super) struct ProblemCollector(Option<AdminProblem>);

/// One error.
#[derive(Debug)]
struct ProblemItem {
    place: String,
    message: String,
    help: Option<String>,
}

// === impl ProblemCollector ===

impl ProblemCollector {
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

// === impl Done ===

impl Done {
    /// Returns status 200 with a body.
    pub(super) fn seen(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
            etag: None,
            location: None,
        }
    }

    /// Returns status 201 for a new item, which is at `location` from now on.
    pub(super) fn created(body: Value, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..Self::seen(body)
        }
    }

    /// Turns a response into a 201 for a new item at `location`.
    pub(super) fn into_created(self, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..self
        }
    }

    /// Returns status 204.
    pub(super) fn gone() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
            etag: None,
            location: None,
        }
    }

    /// Sets the version.
    pub(super) fn at(mut self, etag: ETag) -> Self {
        self.etag = Some(etag);
        self
    }

    /// Returns the version.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// Turns a response into a 304: the caller has seen this version already.
    pub(super) fn unchanged(self) -> Self {
        Self {
            status: StatusCode::NOT_MODIFIED,
            body: None,
            ..self
        }
    }

    pub(super) fn into_answer(self) -> DoorResponse {
        let body = self.body.map(|body| body.to_string().into_bytes());
        let has_body = body.is_some();
        let mut answer = answer(self.status, body.unwrap_or_default());
        let headers = answer.headers_mut();
        if has_body {
            headers.insert(CONTENT_TYPE, JSON);
        }
        if let Some(etag) = self.etag {
            headers.insert(ETAG, etag.header());
        }
        if let Some(Ok(location)) = self.location.map(HeaderValue::try_from) {
            headers.insert(LOCATION, location);
        }
        answer
    }
}

// === impl AdminProblem ===

impl AdminProblem {
    /// Creates a problem with this status and reason.
    pub(super) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            detail: detail.into(),
            errors: Vec::new(),
            header: None,
            told: None,
        }
    }

    /// Reports that one part of the call is malformed.
    pub(super) fn bad(place: &str, why: impl Into<String>) -> Self {
        Self::new(400, "the call is not as it should be").with(place, why)
    }

    /// Reports that one part of the call is well formed, but invalid.
    pub(super) fn senseless(place: &str, why: impl Into<String>) -> Self {
        Self::new(422, "what was sent makes no sense").with(place, why)
    }

    /// Reports that nothing has that name.
    pub(super) fn unknown(what: &str, name: &str) -> Self {
        let name = crate::wire::fault::quote(name);
        Self::new(404, format!("there is no {what} {name}"))
    }

    /// Reports that the caller is not authenticated.
    pub(super) fn unauthorized() -> Self {
        let detail = "send the token of an administrator: `Authorization: Bearer TOKEN`";
        let challenge = HeaderValue::from_static("Bearer realm=\"tidegate-admin\"");
        Self::new(401, detail).header(WWW_AUTHENTICATE, challenge)
    }

    /// Reports too many wrong tokens.
    pub(super) fn too_often(wait_s: u64) -> Self {
        Self::new(429, "too many tokens from there were wrong")
            .header(RETRY_AFTER, HeaderValue::from(wait_s))
    }

    /// Reports that the caller's role does not allow the call.
    pub(super) fn forbidden(has: AdminRole, needs: AdminRole) -> Self {
        let (has, needs) = (has.as_str(), needs.as_str());
        Self::new(
            403,
            format!("this takes the role `{needs}`, and yours is `{has}`"),
        )
    }

    /// Reports that the path exists, but does not support this method.
    pub(super) fn wrong_method(allowed: &str) -> Self {
        let refusal = Self::new(405, format!("only {allowed} here"));
        match HeaderValue::try_from(allowed) {
            Ok(allowed) => refusal.header(ALLOW, allowed),
            Err(_) => refusal,
        }
    }

    /// Reports that a backend is unreachable.
    pub(super) fn away(why: impl Into<String>) -> Self {
        Self::new(503, why).header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Reports an internal error.
    pub(super) fn failed() -> Self {
        Self::new(500, "see the log")
    }

    /// Reports a configuration that would be invalid, with all its errors.
    pub(super) fn unsound(errors: &ConfigErrors) -> Self {
        let count = errors.count();
        let detail = match count {
            1 => "it would not be sound: 1 error".to_owned(),
            _ => format!("it would not be sound: {count} errors"),
        };
        let mut refusal = Self::new(422, detail);
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
    pub(super) fn told(mut self, outcome: AuditOutcome, change: AuditedChange) -> Self {
        self.told = Some(Box::new((outcome, change)));
        self
    }

    /// Takes the change to record.
    pub(super) fn take_told(&mut self) -> Option<(AuditOutcome, AuditedChange)> {
        self.told.take().map(|told| *told)
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

    #[cfg(test)]
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|wrong| wrong.place.as_str())
    }

    pub(super) fn into_answer(self) -> DoorResponse {
        let errors = self.errors.iter().map(|wrong| {
            let ProblemItem {
                place,
                message,
                help,
            } = wrong;
            json!({ "where": place, "message": message, "help": help })
        });
        let problem = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "errors": errors.collect::<Vec<_>>(),
        });
        let mut answer = answer(self.status, problem.to_string().into_bytes());
        answer.headers_mut().insert(CONTENT_TYPE, PROBLEM);
        if let Some(header) = self.header {
            let (name, value) = *header;
            answer.headers_mut().insert(name, value);
        }
        answer
    }
}

fn answer(status: StatusCode, body: Vec<u8>) -> DoorResponse {
    let mut answer: Response<WholeBody> = Response::new(WholeBody::new(Cursor::new(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
