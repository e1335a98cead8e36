//! Errors in place of a decision, as documents of RFC 9457.

use super::fault::WireFault;
use super::json::write_string;
use super::members::{JsonMember, json_members};
use super::schema::object;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The value of `Content-Type` for such a document.
pub const CONTENT_TYPE: &str = "application/problem+json";

json_members! {
    /// A member of a problem.
    enum ProblemMember {
        /// The kind of problem. `about:blank` if the status is enough.
        Type = "type",
        /// The reason phrase of the status.
        Title = "title",
        /// The status of the response.
        Status = "status",
        /// The cause, for people. It names the field and the expected value, and never repeats a secret.
        Detail = "detail",
        /// The correlation id of the request.
        CorrelationId = "correlationId",
    }
}

/// Returns the schema of a problem.
pub(crate) fn schema() -> Value {
    use ProblemMember::{CorrelationId, Detail, Status, Title, Type};
    let members = ProblemMember::ALL.iter().copied();
    object(members, &[Type, Title, Status], |member| match member {
        Type => json!({ "type": "string", "format": "uri-reference" }),
        Status => json!({ "type": "integer", "minimum": 400, "maximum": 599 }),
        Title | Detail | CorrelationId => json!({ "type": "string" }),
    })
}

/// An error in place of a decision: `{"type","title","status","detail"}`.
///
/// The type is `about:blank`: the status gives the kind of problem, and the detail how to fix it.
///
/// ```
/// use tidegate_frontends::wire::problem::ProblemDetails;
///
/// let problem = ProblemDetails::new(404, "Not Found").detail("there is no policy `apu`");
/// assert_eq!(
///     String::from_utf8(problem.to_json())?,
///     r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no policy `apu`"}"#
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct ProblemDetails {
    status: u16,
    title: &'static str,
    detail: Option<Cow<'static, str>>,
    correlation: Option<String>,
}

impl ProblemDetails {
    /// Creates a problem with this status, whose phrase is `title`.
    pub fn new(status: u16, title: &'static str) -> Self {
        Self {
            status,
            title,
            detail: None,
            correlation: None,
        }
    }

    /// Sets the detail of this occurrence, for the caller. It must not contain secrets.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the correlation id of the request.
    pub fn correlation(mut self, id: impl Into<String>) -> Self {
        self.correlation = Some(id.into());
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the detail, or the title if there is none.
    pub fn into_detail(self) -> Cow<'static, str> {
        self.detail.unwrap_or(Cow::Borrowed(self.title))
    }

    /// Returns the document.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{".to_vec();
        out.extend_from_slice(ProblemMember::Type.first_key());
        write_string("about:blank", &mut out);
        out.extend_from_slice(ProblemMember::Title.key());
        write_string(self.title, &mut out);
        out.extend_from_slice(ProblemMember::Status.key());
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        if let Some(detail) = &self.detail {
            out.extend_from_slice(ProblemMember::Detail.key());
            write_string(detail, &mut out);
        }
        if let Some(id) = &self.correlation {
            out.extend_from_slice(ProblemMember::CorrelationId.key());
            write_string(id, &mut out);
        }
        out.push(b'}');
        out
    }
}

/// The problem for a check request that cannot be parsed.
impl From<&WireFault> for ProblemDetails {
    fn from(fault: &WireFault) -> Self {
        Self::new(400, "Bad Request").detail(fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::question::JsonQuestion;

    #[test]
    fn an_unreadable_check_request_reports_the_reason() {
        let fault = JsonQuestion::read(br#"{"cost": "2"}"#).expect_err("a cost is a number");
        let problem = ProblemDetails::from(&*fault);
        assert_eq!(problem.status(), 400);
        let json: Value = serde_json::from_slice(&problem.to_json()).expect("a problem is JSON");
        assert_eq!(
            json["detail"],
            "cost: expected a whole number, found a string"
        );
    }
}
