//! The query of `/v1/auth`: `deny=403`, and nothing else.
//!
//! nginx's `auth_request` knows 401 and 403 only, so an operator may have refusals answered by 403.
//! It must be the operator who asks for it: Caddy appends the client's own query to the question's.

use tidegate_http::question::{ForwardedRequest, UriBy};

const DENY: &str = "deny=403";

/// Whether the operator, in `query`, asks for refusals by 403. `told` is what the question is about.
pub(super) fn is_asked(query: Option<&str>, told: &ForwardedRequest<'_>) -> bool {
    let query = query.unwrap_or_default();
    if parameters(query).next() != Some(DENY) {
        return false;
    }
    // Whoever tells the target by these does not pass on its query as well.
    if told.uri_by != Some(UriBy::XForwarded) {
        return true;
    }
    let clients = told.query().unwrap_or_default();
    if !parameters(clients).any(|parameter| parameter == DENY) {
        return true;
    }
    // The client has it too. The first is the operator's only if the client's own follow it.
    let after = query.strip_prefix(DENY).and_then(|it| it.strip_prefix('&'));
    after == Some(clients)
}

/// Old servers part them by semicolons.
fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split(['&', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: Option<&str>, by: UriBy, uri: &str) -> bool {
        let told = ForwardedRequest {
            uri: Some(uri),
            uri_by: Some(by),
            ..ForwardedRequest::default()
        };
        is_asked(query, &told)
    }

    #[test]
    fn an_operator_asks_with_the_first_parameter() {
        for by in [UriBy::XForwarded, UriBy::XOriginal] {
            for (query, uri) in [
                ("deny=403", "/a"),
                ("deny=403", "/a?b"),
                ("deny=403&b", "/a?b"),
                ("deny=403&deny=403", "/a?deny=403"),
                ("deny=403&x&deny=403", "/a?x&deny=403"),
            ] {
                assert!(check(Some(query), by, uri), "{query} {uri}");
            }
            for query in [
                "",
                "deny=404",
                "deny",
                "DENY=403",
                "x&deny=403",
                "deny=4033",
            ] {
                assert!(!check(Some(query), by, "/a"), "{query}");
            }
            assert!(!check(None, by, "/a?deny=403"));
        }
        assert!(is_asked(Some("deny=403"), &ForwardedRequest::default()));
    }

    #[test]
    fn a_client_does_not() {
        for (query, uri) in [
            ("deny=403", "/a?deny=403"),
            ("deny=403&x", "/a?deny=403&x"),
            ("deny=403&deny=403", "/a?deny=403&deny=403"),
            // As a proxy leaves it that drops what it cannot read.
            ("deny=403", "/a?%zz&deny=403"),
            ("deny=403&x=1", "/a?x=1;deny=403"),
        ] {
            assert!(!check(Some(query), UriBy::XForwarded, uri), "{query} {uri}");
        }
    }

    #[test]
    fn a_client_of_nginx_cannot_take_it_back() {
        assert!(check(Some("deny=403"), UriBy::XOriginal, "/a?deny=403"));
    }
}
