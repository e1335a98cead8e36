//! Why there is no decision, as a document of RFC 9457.

use super::fault::WireFault;
use super::json::write_string;
use std::borrow::Cow;

/// What kind of document it is, for `Content-Type`.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// Why there is no decision: `{"type","title","status","detail"}`.
///
/// The type is `about:blank`: the status says what kind of problem it is, and the detail what to
/// do about it.
///
/// ```
/// use tidegate_server::wire::problem::ProblemDetails;
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
    /// A problem that is answered with this status, whose phrase is `title`.
    pub fn new(status: u16, title: &'static str) -> Self {
        Self {
            status,
            title,
            detail: None,
            correlation: None,
        }
    }

    /// Says what it is this time, for the one who asked. Nothing secret belongs here.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Names the id by which the request can be found again.
    pub fn correlation(mut self, id: impl Into<String>) -> Self {
        self.correlation = Some(id.into());
        self
    }

    /// The status that it is answered with.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What it is this time; its title if nothing was said of that.
    pub fn into_detail(self) -> Cow<'static, str> {
        self.detail.unwrap_or(Cow::Borrowed(self.title))
    }

    /// The document.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"type\":\"about:blank\",\"title\":".to_vec();
        write_string(self.title, &mut out);
        out.extend_from_slice(b",\"status\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        if let Some(detail) = &self.detail {
            out.extend_from_slice(b",\"detail\":");
            write_string(detail, &mut out);
        }
        if let Some(id) = &self.correlation {
            out.extend_from_slice(b",\"correlationId\":");
            write_string(id, &mut out);
        }
        out.push(b'}');
        out
    }
}

/// A question that cannot be read.
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
    fn a_question_that_cannot_be_read_says_why() {
        let fault = JsonQuestion::read(br#"{"cost": "2"}"#).expect_err("a cost is a number");
        let problem = ProblemDetails::from(&*fault);
        assert_eq!(problem.status(), 400);
        let json: serde_json::Value =
            serde_json::from_slice(&problem.to_json()).expect("a problem is JSON");
        assert_eq!(
            json["detail"],
            "cost: expected a whole number, found a string"
        );
    }
}
