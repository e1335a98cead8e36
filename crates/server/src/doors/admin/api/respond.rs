//! Every status and header that the admin API answers with. Nothing else of it knows them.

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
/// Who may do what changes, and so does what is told: nobody is to keep an answer.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// What was done, or seen.
#[derive(Debug)]
pub(super) struct Done {
    status: StatusCode,
    body: Option<Value>,
    etag: Option<ETag>,
    location: Option<String>,
}

/// Why nothing was done.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    detail: String,
    errors: Vec<ProblemItem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// What may have been done all the same, and is to be written down.
    told: Option<Box<(AuditOutcome, AuditedChange)>>,
}

/// Gathers what is wrong, so that all of it is told at once.
#[derive(Debug, Default)]
pub(super) struct ProblemCollector(Option<AdminProblem>);

/// One thing that is wrong.
#[derive(Debug)]
struct ProblemItem {
    place: String,
    message: String,
    help: Option<String>,
}

// === impl Gathered ===

impl ProblemCollector {
    /// What was read, if it could be.
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

    /// A refusal with everything that was wrong, if anything was.
    pub(super) fn end(self) -> Result<(), AdminProblem> {
        self.0.map_or(Ok(()), Err)
    }
}

// === impl Done ===

impl Done {
    /// Something to see.
    pub(super) fn seen(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
            etag: None,
            location: None,
        }
    }

    /// Something new, which is at `location` from now on.
    pub(super) fn created(body: Value, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..Self::seen(body)
        }
    }

    /// The same, new, at `location` from now on.
    pub(super) fn into_created(self, location: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            location: Some(location),
            ..self
        }
    }

    /// Nothing is left to be said.
    pub(super) fn gone() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
            etag: None,
            location: None,
        }
    }

    /// The same, of this version.
    pub(super) fn at(mut self, etag: ETag) -> Self {
        self.etag = Some(etag);
        self
    }

    /// Which version it is of.
    pub(super) fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// That the caller has seen it already.
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

// === impl Refusal ===

impl AdminProblem {
    /// Refused with this status, for this reason.
    pub(super) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            detail: detail.into(),
            errors: Vec::new(),
            header: None,
            told: None,
        }
    }

    /// The call is wrong at one place.
    pub(super) fn bad(place: &str, why: impl Into<String>) -> Self {
        Self::new(400, "the call is not as it should be").with(place, why)
    }

    /// What was sent is well formed, and yet makes no sense.
    pub(super) fn senseless(place: &str, why: impl Into<String>) -> Self {
        Self::new(422, "what was sent makes no sense").with(place, why)
    }

    /// There is nothing of that name.
    pub(super) fn unknown(what: &str, name: &str) -> Self {
        let name = crate::wire::fault::quote(name);
        Self::new(404, format!("there is no {what} {name}"))
    }

    /// Nobody knows who asks.
    pub(super) fn unauthorized() -> Self {
        let detail = "send the token of an administrator: `Authorization: Bearer TOKEN`";
        let challenge = HeaderValue::from_static("Bearer realm=\"tidegate-admin\"");
        Self::new(401, detail).header(WWW_AUTHENTICATE, challenge)
    }

    /// Somebody has tried too often.
    pub(super) fn too_often(wait_s: u64) -> Self {
        Self::new(429, "too many tokens from there were wrong")
            .header(RETRY_AFTER, HeaderValue::from(wait_s))
    }

    /// Somebody may not do that.
    pub(super) fn forbidden(has: AdminRole, needs: AdminRole) -> Self {
        let (has, needs) = (has.as_str(), needs.as_str());
        Self::new(
            403,
            format!("this takes the role `{needs}`, and yours is `{has}`"),
        )
    }

    /// There is something, but not for this method.
    pub(super) fn wrong_method(allowed: &str) -> Self {
        let refusal = Self::new(405, format!("only {allowed} here"));
        match HeaderValue::try_from(allowed) {
            Ok(allowed) => refusal.header(ALLOW, allowed),
            Err(_) => refusal,
        }
    }

    /// Somewhere else does not answer.
    pub(super) fn away(why: impl Into<String>) -> Self {
        Self::new(503, why).header(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// We did something wrong.
    pub(super) fn failed() -> Self {
        Self::new(500, "see the log")
    }

    /// A configuration that would not be sound: everything that is wrong with it.
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

    /// The same, with one more thing that is wrong.
    pub(super) fn with(self, place: &str, message: impl Into<String>) -> Self {
        self.with_help(place, message, None)
    }

    /// The same, and what to do about it.
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

    /// The same, where something may have been done before it was refused.
    pub(super) fn told(mut self, outcome: AuditOutcome, change: AuditedChange) -> Self {
        self.told = Some(Box::new((outcome, change)));
        self
    }

    /// What is to be written down of it.
    pub(super) fn take_told(&mut self) -> Option<(AuditOutcome, AuditedChange)> {
        self.told.take().map(|told| *told)
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// Whether anything is told to be wrong.
    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// What status it is.
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
