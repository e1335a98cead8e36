//! Decisions, as the server sends them.

use crate::commands::server_call::rejection;
use crate::simulate::table::duration;
use crate::styles::{BAD, GOOD, paint};
use http::StatusCode;
use serde::Deserialize;
use std::fmt;
use tidegate_control::failure::Failure;
use tidegate_proxy::http_fetch::FetchedResponse;

/// A decision. Members that are not shown are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct CheckVerdict {
    pub(super) allowed: bool,
    limit: Option<String>,
    band: Option<String>,
    unit: Option<String>,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_ms: Option<u64>,
    guard: Option<String>,
    reason: Option<String>,
    decided_by: Option<String>,
}

/// Reads a response. Fails if it is not a decision.
pub(super) fn read(response: &FetchedResponse) -> Result<CheckVerdict, Failure> {
    if response.status == StatusCode::OK {
        return serde_json::from_slice(&response.body).map_err(|_| {
            Failure::runtime("the response is not a decision\n   help: is --url the HTTP API?")
        });
    }
    Err(rejection(response, "decision"))
}

/// One line: the decision, the limit or guard, its state.
impl fmt::Display for CheckVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed {
            paint(GOOD, "allowed")
        } else {
            paint(BAD, "refused")
        };
        write!(f, "{word}: ")?;
        match (&self.limit, &self.guard) {
            (Some(limit), _) => write!(f, "limit {limit}")?,
            (None, Some(guard)) => write!(f, "guard {guard}")?,
            (None, None) => write!(f, "no limit applies")?,
        }
        if let Some(band) = &self.band {
            write!(f, ", band {band}")?;
        }
        if let Some(left) = self.remaining {
            match &self.unit {
                Some(unit) => write!(f, ", {left} {unit} left")?,
                None => write!(f, ", {left} left")?,
            }
        }
        let shown = |ms: u64| duration(ms.saturating_mul(1_000));
        match (self.allowed, self.retry_after_ms, self.reset_ms) {
            (false, Some(ms), _) => write!(f, ", retry after {}", shown(ms))?,
            (false, None, _) if self.limit.is_some() => write!(f, ", can never pass")?,
            (true, _, Some(ms)) => write!(f, ", full in {}", shown(ms))?,
            _ => {}
        }
        if let Some(reason) = &self.reason
            && !matches!(reason.as_str(), "allowed" | "limited")
        {
            write!(f, ", reason {reason}")?;
        }
        match self.decided_by.as_deref() {
            Some("local") => write!(f, "; the store did not respond, decided from memory"),
            Some(_) => write!(f, "; the store did not respond, decided by on_failure"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use tidegate_control::failure::Failure;
    use tidegate_proxy::http_fetch::FetchedResponse;

    fn response(status: u16, body: &str) -> FetchedResponse {
        FetchedResponse {
            status: status.try_into().unwrap(),
            headers: http::HeaderMap::new(),
            body: body.to_owned().into(),
            is_whole: true,
        }
    }

    #[test]
    fn a_line_shows_all_parts_of_the_decision() {
        for (body, expected) in [
            (
                r#"{"allowed":true,"limit":null}"#,
                "allowed: no limit applies",
            ),
            (
                r#"{"allowed":true,"limit":"a","band":"1/s","remaining":4,"retry_after_ms":0,"reset_ms":1500,"new":1}"#,
                "allowed: limit a, band 1/s, 4 left, full in 1.500 s",
            ),
            (
                r#"{"allowed":false,"limit":"a","band":"1/h","remaining":0,"retry_after_ms":3660000,"reset_ms":1}"#,
                "refused: limit a, band 1/h, 0 left, retry after 1 h 1 min",
            ),
            (
                r#"{"allowed":false,"limit":"a","band":"1/h","remaining":0,"retry_after_ms":null,"reset_ms":1,"reason":"limit-blocked"}"#,
                "refused: limit a, band 1/h, 0 left, can never pass, reason limit-blocked",
            ),
            (
                r#"{"allowed":false,"limit":null,"guard":"bad","reason":"blacklisted","retry_after_ms":null}"#,
                "refused: guard bad, reason blacklisted",
            ),
            (
                r#"{"allowed":false,"limit":"a","band":null,"retry_after_ms":1000,"decided_by":"failure"}"#,
                "refused: limit a, retry after 1.000 s; the store did not respond, decided by on_failure",
            ),
        ] {
            let line = read(&response(200, body)).unwrap().to_string();
            let line = anstream::adapter::strip_str(&line).to_string();
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn a_response_without_a_decision_is_a_failure() {
        let problem = r#"{"status":400,"detail":"unknown policy `x`"}"#;
        for (status, body, is_input, expected) in [
            (200, "hello", false, "is not a decision"),
            (400, problem, true, "400 Bad Request: unknown policy `x`"),
            (401, problem, true, "--token-env or --token-file"),
            (404, "", true, "404 Not Found: it gives no reason"),
            (
                503,
                "{}",
                false,
                "503 Service Unavailable: it gives no reason",
            ),
        ] {
            let failure = read(&response(status, body)).unwrap_err();
            assert_eq!(matches!(failure, Failure::Input(_)), is_input, "{failure}");
            assert!(failure.to_string().contains(expected), "{failure}");
        }
    }
}
