//! Checks of a token's time, issuer and audience.

use super::TokenError;
use super::claims::Claims;
use serde_json::Value;

/// The requirements on a token in addition to its signature.
#[derive(Clone, Debug)]
pub struct Validity {
    /// The accepted issuers; any issuer if empty.
    pub issuers: Vec<String>,
    /// The accepted audiences; any audience if empty.
    pub audiences: Vec<String>,
    /// The tolerated clock difference in seconds.
    pub leeway: u64,
}

impl Default for Validity {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            audiences: Vec::new(),
            leeway: 60,
        }
    }
}

impl Validity {
    pub(super) fn check(&self, claims: &Claims, now: &dyn Fn() -> u64) -> Result<(), TokenError> {
        let (expires, starts) = (seconds(claims, "exp")?, seconds(claims, "nbf")?);
        if expires.is_some() || starts.is_some() {
            let now = now();
            if expires.is_some_and(|at| now >= at.saturating_add(self.leeway)) {
                return Err(TokenError::Expired);
            }
            if starts.is_some_and(|at| at > now.saturating_add(self.leeway)) {
                return Err(TokenError::NotYetValid);
            }
        }
        let named = |allowed: &[String], name: &Value| {
            let name = name.as_str();
            allowed.iter().any(|one| Some(one.as_str()) == name)
        };
        let issuer = claims.get("iss");
        if !self.issuers.is_empty() && !issuer.is_some_and(|it| named(&self.issuers, it)) {
            return Err(TokenError::Issuer);
        }
        let is_for_us = match claims.get("aud") {
            Some(Value::Array(several)) => several.iter().any(|it| named(&self.audiences, it)),
            Some(one) => named(&self.audiences, one),
            None => false,
        };
        if self.audiences.is_empty() || is_for_us {
            Ok(())
        } else {
            Err(TokenError::Audience)
        }
    }
}

/// Returns a time in whole seconds since the epoch (RFC 7519, 2), without its fraction. Times before the
/// epoch become the epoch.
fn seconds(claims: &Claims, name: &str) -> Result<Option<u64>, TokenError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let number = match value {
        Value::Number(number) => number.to_string(),
        _ => return Err(TokenError::Malformed),
    };
    if number.starts_with('-') {
        return Ok(Some(0));
    }
    let whole = number.split('.').next().unwrap_or_default();
    // Reject exponents: no sensible time is written with one.
    let is_plain = !number.contains(['e', 'E']);
    let parsed = whole.parse().ok().filter(|_| is_plain);
    parsed.map(Some).ok_or(TokenError::Malformed)
}
