//! The bearer token of a listener.
//!
//! A token gives access to a whole listener. It identifies no client: the identity of a request comes from the
//! configuration of `client`, and the administrators of the admin API have separate tokens, stored as hashes.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use tidegate_policy::text::Secret;

/// The token that callers of a listener must present.
#[derive(Clone, Debug)]
pub struct ListenerToken(Secret);

impl ListenerToken {
    /// Creates a token from the secret of the settings.
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Returns true if `presented` is the token.
    ///
    /// The time of the comparison reveals the token's length, and nothing else.
    pub fn is(&self, presented: &[u8]) -> bool {
        presented.ct_eq(self.0.expose().as_bytes()).into()
    }

    /// Returns true if a request presents the token: exactly one `Authorization`, with the scheme in any
    /// case.
    ///
    /// The time of the comparison reveals the token's length, and nothing else.
    pub(crate) fn is_presented(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let Some((scheme, presented)) = value.as_bytes().split_at_checked(b"Bearer ".len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ")
            && bool::from(presented.ct_eq(self.0.expose().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_presented(values: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        ListenerToken::new(Secret::new("hunter2")).is_presented(&headers)
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        assert!(is_presented(&["Bearer hunter2"]));
        assert!(is_presented(&["bearer hunter2"]));
        for wrong in [
            "Bearer hunter",
            "Bearer hunter22",
            "Bearer ",
            "Basic hunter2",
            "hunter2",
            "",
        ] {
            assert!(!is_presented(&[wrong]), "{wrong}");
        }
    }

    #[test]
    fn zero_and_two_values_are_rejected() {
        assert!(!is_presented(&[]));
        assert!(!is_presented(&["Bearer hunter2", "Bearer hunter2"]));
    }
}
